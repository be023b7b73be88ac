//! The table of Jobs, in the form of `kubectl get`.

use super::item::Item;
use super::record::{RecordedJob, Status};
use crate::text;
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::report::Projection;
use bloomery_crds::v1alpha1::Usage;

/// Formats a header, and a line for each Job.
pub(super) fn render(jobs: &[Item]) -> String {
    crate::table::render(&["JOB", "SKILL", "PHASE", "OUTCOME", "TOOLS"], jobs.iter().map(row))
}

fn row(item: &Item) -> [String; 5] {
    let (job, skill) = match item {
        Item::Logged(logged) => (&logged.job, &logged.skill),
        Item::Recorded(recorded) => (&recorded.job, &recorded.skill),
    };
    let [phase, outcome, tools] = match item {
        Item::Logged(logged) => {
            let Projection { phase, outcome, usage, .. } = &logged.status;
            state_cells(*phase, outcome.as_ref(), usage)
        }
        Item::Recorded(recorded) => match recorded.as_ref() {
            RecordedJob { status: Some(Status { phase, outcome, usage, .. }), .. } => {
                state_cells(*phase, Some(outcome), usage)
            }
            RecordedJob { status: None, .. } => [recorded.migration_state(), "", ""].map(str::to_owned),
        },
    };
    [text::sanitized_line(job), text::sanitized_line(skill), phase, outcome, tools]
}

/// Formats the cells of the columns PHASE, OUTCOME and TOOLS.
fn state_cells(phase: Phase, outcome: Option<&Outcome>, usage: &Usage) -> [String; 3] {
    let code = outcome.map(|outcome| outcome.code.to_string()).unwrap_or_default();
    [phase.to_string(), code, usage.tool_calls.to_string()]
}
