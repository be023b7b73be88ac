//! The calls of `subgoal_done`, which the engine answers itself.

use super::arguments::InvalidArguments;
use super::state::Call;
use crate::event::Event;
use crate::rules::workflows::WorkflowTracker;
use serde::Deserialize;

/// The arguments of `subgoal_done`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Closing {
    step: String,
    evidence: u64,
    #[serde(default)]
    not_applicable: bool,
}

/// Closes the step that an allowed call names, or fails the call with the reason.
pub(super) fn close(call: &Call, workflows: &WorkflowTracker) -> Vec<Event> {
    let id = call.id.clone();
    match read_closing(call).and_then(|closing| check(&closing, workflows)) {
        Ok(Closing { step, evidence, not_applicable }) => {
            let text = if not_applicable { "Closed as not applicable." } else { "Closed." }.to_owned();
            vec![Event::SubgoalDone { step, evidence, not_applicable }, Event::ToolCompleted { call: id, text }]
        }
        Err(error) => vec![Event::ToolFailed { call: id, text: error.to_string() }],
    }
}

fn read_closing(call: &Call) -> Result<Closing, InvalidArguments> {
    Closing::deserialize(call.read_arguments()?).map_err(InvalidArguments::new)
}

/// Checks whether a step can be closed. Returns the arguments with the id of the step instead of its name.
fn check(closing: &Closing, workflows: &WorkflowTracker) -> Result<Closing, InvalidArguments> {
    let id = if closing.not_applicable {
        workflows.check_not_applicable(&closing.step, closing.evidence)
    } else {
        workflows.check_done(&closing.step, closing.evidence)
    };
    Ok(Closing { step: id.map_err(InvalidArguments::new)?, ..*closing })
}
