//! Applies the hunks of a patch to the content of a file, without I/O.
//!
//! Lines are compared without their line endings. The file keeps its line endings. The line ending at its end is
//! added or removed only if the patch says so.

use super::parse::{Hunk, Line};
use crate::Error;
use crate::resource_path::quote;
use crate::secrets::Secrets;
use std::ops::Range;

/// The limit on line comparisons in the search for the position of a hunk.
const MAX_COMPARISONS: usize = 10_000_000;

/// The result of applying hunks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) content: Vec<u8>,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// A note about hunks that were applied at other lines than their headings say; empty without such hunks.
    pub(super) note: String,
}

/// Applies hunks in their order.
///
/// # Errors
/// The first hunk that does not apply and the reason, without a full stop at the end.
pub(super) fn apply(content: &[u8], hunks: &[Hunk], secrets: &Secrets) -> Result<Applied, Error> {
    let file = File::parse(content);
    let mut output = Output { bytes: Vec::with_capacity(content.len()), newline: file.newline };
    let mut ends_with_newline = file.ends_with_newline();
    // The first line of the file that is not in the output yet, counted from 0.
    let mut next = 0_usize;
    // The distance of the last hunk from the line in its heading. The next hunk is expected at the same distance.
    let mut shift = 0_isize;
    let (mut moved, mut added, mut removed) = (0_usize, 0, 0);
    for (number, hunk) in (1..).zip(hunks) {
        let old: Vec<&str> = hunk.old_lines().collect();
        // The index of the line in the heading. A hunk without old lines comes after that line.
        let stated = hunk.start.saturating_sub(usize::from(!old.is_empty()));
        let expected = stated.saturating_add_signed(shift);
        let position = file.find(&old, expected, next, secrets);
        let at = position.map_err(|reason| format!("hunk {number} (line {}) {reason}", hunk.start))?;
        moved += usize::from(at != expected);
        shift = at.cast_signed().wrapping_sub(stated.cast_signed());
        output.copy(file.lines(next..at));
        next = at;
        for line in &hunk.lines {
            match line {
                Line::Context(_) => output.copy(file.lines(next..next + 1)),
                Line::Removed(_) => removed += 1,
                Line::Added(text) => {
                    added += 1;
                    output.add(text);
                }
            }
            next += usize::from(line.old().is_some());
        }
        // Only a hunk at the end of the file can change the last line ending.
        if next == file.count() && (hunk.old_lacks_newline || hunk.new_lacks_newline) {
            ends_with_newline = !hunk.new_lacks_newline;
        }
    }
    output.copy(file.lines(next..file.count()));
    let note = match moved {
        0 => String::new(),
        1 => ", one hunk at another line than its heading says".to_owned(),
        many => format!(", {many} hunks at other lines than their headings say"),
    };
    Ok(Applied { content: output.finish(ends_with_newline), added, removed, note })
}

/// The lines of a content.
struct File<'a> {
    content: &'a [u8],
    /// The offset of each line.
    starts: Vec<usize>,
    /// The line ending of the first line, which is used for added lines.
    newline: &'static [u8],
}

impl<'a> File<'a> {
    fn parse(content: &'a [u8]) -> Self {
        let mut starts: Vec<usize> = Vec::new();
        if !content.is_empty() {
            starts.push(0);
            starts.extend(memchr::memchr_iter(b'\n', content).map(|at| at + 1).filter(|at| *at < content.len()));
        }
        let first = memchr::memchr(b'\n', content).and_then(|at| content.get(..at));
        let newline: &[u8] = if first.is_some_and(|line| line.ends_with(b"\r")) { b"\r\n" } else { b"\n" };
        Self { content, starts, newline }
    }

    fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns whether the last line has a line ending.
    fn ends_with_newline(&self) -> bool {
        self.content.is_empty() || self.content.ends_with(b"\n")
    }

