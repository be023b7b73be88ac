//! Applies the hunks of a patch to the content of a file, without I/O.
//!
//! Lines are compared byte by byte, but for how they end: that is the file's own business, and stays so, CRLF and a last
//! line without an end.

use super::parse::{Hunk, Line};
use crate::Error;
use crate::place::shown;
use crate::secrets::Secrets;
use std::ops::Range;

/// The limit on line comparisons in the search for a hunk's place.
const MAX_COMPARED: usize = 10_000_000;

/// The result of applying hunks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) content: Vec<u8>,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// A note if a hunk was found at another line than its heading says.
    pub(super) note: String,
}

/// Applies hunks, which follow one another.
///
/// # Errors
/// The hunk that does not fit, without a full stop.
pub(super) fn apply(content: &[u8], hunks: &[Hunk], secrets: &Secrets) -> Result<Applied, Error> {
    let file = File::parse(content);
    let mut output = Output { bytes: Vec::with_capacity(content.len()), newline: file.newline };
    let mut ends = file.ends();
    let (mut next, mut shift, mut moved) = (0_usize, 0_isize, 0_usize);
    let (mut added, mut removed) = (0, 0);
    for (number, hunk) in (1..).zip(hunks) {
        let old: Vec<&str> = hunk.old().collect();
        let said = hunk.start.saturating_sub(usize::from(!old.is_empty()));
        let expected = said.saturating_add_signed(shift);
        let place = file.find(&old, expected, next, secrets);
        let at = place.map_err(|why| format!("hunk {number} (line {}) {why}", hunk.start))?;
        moved += usize::from(at != expected);
        shift = at.cast_signed().wrapping_sub(said.cast_signed());
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
        if next == file.count() {
            ends = match hunk.unended {
                (false, false) => ends,
                (_, unended) => !unended,
            };
        }
    }
    output.copy(file.lines(next..file.count()));
    let note = match moved {
        0 => String::new(),
        1 => ", one hunk at another line than it says".to_owned(),
        many => format!(", {many} hunks at other lines than they say"),
    };
    Ok(Applied { content: output.finish(ends), added, removed, note })
}

/// A content, line by line.
struct File<'a> {
    content: &'a [u8],
    /// The offset of each line.
    starts: Vec<usize>,
    /// The line ending.
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
    fn ends(&self) -> bool {
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

    /// Finds the old lines: where the hunk says, or else at the only other place from `from` on.
    fn find(&self, old: &[&str], said: usize, from: usize, secrets: &Secrets) -> Result<usize, Error> {
        if old.is_empty() {
            let is_there = (from..=self.count()).contains(&said);
            return if is_there {
                Ok(said)
            } else {
                Err(format!("adds lines after line {said}, and there are {}", self.count()).into())
            };
        }
        let mut compared = 0;
        let mut fits = |at: usize| {
            let same = old
                .iter()
                .zip(at..self.count())
                .take_while(|(old, at)| self.text(*at) == without_cr(old.as_bytes()))
                .count();
            compared += same + 1;
            (same == old.len(), compared > MAX_COMPARED)
        };
        if said >= from && fits(said).0 {
            return Ok(said);
        }
        let mut found = None;
        for at in from..self.count() {
            let (is_here, is_enough) = fits(at);
            if is_enough {
                break;
            }
            match found {
                Some(one) if is_here => {
                    return Err(format!(
                        "does not fit where it says, and fits at the lines {} and {}: give more context",
                        one + 1,
                        at + 1
                    )
                    .into());
                }
                None if is_here => found = Some(at),
                _ => {}
            }
        }
        found.ok_or_else(|| self.difference(old, said.max(from), secrets))
    }

    /// Describes the first old line that is not where the hunk says.
    fn difference(&self, old: &[&str], said: usize, secrets: &Secrets) -> Error {
        let differs =
            (said..).zip(old).find(|(at, old)| *at >= self.count() || self.text(*at) != without_cr(old.as_bytes()));
        let Some((at, old)) = differs else { return "fits in no other place".into() };
        let there = if at < self.count() {
            let start = self.starts.get(at).copied().unwrap_or_default();
            shown(&String::from_utf8_lossy(&secrets.part(self.content, start..start + self.text(at).len())))
        } else {
            "the end of the file".to_owned()
        };
        format!("expects {} in line {}, where there is {there}", shown(old), at + 1).into()
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
    /// Copies lines unchanged. The last line of the file gets a line ending if others follow.
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

    fn finish(mut self, ends: bool) -> Vec<u8> {
        match (ends, self.bytes.ends_with(b"\n")) {
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
