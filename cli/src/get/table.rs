//! Jobs as `kubectl get` lists them.

use super::Item;
use super::kept::{Kept, OLDER, Status};
use crate::plain;
use std::fmt::Write;

/// A line for each Job, under a line of names.
pub(super) fn of(jobs: &[Item]) -> String {
    let rows: Vec<[String; 5]> = std::iter::once(["JOB", "SKILL", "PHASE", "OUTCOME", "TOOLS"].map(str::to_owned))
        .chain(jobs.iter().map(row))
        .collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        // Nothing fails that writes to a string.
        let _ = writeln!(text, "{}", cells.join("   ").trim_end());
    }
    text
}

fn row(item: &Item) -> [String; 5] {
    let (job, skill) = match item {
        Item::Seen(seen) => (&seen.job, &seen.skill),
        Item::Kept(kept) => (&kept.job, &kept.skill),
    };
    let known = match item {
        Item::Seen(seen) => Some((seen.status.phase, seen.status.outcome.as_ref(), seen.status.usage.tool_calls)),
        Item::Kept(kept) => match kept.as_ref() {
            Kept { status: Some(Status { phase, outcome, usage, .. }), .. } => {
                Some((*phase, Some(outcome), usage.tool_calls))
            }
            Kept { status: None, .. } => None,
        },
    };
    let [phase, outcome, tools] = known.map_or([OLDER, "", ""].map(str::to_owned), |(phase, outcome, tools)| {
        let code = outcome.map(|outcome| outcome.code.to_string()).unwrap_or_default();
        [phase.to_string(), code, tools.to_string()]
    });
    [plain::line(job), plain::line(skill), phase, outcome, tools]
}
