//! `search_files`: finds lines in text files.

use crate::Error;
use crate::call::Deadline;
use crate::glob::Glob;
use crate::place::{Place, escaped, shown};
use crate::root::{Opened, Root, kind};
use crate::walk::{Bounds, Found, walk};
use cap_fs_ext::FollowSymlinks;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use std::io;
use std::ops::ControlFlow;

mod lines;

/// The most matches of one answer.
const MAX_MATCHES: usize = 100;

/// The most matches of one file.
const MAX_PER_FILE: usize = 20;

/// The largest answer, in bytes.
const MAX_BYTES: usize = 12 * 1024;

/// The largest compiled pattern, in bytes.
const MAX_COMPILED: usize = 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    pattern: String,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    path: Option<String>,
    glob: Option<String>,
    exclude: Option<String>,
    #[serde(default)]
    context: usize,
    after: Option<String>,
}

/// Answers a call.
///
/// # Errors
/// A message for the model.
pub(crate) fn search(root: &Root, arguments: &Arguments, deadline: &Deadline) -> Result<String, Error> {
    let start = root.place(arguments.path.as_deref())?;
    let mut search = Search::new(arguments, deadline)?;
    let metadata = root.metadata(start.path()).map_err(|error| Error::io("searched", &start.shown(), &error))?;
    if metadata.is_file() {
        let opened = root.open_file(&start)?;
        let path = start.path().to_string_lossy().into_owned();
        let _ = search.file(root, &path, &opened).map_err(|error| Error::io("read", &start.shown(), &error))?;
        return search.finish(root, &start, Vec::new());
    }
    if !metadata.is_dir() {
        return Err(format!("{} is {}, nothing that can be searched.", start.shown(), kind(&metadata)).into());
    }
    let excluded = search.exclude.clone();
    let enters = |found: &Found<'_>| !excluded.as_ref().is_some_and(|glob| glob.is_match(found.path, found.name));
    let bounds = Bounds { depth: usize::MAX, deadline: deadline.instant() };
    let left_out = walk(root, &start, bounds, enters, |found| search.visit(root, found));
    search.finish(root, &start, left_out.notes())
}

/// A search in progress.
#[derive(Debug)]
struct Search<'a> {
    pattern: Regex,
    glob: Option<Glob>,
    exclude: Option<Glob>,
    /// The file after which the search continues, until it is found.
    after: Option<&'a str>,
    context: usize,
    deadline: &'a Deadline,
    text: String,
    matches: usize,
    files: usize,
    searched: usize,
    binary: usize,
    unreadable: Vec<String>,
    /// The last file with matches in the answer, after which a later call continues.
    last: Option<String>,
    is_full: bool,
    is_cut: bool,
}

impl<'a> Search<'a> {
    fn new(arguments: &'a Arguments, deadline: &'a Deadline) -> Result<Self, Error> {
        Ok(Self {
            pattern: pattern(arguments)?,
            glob: arguments.glob.as_deref().map(Glob::new).transpose()?,
            exclude: arguments.exclude.as_deref().map(Glob::new).transpose()?,
            after: arguments.after.as_deref(),
            context: arguments.context.min(5),
            deadline,
            text: String::new(),
            matches: 0,
            files: 0,
            searched: 0,
            binary: 0,
            unreadable: Vec::new(),
            last: None,
            is_full: false,
            is_cut: false,
        })
    }

    fn visit(&mut self, root: &Root, found: &Found<'_>) -> ControlFlow<()> {
        if let Some(after) = self.after {
            if after == found.place {
                self.after = None;
            }
            return ControlFlow::Continue(());
        }
        let is_meant = |glob: &Glob| glob.is_match(found.path, found.name);
        if !found.kind.is_file()
            || self.exclude.as_ref().is_some_and(is_meant)
            || !self.glob.as_ref().is_none_or(is_meant)
        {
            return ControlFlow::Continue(());
        }
        // Names that are not UTF-8 cannot be addressed.
        let Ok(place) = Place::parse(found.place) else { return ControlFlow::Continue(()) };
        let searched = match root.open_regular(&place, FollowSymlinks::No) {
            Ok(Ok(opened)) => self.file(root, found.place, &opened),
            // The file was replaced meanwhile.
            Ok(Err(_)) => Ok(ControlFlow::Continue(())),
            Err(error) => Err(error),
        };
        searched.unwrap_or_else(|_| {
            self.unreadable.push(found.place.to_owned());
            ControlFlow::Continue(())
        })
    }

    /// Searches a file. If its matches do not fit into the answer, the search ends before it.
    fn file(&mut self, root: &Root, path: &str, opened: &Opened) -> io::Result<ControlFlow<()>> {
        let most = MAX_PER_FILE.min(MAX_MATCHES - self.matches);
        let found = lines::matching(opened, &root.secrets, &self.pattern, (self.context, most), self.deadline)?;
        self.searched += 1;
        let Some(found) = found else {
            self.binary += 1;
            return Ok(ControlFlow::Continue(()));
        };
        self.is_cut |= found.is_cut;
        if found.matches == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let mut text = format!("{}\n{}", escaped(path), found.text);
        if found.has_more {
            text.push_str("  [there are more in this file: search it alone, or read it]\n");
        }
        if !self.text.is_empty() && self.text.len() + text.len() > MAX_BYTES {
            self.is_full = true;
            return Ok(ControlFlow::Break(()));
        }
        self.text.push_str(&text);
        self.matches += found.matches;
        self.files += 1;
        self.last = Some(path.to_owned());
        if self.matches >= MAX_MATCHES {
            self.is_full = true;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn finish(self, root: &Root, start: &Place, left_out: Vec<String>) -> Result<String, Error> {
        if let Some(after) = self.after {
            return Err(format!(
                "The search of {} does not come by {}: search from the start.",
                start.shown(),
                shown(after)
            )
            .into());
        }
        let mut notes = vec![format!(
            "{} in {}, of {} looked at",
            counted(self.matches, "match", "matches"),
            counted(self.files, "file", "files"),
            self.searched
        )];
        if let Some(last) = self.last.filter(|_| self.is_full) {
            notes.push(format!("there may be more: go on with after {}", shown(&root.secrets.text(last))));
        }
        if self.binary > 0 {
            notes.push(format!("{} no text, not searched", self.binary));
        }
        if !self.unreadable.is_empty() {
            notes.push(format!("{} cannot be read", counted(self.unreadable.len(), "file", "files")));
        }
        if self.is_cut {
            notes.push("the last file was not searched to its end: it takes too long".to_owned());
        }
        notes.extend(left_out);
        Ok(format!("{}[{}]", self.text, notes.join("; ")))
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Compiles the pattern. Matching takes time linear in the length of a line.
fn pattern(arguments: &Arguments) -> Result<Regex, Error> {
    let pattern = if arguments.literal { regex::escape(&arguments.pattern) } else { arguments.pattern.clone() };
    let mut builder = RegexBuilder::new(&pattern);
    builder.case_insensitive(arguments.ignore_case);
    builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).nest_limit(64);
    builder.build().map_err(|error| {
        let error = error.to_string();
        let end = error.floor_char_boundary(500);
        format!(
            "The pattern cannot be used: {}. It has no look-around and no back-references; set literal to search for it \
             as it stands.",
            error.get(..end).unwrap_or_default().trim_end_matches(['.', '\n'])
        )
        .into()
    })
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
