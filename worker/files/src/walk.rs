//! A breadth-first walk through the directories of a resource, ordered by name within each directory.

use crate::resource_path::{ResourcePath, is_version_control_name, quote};
use crate::root::Root;
use cap_std::fs::{DirEntry, FileType};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// The limit on entries read from one directory.
const MAX_ENTRIES_PER_DIR: usize = 10_000;

/// The limit on entries of one walk.
const MAX_ENTRIES: usize = 100_000;

/// The limit on queued directories.
const MAX_QUEUED_DIRS: usize = 10_000;

/// The limit on the directories that one note lists.
const MAX_LISTED_DIRS: usize = 5;

/// An entry that a walk visits.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// Its path, relative to the start of the walk.
    pub(crate) walk_path: &'a str,
    /// Its path, relative to the resource.
    pub(crate) resource_path: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its type; links are not followed.
    pub(crate) kind: FileType,
    /// The entry.
    pub(crate) entry: &'a DirEntry,
}

/// The directories that a walk left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Version control directories.
    pub(crate) version_control: Vec<String>,
    /// The number of directories beyond the limits on depth and on queued directories.
    pub(crate) deeper: usize,
    /// Directories that cannot be read.
    pub(crate) unreadable: Vec<String>,
    /// Directories with more than [`MAX_ENTRIES_PER_DIR`] entries.
    pub(crate) crowded: Vec<String>,
    /// The reason that the walk ended early, if it did.
    pub(crate) stopped: Option<&'static str>,
}

/// The limits of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The number of levels below the start.
    pub(crate) depth: usize,
    /// The deadline.
    pub(crate) deadline: Instant,
}

/// Walks the entries below `start`. `enters` returns whether to descend into a directory. The walk ends if `visit` breaks.
pub(crate) fn walk(
    root: &Root,
    start: &ResourcePath,
    bounds: Bounds,
    enters: impl Fn(&Found<'_>) -> bool,
    mut visit: impl FnMut(&Found<'_>) -> ControlFlow<()>,
) -> LeftOut {
    let mut left_out = LeftOut::default();
    let base = if start.is_root() { String::new() } else { format!("{}/", start.as_path().to_string_lossy()) };
    let within_version_control = start.is_in_version_control();
    let mut queue = VecDeque::from([(String::new(), 1)]);
    let mut entry_count = 0;
    while let Some((dir, level)) = queue.pop_front() {
        let Some((entries, is_complete)) = read_entries(root, &format!("{base}{dir}")) else {
            left_out.unreadable.push(dir);
            continue;
        };
        if !is_complete {
            left_out.crowded.push(dir.clone());
        }
        for (name, entry) in &entries {
            entry_count += 1;
            if entry_count > MAX_ENTRIES {
                left_out.stopped = Some("too many entries");
            } else if Instant::now() > bounds.deadline {
                left_out.stopped = Some("time limit");
            }
            if left_out.stopped.is_some() {
                return left_out;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && root.is_hidden(entry) {
                continue;
            }
            let walk_path = format!("{dir}{name}");
            let resource_path = format!("{base}{walk_path}");
            let found = Found { walk_path: &walk_path, resource_path: &resource_path, name, kind, entry };
            if visit(&found).is_break() {
                return left_out;
            }
            if !kind.is_dir() || !enters(&found) {
                continue;
            }
            if is_version_control_name(name) && !within_version_control {
                left_out.version_control.push(walk_path);
            } else if level >= bounds.depth || queue.len() >= MAX_QUEUED_DIRS {
                left_out.deeper += 1;
            } else {
                queue.push_back((format!("{walk_path}/"), level + 1));
            }
        }
    }
    left_out
}

/// Returns the entries of a directory, sorted by name, and whether they are complete; `None` if the directory cannot be read.
fn read_entries(root: &Root, dir: &str) -> Option<(Vec<(String, DirEntry)>, bool)> {
    let mut dir_entries = root.entries(Path::new(if dir.is_empty() { "." } else { dir })).ok()?;
    let with_name = |entry: DirEntry| (entry.file_name().to_string_lossy().into_owned(), entry);
    let mut entries: Vec<(String, DirEntry)> =
        dir_entries.by_ref().take(MAX_ENTRIES_PER_DIR).flatten().map(with_name).collect();
    entries.sort_by(|(left, _), (right, _)| left.cmp(right));
    Some((entries, dir_entries.next().is_none()))
}

impl LeftOut {
    /// Returns one note for each kind of omission.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let list = |what: &str, dirs: &[String]| {
            let listed: Vec<String> = dirs.iter().take(MAX_LISTED_DIRS).map(|dir| quote(dir)).collect();
            let more = if dirs.len() > listed.len() {
                format!(" and {} more", dirs.len() - listed.len())
            } else {
                String::new()
            };
            (!dirs.is_empty()).then(|| format!("{what}: {}{more}", listed.join(", ")))
        };
        notes.extend(list("version control directories, not entered", &self.version_control));
        notes.extend(list("directories that cannot be read", &self.unreadable));
        notes.extend(list(&format!("more than {MAX_ENTRIES_PER_DIR} entries, not all searched"), &self.crowded));
        if self.deeper > 0 {
            notes.push(format!("{} deeper directories, not entered", self.deeper));
        }
        notes.extend(self.stopped.map(|reason| format!("stopped early: {reason}")));
        notes
    }
}
