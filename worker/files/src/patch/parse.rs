//! The parser of unified diffs.

use crate::Error;
use crate::place::shown;

/// The change of a patch to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Create,
    Modify,
    Remove,
}

/// The part of a patch that is about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) path: String,
    pub(super) change: Change,
    pub(super) hunks: Vec<Hunk>,
}

/// One place of a file: its old and its new lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The number of its first old line, from 1; of the line before it where it has no old lines.
    pub(super) start: usize,
    pub(super) lines: Vec<Line>,
    /// Whether the last old line is said to have no end, and the last new one.
    pub(super) unended: (bool, bool),
}

/// A line of a hunk, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Context(String),
    Removed(String),
    Added(String),
}

impl Hunk {
    /// Returns the expected old text.
    pub(super) fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(Line::old)
    }
}

impl Line {
    /// Returns the expected old text.
    pub(super) fn old(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Removed(text) => Some(text),
            Self::Added(_) => None,
        }
    }
}

/// Reads a patch: every file has a heading `---`, `+++` and at least one hunk, whose counts are right.
///
/// # Errors
/// The reason, without a full stop.
pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, Error> {
    let mut lines = Lines::new(patch);
    let mut files: Vec<FilePatch> = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(old) = line.strip_prefix("--- ") {
            let number = lines.number;
            let new = lines.next().and_then(|line| line.strip_prefix("+++ "));
            let new = new.ok_or_else(|| format!("line {number} begins a file with ---, and no +++ follows"))?;
            files.push(file(old, new, &mut lines)?);
        } else if line.starts_with("@@") {
            return Err(format!("the hunk in line {} belongs to no file: begin with --- and +++", lines.number).into());
        } else if let Some(what) = unsupported(line) {
            return Err(format!("line {} is about {what}, which is not done: {}", lines.number, shown(line)).into());
        }
    }
    if files.is_empty() { Err("it has no file: each begins with --- and +++".into()) } else { Ok(files) }
}

/// Returns the unsupported operation of a line between files, if there is one. All other lines there are ignored.
fn unsupported(line: &str) -> Option<&'static str> {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| line.starts_with(prefix));
    if begins(&["rename from ", "rename to ", "copy from ", "copy to "]) {
        Some("renaming (remove the one and make the other)")
    } else if begins(&["old mode ", "new mode "]) || (begins(&["new file mode "]) && !line.ends_with("100644")) {
        Some("the mode of a file")
    } else if begins(&["GIT binary patch", "Binary files "]) {
        Some("a binary file")
    } else {
        None
    }
}

fn file(old: &str, new: &str, lines: &mut Lines<'_>) -> Result<FilePatch, Error> {
    let (old, new) = (name(old), name(new));
    let (change, path) = match (old == NOTHING, new == NOTHING) {
        (true, true) => return Err("a file has /dev/null on both sides".into()),
        (true, false) => (Change::Create, new.strip_prefix("b/").unwrap_or(new)),
        (false, true) => (Change::Remove, old.strip_prefix("a/").unwrap_or(old)),
        (false, false) => (Change::Modify, same(old, new)?),
    };
    let mut hunks: Vec<Hunk> = Vec::new();
    while let Some(heading) = lines.next_if(|line| line.starts_with("@@")) {
        hunks.push(hunk(heading, lines)?);
    }
    if hunks.is_empty() {
        return Err(format!("{} has no hunk: each begins with @@", shown(path)).into());
    }
    Ok(FilePatch { path: path.to_owned(), change, hunks })
}

const NOTHING: &str = "/dev/null";

/// The name in a heading, without the time that may follow it.
fn name(heading: &str) -> &str {
    heading.split('\t').next().unwrap_or_default().trim_end_matches(['\r', ' '])
}

fn same<'a>(old: &'a str, new: &'a str) -> Result<&'a str, Error> {
    let bare = old.strip_prefix("a/").zip(new.strip_prefix("b/"));
    let (old, new) = bare.unwrap_or((old, new));
    if old == new {
        Ok(new)
    } else {
        Err(format!("{} becomes {}, and renaming is not done", shown(old), shown(new)).into())
    }
}

fn hunk(heading: &str, lines: &mut Lines<'_>) -> Result<Hunk, Error> {
    let number = lines.number;
    let (old, new) =
        ranges(heading).ok_or_else(|| format!("line {number} is no heading of a hunk, as in @@ -1,3 +1,4 @@"))?;
    let (mut left_old, mut left_new) = (old.1, new.1);
    let mut hunk = Hunk { start: old.0, lines: Vec::new(), unended: (false, false) };
    while left_old > 0 || left_new > 0 {
        let line = lines.next();
        let wrong = || {
            Error::from(format!(
                "the hunk in line {number} says {} old and {} new lines, and has others: count them again",
                old.1, new.1
            ))
        };
        let line = line.ok_or_else(wrong)?;
        // An editor may have taken the blank off an empty line.
        let (mark, text) = if line.is_empty() {
            (' ', "")
        } else {
            line.split_at_checked(1).map_or((' ', ""), |(mark, text)| (mark.chars().next().unwrap_or(' '), text))
        };
        let takes = |left: &mut usize| left.checked_sub(1).map(|now| *left = now).ok_or_else(wrong);
        let line = match mark {
            ' ' => {
                takes(&mut left_old)?;
                takes(&mut left_new)?;
                Line::Context(text.to_owned())
            }
            '-' => {
                takes(&mut left_old)?;
                Line::Removed(text.to_owned())
            }
            '+' => {
                takes(&mut left_new)?;
                Line::Added(text.to_owned())
            }
            '\\' => {
                hunk.mark_unended();
                continue;
            }
            _ => return Err(wrong()),
        };
        hunk.lines.push(line);
    }
    while lines.next_if(|line| line.starts_with('\\')).is_some() {
        hunk.mark_unended();
    }
    Ok(hunk)
}

impl Hunk {
    /// `\ No newline at end of file` is about the line before it.
    fn mark_unended(&mut self) {
        match self.lines.last() {
            Some(Line::Context(_)) => self.unended = (true, true),
            Some(Line::Removed(_)) => self.unended.0 = true,
            Some(Line::Added(_)) => self.unended.1 = true,
            None => {}
        }
    }
}

/// `@@ -start,count +start,count @@`; a count that is left out is 1.
fn ranges(heading: &str) -> Option<((usize, usize), (usize, usize))> {
    let inner = heading.strip_prefix("@@ ")?.split(" @@").next()?;
    let (old, new) = inner.trim().split_once(' ')?;
    Some((range(old.strip_prefix('-')?)?, range(new.strip_prefix('+')?)?))
}

fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// The lines of a patch, counted.
struct Lines<'a> {
    lines: std::iter::Peekable<std::str::Split<'a, char>>,
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(patch: &'a str) -> Self {
        // What follows the last line end is no line.
        let patch = patch.strip_suffix('\n').unwrap_or(patch);
        Self { lines: patch.split('\n').peekable(), number: 0 }
    }

    fn next(&mut self) -> Option<&'a str> {
        self.number += 1;
        self.lines.next()
    }

    fn next_if(&mut self, is_meant: impl Fn(&str) -> bool) -> Option<&'a str> {
        let line = self.lines.next_if(|line| is_meant(line))?;
        self.number += 1;
        Some(line)
    }
}
