//! `list_files`: lists a directory.

use crate::Error;
use crate::call::Deadline;
use crate::glob::Glob;
use crate::place::{Place, escaped};
use crate::root::{Root, kind};
use crate::walk::{Bounds, Found, walk};
use cap_fs_ext::FollowSymlinks;
use serde::Deserialize;
use std::ops::ControlFlow;
use std::path::Path;

/// The most entries of one answer.
const MAX_LISTED: usize = 400;

/// The largest answer, in bytes.
const MAX_BYTES: usize = 12 * 1024;

/// The default depth of a listing, in levels.
pub const DEFAULT_DEPTH: usize = 2;

/// How deep an overview goes, how many entries it has at most, and how many bytes.
const OVERVIEW_DEPTH: usize = 3;
const OVERVIEW_LISTED: usize = 150;
const OVERVIEW_BYTES: usize = 5 * 1024;

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

/// Answers a call.
///
/// # Errors
/// A message for the model.
pub(crate) fn list(root: &Root, arguments: &Arguments, deadline: &Deadline) -> Result<String, Error> {
    let listing = Listing::new(arguments, (MAX_LISTED, MAX_BYTES))?;
    listed(root, &root.place(arguments.path.as_deref())?, arguments.depth.unwrap_or(DEFAULT_DEPTH), listing, deadline)
}

/// Lists the upper levels of a resource.
///
/// # Errors
/// If the resource cannot be listed.
pub(crate) fn overview(root: &Root, deadline: &Deadline) -> Result<String, Error> {
    let all = Arguments::default();
    listed(root, &root.place(None)?, OVERVIEW_DEPTH, Listing::new(&all, (OVERVIEW_LISTED, OVERVIEW_BYTES))?, deadline)
}

fn listed(
    root: &Root,
    start: &Place,
    depth: usize,
    mut listing: Listing<'_>,
    deadline: &Deadline,
) -> Result<String, Error> {
    let metadata = root.metadata(start.path()).map_err(|error| Error::io("listed", &start.shown(), &error))?;
    if metadata.is_file() {
        let path = escaped(&start.path().to_string_lossy());
        return Ok(format!("{path}  {} bytes\n[it is one file]", metadata.len()));
    }
    if !metadata.is_dir() {
        return Err(format!("{} is {}, no directory.", start.shown(), kind(&metadata)).into());
    }
    let bounds = Bounds { depth, deadline: deadline.instant() };
    let excluded = listing.exclude.clone();
    let enters = |found: &Found<'_>| !excluded.as_ref().is_some_and(|glob| glob.is_match(found.path, found.name));
    let left_out = walk(root, start, bounds, enters, |found| listing.visit(root, found));
    listing.finish(root, start, left_out.notes())
}

/// A listing in progress.
#[derive(Debug)]
struct Listing<'a> {
    glob: Option<Glob>,
    exclude: Option<Glob>,
    /// The path after which the listing continues, until it is found.
    after: Option<&'a str>,
    /// The limits: entries and bytes.
    most: (usize, usize),
    lines: String,
    listed: usize,
    last: String,
    is_full: bool,
}

impl<'a> Listing<'a> {
    fn new(arguments: &'a Arguments, most: (usize, usize)) -> Result<Self, Error> {
        Ok(Self {
            glob: arguments.glob.as_deref().map(Glob::new).transpose()?,
            exclude: arguments.exclude.as_deref().map(Glob::new).transpose()?,
            after: arguments.after.as_deref().map(|after| after.trim_end_matches('/')),
            most,
            lines: String::new(),
            listed: 0,
            last: String::new(),
            is_full: false,
        })
    }

    fn visit(&mut self, root: &Root, found: &Found<'_>) -> ControlFlow<()> {
        if let Some(after) = self.after {
            if after == found.place {
                self.after = None;
            }
            return ControlFlow::Continue(());
        }
        let matches = |glob: &Option<Glob>| glob.as_ref().map(|glob| glob.is_match(found.path, found.name));
        // Directories are listed only without a pattern: a pattern selects files.
        if matches(&self.exclude) == Some(true) || matches(&self.glob).is_some_and(|is| !is || found.kind.is_dir()) {
            return ControlFlow::Continue(());
        }
        let line = line(root, found);
        if self.listed == self.most.0 || self.lines.len() + line.len() > self.most.1 {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        self.lines.push_str(&line);
        self.listed += 1;
        found.place.clone_into(&mut self.last);
        ControlFlow::Continue(())
    }

    fn finish(self, root: &Root, start: &Place, mut notes: Vec<String>) -> Result<String, Error> {
        if let Some(after) = self.after {
            let after = crate::place::shown(after);
            return Err(
                format!("The listing of {} does not come by {after}: list it from the start.", start.shown()).into()
            );
        }
        let entries = if self.listed == 1 { "1 entry".to_owned() } else { format!("{} entries", self.listed) };
        let end = if self.is_full {
            format!("there are more: go on with after {}", crate::place::shown(&root.secrets.text(self.last)))
        } else {
            "the end".to_owned()
        };
        notes.insert(0, format!("{entries}; {end}"));
        Ok(format!("{}[{}]", self.lines, notes.join("; ")))
    }
}

/// Formats an entry: its path relative to the resource, and its type or size.
fn line(root: &Root, found: &Found<'_>) -> String {
    let place = escaped(found.place);
    if found.kind.is_dir() {
        return format!("{place}/\n");
    }
    if found.kind.is_symlink() {
        let target = root.at(Path::new(found.place), FollowSymlinks::No).and_then(|at| at.link());
        let target = target.map_or_else(|_| "?".to_owned(), |target| escaped(&target.to_string_lossy()));
        return format!("{place} -> {target}\n");
    }
    match found.entry.metadata() {
        Ok(metadata) if metadata.is_file() => format!("{place}  {} bytes\n", metadata.len()),
        Ok(metadata) => format!("{place}  ({})\n", kind(&metadata)),
        Err(_) => format!("{place}  (cannot be looked at)\n"),
    }
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
