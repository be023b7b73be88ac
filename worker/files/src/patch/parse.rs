//! The parser of unified diffs.

use crate::Error;
use crate::resource_path::quote;

/// The kind of change to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Create,
    Modify,
    Remove,
}

/// The part of a patch for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) path: String,
    pub(super) change: Change,
    pub(super) hunks: Vec<Hunk>,
}

/// A hunk: the old and the new lines at one position of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The number of the first old line, from 1. In a hunk without old lines, the number of the line before it.
    pub(super) start: usize,
    pub(super) lines: Vec<Line>,
    /// Whether the patch says that the last old line has no line ending.
    pub(super) old_lacks_newline: bool,
    /// Whether the patch says that the last new line has no line ending.
    pub(super) new_lacks_newline: bool,
}

/// A line of a hunk, without its line ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Context(String),
    Removed(String),
    Added(String),
}

impl Hunk {
    /// Returns the old lines.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(Line::old)
    }
}

impl Line {
    /// Returns the text of an old line; `None` for an added line.
    pub(super) fn old(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Removed(text) => Some(text),
            Self::Added(_) => None,
        }
    }
}

/// Parses a patch. Each file has a `---` and a `+++` line and at least one hunk. The heading of a hunk has
/// the correct numbers of lines.
///
/// # Errors
/// The reason, without a full stop at the end.
pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, Error> {
    let mut lines = Lines::new(patch);
    let mut files: Vec<FilePatch> = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(old) = line.strip_prefix("--- ") {
            let number = lines.number;
            let new = lines.next().and_then(|line| line.strip_prefix("+++ "));
            let new = new.ok_or_else(|| format!("line {number} begins a file with ---, but no +++ line follows"))?;
            files.push(parse_file(old, new, &mut lines)?);
        } else if line.starts_with("@@") {
            return Err(format!("the hunk in line {} has no --- and +++ lines before it", lines.number).into());
        } else if let Some(operation) = unsupported_operation(line) {
            return Err(format!("line {} is not supported: {} ({operation})", lines.number, quote(line)).into());
        }
    }
    if files.is_empty() { Err("it contains no file, which begins with a --- and a +++ line".into()) } else { Ok(files) }
}

/// Returns the unsupported operation that a line between files requests. Other lines are ignored.
fn unsupported_operation(line: &str) -> Option<&'static str> {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| line.starts_with(prefix));
    if begins(&["rename from ", "rename to ", "copy from ", "copy to "]) {
        Some("files cannot be renamed or copied: remove the old file and create the new one")
    } else if begins(&["old mode ", "new mode "]) || (begins(&["new file mode "]) && !line.ends_with("100644")) {
        Some("the mode of a file cannot be changed")
    } else if begins(&["GIT binary patch", "Binary files "]) {
        Some("binary files cannot be patched")
    } else {
        None
    }
}

/// Parses the hunks of a file, after its `---` and `+++` lines.
fn parse_file(old: &str, new: &str, lines: &mut Lines<'_>) -> Result<FilePatch, Error> {
    let (old, new) = (without_timestamp(old), without_timestamp(new));
    let (change, path) = match (old == NO_FILE, new == NO_FILE) {
        (true, true) => return Err("a file has /dev/null in both its --- and its +++ line".into()),
        (true, false) => (Change::Create, new.strip_prefix("b/").unwrap_or(new)),
        (false, true) => (Change::Remove, old.strip_prefix("a/").unwrap_or(old)),
        (false, false) => (Change::Modify, common_path(old, new)?),
    };
    let mut hunks: Vec<Hunk> = Vec::new();
    while let Some(heading) = lines.next_if(|line| line.starts_with("@@")) {
        hunks.push(parse_hunk(heading, lines)?);
    }
    if hunks.is_empty() {
        return Err(format!("{} has no hunk, which begins with @@", quote(path)).into());
    }
    Ok(FilePatch { path: path.to_owned(), change, hunks })
}

/// The path of a file that does not exist before or after the patch.
const NO_FILE: &str = "/dev/null";

/// Returns the path in a `---` or `+++` line, without the timestamp that may follow.
fn without_timestamp(heading: &str) -> &str {
    heading.split('\t').next().unwrap_or_default().trim_end_matches(['\r', ' '])
}

