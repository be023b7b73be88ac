//! Jobs as `kubectl get` lists them.

use super::Item;
use super::kept::{Kept, Status};
use crate::plain;

/// A line for each Job, under a line of names.
pub(super) fn of(jobs: &[Item]) -> String {
    crate::table::of(&["JOB", "SKILL", "PHASE", "OUTCOME", "TOOLS"], jobs.iter().map(row))
}

fn row(item: &Item) -> [String; 5] {
    let (job, skill) = match item {
        Item::Seen(seen) => (&seen.job, &seen.skill),
        Item::Kept(kept) => (&kept.job, &kept.skill),
    };
    let known = match item {
        Item::Seen(seen) => Ok((seen.status.phase, seen.status.outcome.as_ref(), seen.status.usage.tool_calls)),
        Item::Kept(kept) => match kept.as_ref() {
            Kept { status: Some(Status { phase, outcome, usage, .. }), .. } => {
                Ok((*phase, Some(outcome), usage.tool_calls))
            }
            Kept { status: None, .. } => Err(kept.word()),
        },
    };
    let [phase, outcome, tools] = match known {
        Ok((phase, outcome, tools)) => {
            let code = outcome.map(|outcome| outcome.code.to_string()).unwrap_or_default();
            [phase.to_string(), code, tools.to_string()]
        }
        Err(word) => [word, "", ""].map(str::to_owned),
    };
    [plain::line(job), plain::line(skill), phase, outcome, tools]
}
