//! The table of `docs/explanation/engine.md`, section 1: the lines that must be durable before each act.
//!
//! The rows are derived from the lines of a log, without its segments, so that superfluous segments can be counted.

use bloomery_crds::v1alpha1::Verdict;
use bloomery_engine::Event;
use bloomery_engine::core_tools::files::READ_FILE;
use bloomery_engine::line::{Chain, Entry};

/// The act after a row is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// A request to the model.
    Ask,
    /// A tool call.
    Call,
    /// No act: the row is an outcome, the start of an epoch, or the end.
    Nothing,
}

/// One row of the table: one segment.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The `seq` of its first line.
    pub(crate) first: u64,
    /// Its lines.
    pub(crate) text: String,
    /// Its events.
    pub(crate) events: Vec<Event>,
    /// The act after it.
    pub(crate) act: Act,
}

/// Returns the rows of a log. Each model answer in it has at most one call.
pub(crate) fn rows(lines: &[String]) -> Vec<Row> {
    let mut chain = Chain::new(crate::SOURCE);
    let entries: Vec<Entry> = lines.iter().map(|line| chain.read(line).unwrap()).collect();
    let mut rows = Vec::new();
    let mut open: Option<Row> = None;
    for (at, entry) in entries.iter().enumerate() {
        let row = open.get_or_insert_with(|| Row {
            first: entry.seq,
            text: String::new(),
            events: Vec::new(),
            act: Act::Nothing,
        });
        row.text.push_str(&lines[at]);
        row.text.push('\n');
        row.events.push(entry.event.clone());
        let before = at.checked_sub(1).map(|before| &entries[before].event);
        if let Some(act) = act_after(before, &entry.event, entries.get(at + 1).map(|next| &next.event)) {
            row.act = act;
            rows.extend(open.take());
        }
    }
    assert!(open.is_none(), "the log ends within a row");
    rows
}

/// Returns the act after the row that `event` ends, or `None` if the row goes on. `before` and `after` are the events around it.
fn act_after(before: Option<&Event>, event: &Event, after: Option<&Event>) -> Option<Act> {
    match event {
        Event::ModelRequested { .. } => Some(Act::Ask),
        Event::ToolStarted { .. } => Some(Act::Call),
        // A read inside of the pod needs no durable event.
        Event::ToolRuled { .. } if matches!(before, Some(Event::ToolRequested { tool, .. }) if tool == READ_FILE) => {
            None
        }
        Event::ToolRuled { verdict: Verdict::Allow, .. } if !matches!(after, Some(Event::ToolStarted { .. })) => {
            Some(Act::Call)
        }
        Event::ToolCompleted { .. } if matches!(before, Some(Event::ToolStarted { .. })) => Some(Act::Nothing),
        Event::EpochStarted { .. } | Event::Finished { .. } => Some(Act::Nothing),
        _ => None,
    }
}
