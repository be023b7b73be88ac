//! A breadth-first walk through a directory, ordered by name within each directory.

use crate::place::{Place, is_version_controls, shown};
use crate::root::Root;
use cap_std::fs::{DirEntry, FileType};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// The limit on entries read from one directory.
const MAX_ENTRIES: usize = 10_000;

/// The limit on entries of one walk.
const MAX_SEEN: usize = 100_000;

/// The limit on queued directories.
const MAX_QUEUED: usize = 10_000;

/// An entry that a walk visits.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// Its path, relative to where the walk begins.
    pub(crate) path: &'a str,
    /// Its path, relative to the resource.
    pub(crate) place: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its type; links are not followed.
    pub(crate) kind: FileType,
    /// The entry.
    pub(crate) entry: &'a DirEntry,
}

/// The parts that a walk left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Directories of version control.
    pub(crate) version_control: Vec<String>,
    /// Directories that are deeper than was asked for.
    pub(crate) deeper: usize,
    /// Directories that cannot be read.
    pub(crate) unreadable: Vec<String>,
    /// Directories with more entries than are looked at.
    pub(crate) crowded: Vec<String>,
    /// The reason why the walk ended early, if it did.
    pub(crate) cut: Option<&'static str>,
}

/// The limits of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The number of levels.
    pub(crate) depth: usize,
    /// The deadline.
    pub(crate) deadline: Instant,
}

/// Walks the entries below a place. `visit` decides whether to continue, `enters` whether to descend into a directory.
pub(crate) fn walk(
    root: &Root,
    start: &Place,
    bounds: Bounds,
    enters: impl Fn(&Found<'_>) -> bool,
    mut visit: impl FnMut(&Found<'_>) -> ControlFlow<()>,
) -> LeftOut {
    let mut left_out = LeftOut::default();
    let base = if start.is_root() { String::new() } else { format!("{}/", start.path().to_string_lossy()) };
    let within_version_control = start.is_version_controls();
    let mut queue = VecDeque::from([(String::new(), 1)]);
    let mut seen = 0;
    while let Some((dir, level)) = queue.pop_front() {
        let Some((entries, is_whole)) = entries(root, &format!("{base}{dir}")) else {
            left_out.unreadable.push(dir);
            continue;
        };
        if !is_whole {
            left_out.crowded.push(dir.clone());
        }
        for (name, entry) in &entries {
            seen += 1;
            if seen > MAX_SEEN {
                left_out.cut = Some("there is more than one walk looks at");
            } else if Instant::now() > bounds.deadline {
                left_out.cut = Some("it takes too long");
            }
            if left_out.cut.is_some() {
                return left_out;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && root.hides(entry) {
                continue;
            }
            let path = format!("{dir}{name}");
            let place = format!("{base}{path}");
            let found = Found { path: &path, place: &place, name, kind, entry };
            if visit(&found).is_break() {
                return left_out;
            }
            if !kind.is_dir() || !enters(&found) {
            } else if is_version_controls(name) && !within_version_control {
                left_out.version_control.push(path);
            } else if level >= bounds.depth || queue.len() >= MAX_QUEUED {
                left_out.deeper += 1;
            } else {
                queue.push_back((format!("{path}/"), level + 1));
            }
        }
    }
    left_out
}

/// Returns the entries of a directory by name, and whether they are complete; `None` if it cannot be read.
fn entries(root: &Root, dir: &str) -> Option<(Vec<(String, DirEntry)>, bool)> {
    let mut listed = root.entries(Path::new(if dir.is_empty() { "." } else { dir })).ok()?;
    let named = |entry: DirEntry| (entry.file_name().to_string_lossy().into_owned(), entry);
    let mut entries: Vec<(String, DirEntry)> = listed.by_ref().take(MAX_ENTRIES).flatten().map(named).collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some((entries, listed.next().is_none()))
}

impl LeftOut {
    /// Returns one note for each kind of omission.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let named = |what: &str, dirs: &[String]| {
            let shown: Vec<String> = dirs.iter().take(5).map(|dir| shown(dir)).collect();
            let more = if dirs.len() > shown.len() {
                format!(" and {} more", dirs.len() - shown.len())
            } else {
                String::new()
            };
            (!dirs.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
        };
        notes.extend(named("of version control, not looked into", &self.version_control));
        notes.extend(named("cannot be read", &self.unreadable));
        notes.extend(named(&format!("more than {MAX_ENTRIES} entries, not all looked at"), &self.crowded));
        if self.deeper > 0 {
            notes.push(format!("{} directories are deeper and not looked into", self.deeper));
        }
        notes.extend(self.cut.map(|why| format!("the walk was cut short: {why}")));
        notes
    }
}
