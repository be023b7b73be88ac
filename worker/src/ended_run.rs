//! The run of a run key that has ended and whose log was deleted. Its record has the outcome, so a Job with the key does not run again.

use crate::inputs::Inputs;
use crate::log_reader;
use crate::record::Record;
use bloomery_crds::report::Projection;
use bloomery_crds::v1alpha1::Gates;
use bloomery_engine::stages::attachment;
use bloomery_journal::JOBS;
use std::path::Path;

/// Returns the state of the Job, if it names its run key, and the run of the key has a record and no log.
///
/// A Job whose record cannot be read runs from its beginning only if there is no record: otherwise it could repeat the effects of its run.
///
/// # Errors
/// If there is a record, and it cannot be read.
pub fn projection(inputs: &Inputs, memory: &Path) -> std::io::Result<Option<Projection>> {
    let run_key = &inputs.part.run_key;
    if !inputs.part.named_run_key || log_reader::has_segments(&memory.join(JOBS).join(run_key)) {
        return Ok(None);
    }
    let record = match Record::read(memory, run_key) {
        Ok(record) => record,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(outcome) = record.outcome else { return Ok(None) };
    let is_same_run = record.goal == inputs.run.goal;
    let outcome = if is_same_run { outcome } else { attachment::goal_refusal(&record.goal) };
    Ok(Some(Projection {
        phase: outcome.phase(),
        outcome: Some(outcome),
        result: record.result.filter(|_| is_same_run).map(|result| result.bounded()),
        gates: Gates { intent: record.intent, ..Gates::default() },
        features: Vec::new(),
        workflows: Vec::new(),
        tool_names: Vec::new(),
        waiting_for: None,
        replies_heard: 0,
        stray_replies: Vec::new(),
        remarks: Vec::new(),
        tools_changed: false,
        usage: record.usage,
        log: record.log,
    }))
}
