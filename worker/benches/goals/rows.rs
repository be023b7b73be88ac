//! The table of `docs/explanation/engine.md`, section 1: which lines must be durable before which act.
//!
//! Worked out of the lines of a log alone, so that a segment that the worker need not have written shows.

use bloomery_crds::v1alpha1::Verdict;
use bloomery_engine::Event;
use bloomery_engine::line::{Chain, Entry};

/// What is done once a row is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// The model is asked.
    Ask,
    /// A tool is called.
    Call,
    /// The log goes on: an outcome, the begin of an epoch, the end.
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
    /// What it comes before.
    pub(crate) act: Act,
}

/// The rows of a log whose answers ask for one call each.
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
        if let Some(act) = ends_with(before, &entry.event, entries.get(at + 1).map(|next| &next.event)) {
            row.act = act;
            rows.extend(open.take());
        }
    }
    assert!(open.is_none(), "the log ends within a row");
    rows
}

fn ends_with(before: Option<&Event>, event: &Event, after: Option<&Event>) -> Option<Act> {
    match event {
        Event::ModelRequested { .. } => Some(Act::Ask),
        Event::ToolStarted { .. } => Some(Act::Call),
        Event::ToolRuled { verdict: Verdict::Allow, .. } if !matches!(after, Some(Event::ToolStarted { .. })) => {
            Some(Act::Call)
        }
        Event::ToolCompleted { .. } if matches!(before, Some(Event::ToolStarted { .. })) => Some(Act::Nothing),
        Event::EpochStarted { .. } | Event::Finished { .. } => Some(Act::Nothing),
        _ => None,
    }
}
