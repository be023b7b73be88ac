//! `search_files`: finds lines in text files.

use crate::Error;
use crate::call::Deadline;
use crate::glob::Glob;
use crate::resource_path::{ResourcePath, escape_controls, quote};
use crate::root::{Opened, OpenedPath, Root, kind};
use crate::walk::{Bounds, Found, walk};
use cap_fs_ext::FollowSymlinks;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use std::io;
use std::ops::ControlFlow;

mod lines;

/// The limit on the matches of one answer.
const MAX_MATCHES: usize = 100;

/// The limit on the matches of one file.
const MAX_MATCHES_PER_FILE: usize = 20;

/// The limit on one answer, in bytes.
const MAX_BYTES: usize = 12 * 1024;

/// The limit on the context lines before and after a match.
const MAX_CONTEXT_LINES: usize = 5;

/// The limit on a compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

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

/// Answers a call of `search_files`.
///
/// # Errors
/// A message for the model.
pub(crate) fn search(root: &Root, arguments: &Arguments, deadline: &Deadline) -> Result<String, Error> {
    let start = root.resource_path(arguments.path.as_deref())?;
    let mut search = Search::new(arguments, deadline)?;
    let metadata = root.metadata(start.as_path()).map_err(|error| Error::io("searched", &start.describe(), &error))?;
    if metadata.is_file() {
        let opened = root.open_file(&start)?;
        let path = start.as_path().to_string_lossy().into_owned();
        // No further file follows, so it does not matter whether the search would stop.
        let _ =
            search.search_file(root, &path, &opened).map_err(|error| Error::io("read", &start.describe(), &error))?;
        return search.finish(root, &start, Vec::new());
    }
    if !metadata.is_dir() {
        return Err(format!(
            "{} is {}, and only files and directories can be searched.",
            start.describe(),
            kind(&metadata)
        )
        .into());
    }
    let excluded = search.exclude.clone();
    let enters = |found: &Found<'_>| !excluded.as_ref().is_some_and(|glob| glob.is_match(found.walk_path, found.name));
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
    /// The file after which the search begins; `None` once it was found.
    after: Option<&'a str>,
    context: usize,
    deadline: &'a Deadline,
    text: String,
    /// The number of matches in the answer.
    matches: usize,
    /// The number of files with matches in the answer.
    files: usize,
    /// The number of files that were searched.
    searched: usize,
    /// The number of binary files.
    binary: usize,
    unreadable: Vec<String>,
    /// The last file with matches in the answer, after which a later call continues.
    last: Option<String>,
    /// Whether the search stopped because the answer reached a limit.
    is_full: bool,
    /// Whether the search stopped within a file, at the deadline.
    timed_out: bool,
}

impl<'a> Search<'a> {
    fn new(arguments: &'a Arguments, deadline: &'a Deadline) -> Result<Self, Error> {
        Ok(Self {
            pattern: compile_pattern(arguments)?,
            glob: arguments.glob.as_deref().map(Glob::new).transpose()?,
            exclude: arguments.exclude.as_deref().map(Glob::new).transpose()?,
            after: arguments.after.as_deref(),
            context: arguments.context.min(MAX_CONTEXT_LINES),
            deadline,
            text: String::new(),
            matches: 0,
            files: 0,
            searched: 0,
            binary: 0,
            unreadable: Vec::new(),
            last: None,
            is_full: false,
            timed_out: false,
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
        if !found.kind.is_file()
            || self.exclude.as_ref().is_some_and(matches)
            || !self.glob.as_ref().is_none_or(matches)
        {
            return ControlFlow::Continue(());
        }
        // A path that is too long for a call is skipped.
        let Ok(path) = ResourcePath::parse(found.resource_path) else { return ControlFlow::Continue(()) };
        let searched = match root.open_regular(&path, FollowSymlinks::No) {
            Ok(OpenedPath::Regular(opened)) => self.search_file(root, found.resource_path, &opened),
            // Another process has replaced the file.
            Ok(OpenedPath::Other(_)) => Ok(ControlFlow::Continue(())),
            Err(error) => Err(error),
        };
        searched.unwrap_or_else(|_| {
            self.unreadable.push(found.resource_path.to_owned());
            ControlFlow::Continue(())
        })
    }

    /// Searches a file. If its matches do not fit into the answer, the search ends before this file.
    fn search_file(&mut self, root: &Root, path: &str, opened: &Opened) -> io::Result<ControlFlow<()>> {
        let max_matches = MAX_MATCHES_PER_FILE.min(MAX_MATCHES - self.matches);
        let found = lines::find(opened, &root.secrets, &self.pattern, (self.context, max_matches), self.deadline)?;
        self.searched += 1;
        let Some(found) = found else {
            self.binary += 1;
            return Ok(ControlFlow::Continue(()));
        };
        self.timed_out |= found.timed_out;
        if found.matches == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let mut text = format!("{}\n{}", escape_controls(path), found.text);
        if found.has_more {
            text.push_str("  [this file has more matches: search this file alone, or read it]\n");
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

    fn finish(self, root: &Root, start: &ResourcePath, left_out: Vec<String>) -> Result<String, Error> {
        if let Some(after) = self.after {
            return Err(format!(
                "{} has no file {}, which is the value of after. Search again without after.",
                start.describe(),
                quote(after)
            )
            .into());
        }
        let mut notes = vec![format!(
            "{} in {}, of {} searched",
            format_count(self.matches, "match", "matches"),
            format_count(self.files, "file", "files"),
            self.searched
        )];
        if let Some(last) = self.last.filter(|_| self.is_full) {
            notes.push(format!(
                "more matches may exist: set after to {} to continue",
                quote(&root.secrets.redact(last))
            ));
        }
        if self.binary > 0 {
            notes.push(format!("{} not searched", format_count(self.binary, "binary file", "binary files")));
        }
        if !self.unreadable.is_empty() {
            notes.push(format!("{} cannot be read", format_count(self.unreadable.len(), "file", "files")));
        }
        if self.timed_out {
            notes.push("time limit: the last file was not searched to its end".to_owned());
        }
        notes.extend(left_out);
        Ok(format!("{}[{}]", self.text, notes.join("; ")))
    }
}

/// Formats a number with its noun.
fn format_count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Compiles the pattern of a call. Matching takes time linear in the length of a line.
fn compile_pattern(arguments: &Arguments) -> Result<Regex, Error> {
    let pattern = if arguments.literal { regex::escape(&arguments.pattern) } else { arguments.pattern.clone() };
    let mut builder = RegexBuilder::new(&pattern);
    builder.case_insensitive(arguments.ignore_case);
    builder.size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES).nest_limit(64);
    builder.build().map_err(|error| {
        let error = error.to_string();
        let end = error.floor_char_boundary(500);
        format!(
            "The pattern is invalid: {}. Patterns have no look-around and no back-references. Set literal to search for the text \
             itself.",
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
