//! `list_files`: lists a directory.

use crate::Error;
use crate::call::Deadline;
use crate::glob::Glob;
use crate::resource_path::{ResourcePath, escape_controls, quote};
use crate::root::{Root, kind};
use crate::walk::{Bounds, Found, walk};
use cap_fs_ext::FollowSymlinks;
use serde::Deserialize;
use std::ops::ControlFlow;
use std::path::Path;

/// The limit on the entries of one answer.
const MAX_ENTRIES: usize = 400;

/// The limit on one answer, in bytes.
const MAX_BYTES: usize = 12 * 1024;

/// The default depth of a listing, in levels.
pub const DEFAULT_DEPTH: usize = 2;

/// The depth of an overview, in levels.
const OVERVIEW_DEPTH: usize = 3;

/// The limit on the entries of an overview.
const MAX_OVERVIEW_ENTRIES: usize = 150;

/// The limit on an overview, in bytes.
const MAX_OVERVIEW_BYTES: usize = 5 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    path: Option<String>,
    depth: Option<usize>,
    glob: Option<String>,
    exclude: Option<String>,
    after: Option<String>,
}

/// Answers a call of `list_files`.
///
/// # Errors
/// A message for the model.
pub(crate) fn list(root: &Root, arguments: &Arguments, deadline: &Deadline) -> Result<String, Error> {
    let listing = Listing::new(arguments, Limits { entries: MAX_ENTRIES, bytes: MAX_BYTES })?;
    let start = root.resource_path(arguments.path.as_deref())?;
    list_entries(root, &start, arguments.depth.unwrap_or(DEFAULT_DEPTH), listing, deadline)
}

/// Lists the upper levels of a resource.
///
/// # Errors
/// If the resource cannot be listed.
pub(crate) fn overview(root: &Root, deadline: &Deadline) -> Result<String, Error> {
    let arguments = Arguments::default();
    let limits = Limits { entries: MAX_OVERVIEW_ENTRIES, bytes: MAX_OVERVIEW_BYTES };
    let listing = Listing::new(&arguments, limits)?;
    list_entries(root, &root.resource_path(None)?, OVERVIEW_DEPTH, listing, deadline)
}

fn list_entries(
    root: &Root,
    start: &ResourcePath,
    depth: usize,
    mut listing: Listing<'_>,
    deadline: &Deadline,
) -> Result<String, Error> {
    let metadata = root.metadata(start.as_path()).map_err(|error| Error::io("listed", &start.describe(), &error))?;
    if metadata.is_file() {
        let path = escape_controls(&start.as_path().to_string_lossy());
        return Ok(format!("{path}  {} bytes\n[the path is that of a file]", metadata.len()));
    }
    if !metadata.is_dir() {
        return Err(format!("{} is {}, not a directory.", start.describe(), kind(&metadata)).into());
    }
    let bounds = Bounds { depth, deadline: deadline.instant() };
    let excluded = listing.exclude.clone();
    let enters = |found: &Found<'_>| !excluded.as_ref().is_some_and(|glob| glob.is_match(found.walk_path, found.name));
    let left_out = walk(root, start, bounds, enters, |found| listing.visit(root, found));
    listing.finish(root, start, left_out.notes())
}

/// The limits of a listing.
#[derive(Debug, Clone, Copy)]
struct Limits {
    entries: usize,
    bytes: usize,
}

/// A listing in progress.
#[derive(Debug)]
struct Listing<'a> {
    glob: Option<Glob>,
    exclude: Option<Glob>,
    /// The path after which the listing begins; `None` once it was found.
    after: Option<&'a str>,
    limits: Limits,
    lines: String,
    /// The number of entries listed.
    listed: usize,
    /// The path of the last entry, after which a later call continues.
    last: String,
    /// Whether the listing stopped at a limit.
    is_full: bool,
}

impl<'a> Listing<'a> {
    fn new(arguments: &'a Arguments, limits: Limits) -> Result<Self, Error> {
        Ok(Self {
            glob: arguments.glob.as_deref().map(Glob::new).transpose()?,
            exclude: arguments.exclude.as_deref().map(Glob::new).transpose()?,
            after: arguments.after.as_deref().map(|after| after.trim_end_matches('/')),
            limits,
            lines: String::new(),
            listed: 0,
            last: String::new(),
            is_full: false,
        })
    }

    fn visit(&mut self, root: &Root, found: &Found<'_>) -> ControlFlow<()> {
        if let Some(after) = self.after {
            if after == found.resource_path {
                self.after = None;
            }
            return ControlFlow::Continue(());
        }
        let matches = |glob: &Glob| glob.is_match(found.walk_path, found.name);
        let is_excluded = self.exclude.as_ref().is_some_and(matches);
        // A glob selects files. Without one, directories are listed, too.
        let is_selected = self.glob.as_ref().is_none_or(|glob| !found.kind.is_dir() && matches(glob));
        if is_excluded || !is_selected {
            return ControlFlow::Continue(());
        }
        let line = format_entry(root, found);
        if self.listed == self.limits.entries || self.lines.len() + line.len() > self.limits.bytes {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        self.lines.push_str(&line);
        self.listed += 1;
        found.resource_path.clone_into(&mut self.last);
        ControlFlow::Continue(())
    }

    fn finish(self, root: &Root, start: &ResourcePath, mut notes: Vec<String>) -> Result<String, Error> {
        if let Some(after) = self.after {
            let after = quote(after);
            return Err(format!(
                "{} has no entry {after}, which is the value of after. List again without after.",
                start.describe()
            )
            .into());
        }
        let entries = if self.listed == 1 { "1 entry".to_owned() } else { format!("{} entries", self.listed) };
        let end = if self.is_full {
            format!("more entries exist: set after to {} to continue", quote(&root.secrets.redact(self.last)))
        } else {
            "end of list".to_owned()
        };
        notes.insert(0, format!("{entries}; {end}"));
        Ok(format!("{}[{}]", self.lines, notes.join("; ")))
    }
}

/// Formats an entry: its path relative to the resource, and its type or size.
fn format_entry(root: &Root, found: &Found<'_>) -> String {
    let path = escape_controls(found.resource_path);
    if found.kind.is_dir() {
        return format!("{path}/\n");
    }
    if found.kind.is_symlink() {
        let target =
            root.resolve(Path::new(found.resource_path), FollowSymlinks::No).and_then(|link| link.link_target());
        let target = target.map_or_else(|_| "?".to_owned(), |target| escape_controls(&target.to_string_lossy()));
        return format!("{path} -> {target}\n");
    }
    match found.entry.metadata() {
        Ok(metadata) if metadata.is_file() => format!("{path}  {} bytes\n", metadata.len()),
        Ok(metadata) => format!("{path}  ({})\n", kind(&metadata)),
        Err(_) => format!("{path}  (cannot be read)\n"),
    }
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
