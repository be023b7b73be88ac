//! Jobs as `kubectl get` lists them.

use super::Seen;
use crate::plain;
use std::fmt::Write;

/// A line for each Job, under a line of names.
pub(super) fn of(jobs: &[Seen]) -> String {
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

fn row(seen: &Seen) -> [String; 5] {
    let Seen { job, skill, status, .. } = seen;
    let outcome = status.outcome.as_ref().map(|outcome| outcome.code.to_string()).unwrap_or_default();
    [plain::line(job), plain::line(skill), status.phase.to_string(), outcome, status.usage.tool_calls.to_string()]
}