/// Returns the path of a modified file, which must be the same in both lines.
fn common_path<'a>(old: &'a str, new: &'a str) -> Result<&'a str, Error> {
    let without_prefixes = old.strip_prefix("a/").zip(new.strip_prefix("b/"));
    let (old, new) = without_prefixes.unwrap_or((old, new));
    if old == new {
        Ok(new)
    } else {
        Err(format!("{} becomes {}, but files cannot be renamed", quote(old), quote(new)).into())
    }
}

/// Parses a hunk, after its `@@` line.
fn parse_hunk(heading: &str, lines: &mut Lines<'_>) -> Result<Hunk, Error> {
    let number = lines.number;
    let (old, new) =
        parse_ranges(heading).ok_or_else(|| format!("line {number} is not of the form @@ -1,3 +1,4 @@"))?;
    let (mut remaining_old, mut remaining_new) = (old.count, new.count);
    let mut hunk = Hunk { start: old.start, lines: Vec::new(), old_lacks_newline: false, new_lacks_newline: false };
    while remaining_old > 0 || remaining_new > 0 {
        let line = lines.next();
        let wrong_counts = || {
            Error::from(format!(
                "the hunk in line {number} announces {} old and {} new lines, but has other numbers of lines. Count the \
                 context and removed lines, and the context and added lines",
                old.count, new.count
            ))
        };
        let line = line.ok_or_else(wrong_counts)?;
        // Editors may have removed the space of an empty context line.
        let mut rest = line.chars();
        let mark = rest.next().unwrap_or(' ');
        let text = rest.as_str();
        let decrement = |count: &mut usize| count.checked_sub(1).map(|less| *count = less).ok_or_else(wrong_counts);
        let line = match mark {
            ' ' => {
                decrement(&mut remaining_old)?;
                decrement(&mut remaining_new)?;
                Line::Context(text.to_owned())
            }
            '-' => {
                decrement(&mut remaining_old)?;
                Line::Removed(text.to_owned())
            }
            '+' => {
                decrement(&mut remaining_new)?;
                Line::Added(text.to_owned())
            }
            '\\' => {
                hunk.mark_missing_newline();
                continue;
            }
            _ => return Err(wrong_counts()),
        };
        hunk.lines.push(line);
    }
    while lines.next_if(|line| line.starts_with('\\')).is_some() {
        hunk.mark_missing_newline();
    }
    Ok(hunk)
}

impl Hunk {
    /// Records a line `\ No newline at end of file`, which refers to the line before it.
    fn mark_missing_newline(&mut self) {
        let Some(last) = self.lines.last() else { return };
        self.old_lacks_newline |= matches!(last, Line::Context(_) | Line::Removed(_));
        self.new_lacks_newline |= matches!(last, Line::Context(_) | Line::Added(_));
    }
}

/// The range of lines in the heading of a hunk.
struct LineRange {
    start: usize,
    count: usize,
}

/// Parses `@@ -start,count +start,count @@`. The default count is 1.
fn parse_ranges(heading: &str) -> Option<(LineRange, LineRange)> {
    let inner = heading.strip_prefix("@@ ")?.split(" @@").next()?;
    let (old, new) = inner.trim().split_once(' ')?;
    Some((parse_range(old.strip_prefix('-')?)?, parse_range(new.strip_prefix('+')?)?))
}

fn parse_range(text: &str) -> Option<LineRange> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some(LineRange { start: start.parse().ok()?, count: count.parse().ok()? })
}

/// The lines of a patch, and the number of the current line.
struct Lines<'a> {
    lines: std::iter::Peekable<std::str::Split<'a, char>>,
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(patch: &'a str) -> Self {
        // The text after the last line ending is not a line.
        let patch = patch.strip_suffix('\n').unwrap_or(patch);
        Self { lines: patch.split('\n').peekable(), number: 0 }
    }

    fn next(&mut self) -> Option<&'a str> {
        self.number += 1;
        self.lines.next()
    }

    fn next_if(&mut self, matches: impl Fn(&str) -> bool) -> Option<&'a str> {
        let line = self.lines.next_if(|line| matches(line))?;
        self.number += 1;
        Some(line)
    }
}
