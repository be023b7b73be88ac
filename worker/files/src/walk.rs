//! A walk through a directory, level by level, in the order of names: what is near comes before what is deep.

use crate::place::{Place, is_version_controls, shown};
use crate::root::Root;
use cap_std::fs::{DirEntry, FileType};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// The most entries of one directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The most entries that a walk looks at.
const MAX_SEEN: usize = 100_000;

/// The most directories that are still to be looked at.
const MAX_QUEUED: usize = 10_000;

/// Something that a walk comes by.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// Its path, relative to where the walk begins.
    pub(crate) path: &'a str,
    /// Its path, relative to the resource.
    pub(crate) place: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// What it is; links are not followed.
    pub(crate) kind: FileType,
    /// The entry.
    pub(crate) entry: &'a DirEntry,
}

/// What a walk left out.
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
    /// Why the walk ended before all was seen, where it did.
    pub(crate) cut: Option<&'static str>,
}

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How many levels.
    pub(crate) depth: usize,
    /// Until when.
    pub(crate) deadline: Instant,
}

/// Walks through what is below a place. `visit` says whether to go on; `enters` whether to look into a directory.
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

/// The entries of a directory by name, and whether these are all; none where it cannot be read.
fn entries(root: &Root, dir: &str) -> Option<(Vec<(String, DirEntry)>, bool)> {
    let mut listed = root.entries(Path::new(if dir.is_empty() { "." } else { dir })).ok()?;
    let named = |entry: DirEntry| (entry.file_name().to_string_lossy().into_owned(), entry);
    let mut entries: Vec<(String, DirEntry)> = listed.by_ref().take(MAX_ENTRIES).flatten().map(named).collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some((entries, listed.next().is_none()))
}

impl LeftOut {
    /// What is said of it: a sentence each.
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
