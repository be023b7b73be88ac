//! The files that were changed last, by the times that the file system keeps.

use super::history;
use crate::Error;
use crate::call::Deadline;
use crate::place::{Place, escaped};
use crate::root::Root;
use crate::walk::{Bounds, walk};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{SystemTime, UNIX_EPOCH};

/// The limit on the files listed.
const MAX_FILES: usize = 15;

/// The depth of the walk, in levels.
const DEPTH: usize = 12;

/// Lists the files changed last, and the last git operations.
pub(super) fn overview(root: &Root, deadline: &Deadline) -> Result<String, Error> {
    let mut newest: BTreeSet<(SystemTime, String)> = BTreeSet::new();
    if let Some(name) = &root.file {
        let opened = root.open_file(&root.place(None)?)?;
        let changed = opened.metadata.modified().map_or(UNIX_EPOCH, cap_std::time::SystemTime::into_std);
        newest.insert((changed, name.to_string_lossy().into_owned()));
        return Ok(render(&newest));
    }
    let bounds = Bounds { depth: DEPTH, deadline: deadline.instant() };
    let left_out = walk(
        root,
        &Place::parse("")?,
        bounds,
        |_| true,
        |found| {
            let metadata = if found.kind.is_file() { found.entry.metadata().ok() } else { None };
            if let Some(changed) = metadata.and_then(|metadata| metadata.modified().ok()) {
                newest.insert((changed.into_std(), found.place.to_owned()));
            }
            if newest.len() > MAX_FILES {
                newest.pop_first();
            }
            ControlFlow::Continue(())
        },
    );
    let cut = left_out.cut.map_or_else(String::new, |why| format!("[the walk was cut short: {why}]\n"));
    Ok([render(&newest), cut, history::recent_moves(root).unwrap_or_default()].concat())
}

fn render(newest: &BTreeSet<(SystemTime, String)>) -> String {
    let line = |(changed, place): &(SystemTime, String)| format!("{}  {}\n", time(*changed), escaped(place));
    newest.iter().rev().map(line).collect::<Vec<_>>().concat()
}

/// Formats a time in RFC 3339, to the second.
fn time(at: SystemTime) -> String {
    let at = jiff::Timestamp::try_from(at).unwrap_or_default();
    format!("{at:.0}")
}