    /// Returns lines with their endings.
    fn lines(&self, range: Range<usize>) -> &'a [u8] {
        let start = |at: usize| self.starts.get(at).copied().unwrap_or(self.content.len());
        self.content.get(start(range.start)..start(range.end)).unwrap_or_default()
    }

    /// Returns a line without its ending.
    fn text(&self, at: usize) -> &'a [u8] {
        let line = self.lines(at..at + 1);
        without_cr(line.strip_suffix(b"\n").unwrap_or(line))
    }

    /// Returns the index of the line where the old lines of a hunk are: `expected`, or else the only match at or after `from`.
    fn find(&self, old: &[&str], expected: usize, from: usize, secrets: &Secrets) -> Result<usize, Error> {
        if old.is_empty() {
            return if (from..=self.count()).contains(&expected) {
                Ok(expected)
            } else {
                Err(format!("adds lines after line {expected}, but the file has {} lines", self.count()).into())
            };
        }
        let mut comparisons = 0;
        // Returns whether the old lines are at a position, and whether the limit is exceeded.
        let mut matches_at = |at: usize| {
            let equal = old
                .iter()
                .zip(at..self.count())
                .take_while(|(old, at)| self.text(*at) == without_cr(old.as_bytes()))
                .count();
            comparisons += equal + 1;
            (equal == old.len(), comparisons > MAX_COMPARISONS)
        };
        let is_at_expected = expected >= from && matches_at(expected).0;
        if is_at_expected {
            return Ok(expected);
        }
        let mut found = None;
        for at in from..self.count() {
            let (is_match, is_over_limit) = matches_at(at);
            if is_over_limit {
                break;
            }
            if !is_match {
                continue;
            }
            if let Some(first) = found {
                return Err(format!(
                    "does not match at that line, but matches at the lines {} and {}. Add more context lines",
                    first + 1,
                    at + 1
                )
                .into());
            }
            found = Some(at);
        }
        found.ok_or_else(|| self.describe_difference(old, expected.max(from), secrets))
    }

    /// Describes the first line that differs from the old lines of a hunk at `expected`.
    fn describe_difference(&self, old: &[&str], expected: usize, secrets: &Secrets) -> Error {
        let differs =
            (expected..).zip(old).find(|(at, old)| *at >= self.count() || self.text(*at) != without_cr(old.as_bytes()));
        let Some((at, old)) = differs else { return "matches at no other line".into() };
        let actual = if at < self.count() {
            let start = self.starts.get(at).copied().unwrap_or_default();
            quote(&String::from_utf8_lossy(&secrets.redact_range(self.content, start..start + self.text(at).len())))
        } else {
            "the end of the file".to_owned()
        };
        format!("expects {} in line {}, but found {actual}", quote(old), at + 1).into()
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The new content.
struct Output {
    bytes: Vec<u8>,
    newline: &'static [u8],
}

impl Output {
    /// Copies lines unchanged. If the output ends without a line ending, adds one first.
    fn copy(&mut self, lines: &[u8]) {
        if !lines.is_empty() && !self.bytes.is_empty() && !self.bytes.ends_with(b"\n") {
            self.bytes.extend_from_slice(self.newline);
        }
        self.bytes.extend_from_slice(lines);
    }

    /// Adds a line with the file's line ending.
    fn add(&mut self, text: &str) {
        let line = [without_cr(text.as_bytes()), self.newline].concat();
        self.copy(&line);
    }

    /// Returns the content, with or without a line ending at its end.
    fn finish(mut self, ends_with_newline: bool) -> Vec<u8> {
        match (ends_with_newline, self.bytes.ends_with(b"\n")) {
            (true, false) if !self.bytes.is_empty() => self.bytes.extend_from_slice(self.newline),
            (false, true) => {
                let end = self.bytes.len() - if self.bytes.ends_with(self.newline) { self.newline.len() } else { 1 };
                self.bytes.truncate(end);
            }
            _ => {}
        }
        self.bytes
    }
}
