//! The overview of recent changes: the files with the latest modification times, and the last git operations.

use super::history;
use crate::Error;
use crate::call::Deadline;
use crate::resource_path::{ResourcePath, escape_controls};
use crate::root::Root;
use crate::walk::{Bounds, walk};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{SystemTime, UNIX_EPOCH};

/// The limit on the files listed.
const MAX_FILES: usize = 15;

/// The depth limit of the walk, in levels.
const MAX_DEPTH: usize = 12;

/// Lists the files that were modified last, and the last git operations.
pub(super) fn overview(root: &Root, deadline: &Deadline) -> Result<String, Error> {
    // The modification times and paths, the oldest first.
    let mut newest: BTreeSet<(SystemTime, String)> = BTreeSet::new();
    if let Some(name) = &root.file {
        let opened = root.open_file(&root.resource_path(None)?)?;
        let modified = opened.metadata.modified().map_or(UNIX_EPOCH, cap_std::time::SystemTime::into_std);
        newest.insert((modified, name.to_string_lossy().into_owned()));
        return Ok(render(&newest));
    }
    let bounds = Bounds { depth: MAX_DEPTH, deadline: deadline.instant() };
    let left_out = walk(
        root,
        &ResourcePath::parse("")?,
        bounds,
        |_| true,
        |found| {
            let metadata = if found.kind.is_file() { found.entry.metadata().ok() } else { None };
            if let Some(modified) = metadata.and_then(|metadata| metadata.modified().ok()) {
                newest.insert((modified.into_std(), found.resource_path.to_owned()));
            }
            if newest.len() > MAX_FILES {
                newest.pop_first();
            }
            ControlFlow::Continue(())
        },
    );
    let stopped_note = left_out.stopped.map_or_else(String::new, |reason| format!("[stopped early: {reason}]\n"));
    Ok([render(&newest), stopped_note, history::recent_operations(root).unwrap_or_default()].concat())
}

fn render(newest: &BTreeSet<(SystemTime, String)>) -> String {
    let line =
        |(modified, path): &(SystemTime, String)| format!("{}  {}\n", format_time(*modified), escape_controls(path));
    newest.iter().rev().map(line).collect::<Vec<_>>().concat()
}

/// Formats a time in RFC 3339, to the second.
fn format_time(at: SystemTime) -> String {
    let at = jiff::Timestamp::try_from(at).unwrap_or_default();
    format!("{at:.0}")
}
