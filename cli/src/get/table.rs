//! The table of Jobs, in the form of `kubectl get`.

use super::item::Item;
use super::record::{RecordedJob, Status};
use crate::text;

/// Formats a header, and a line for each Job.
pub(super) fn render(jobs: &[Item]) -> String {
    crate::table::render(&["JOB", "SKILL", "PHASE", "OUTCOME", "TOOLS"], jobs.iter().map(row))
}

fn row(item: &Item) -> [String; 5] {
    let (job, skill) = match item {
        Item::Logged(logged) => (&logged.job, &logged.skill),
        Item::Recorded(recorded) => (&recorded.job, &recorded.skill),
    };
    let state = match item {
        Item::Logged(logged) => {
            Ok((logged.status.phase, logged.status.outcome.as_ref(), logged.status.usage.tool_calls))
        }
        Item::Recorded(recorded) => match recorded.as_ref() {
            RecordedJob { status: Some(Status { phase, outcome, usage, .. }), .. } => {
                Ok((*phase, Some(outcome), usage.tool_calls))
            }
            RecordedJob { status: None, .. } => Err(recorded.migration_state()),
        },
    };
    let [phase, outcome, tools] = match state {
        Ok((phase, outcome, tools)) => {
            let code = outcome.map(|outcome| outcome.code.to_string()).unwrap_or_default();
            [phase.to_string(), code, tools.to_string()]
        }
        Err(word) => [word, "", ""].map(str::to_owned),
    };
    [text::sanitized_line(job), text::sanitized_line(skill), phase, outcome, tools]
}
