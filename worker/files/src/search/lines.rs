//! Finds lines in one file.

use crate::call::Deadline;
use crate::resource_path::escape_controls;
use crate::root::Opened;
use crate::secrets::{SecretWindow, Secrets};
use crate::text;
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::fmt::Write;
use std::io::{self, BufRead, BufReader};

/// The longest part of a line that is matched, in bytes.
const MAX_LINE_BYTES: usize = 32 * 1024;

/// The longest part of a line that is shown, in bytes.
const MAX_SHOWN_BYTES: usize = 300;

/// The size of the read buffer, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// The number of a line, its offset, and its text.
type Line = (u64, u64, Vec<u8>);

/// The matches in a file.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    /// The lines with their numbers. A matching line begins with `12: `, a context line with `11- `.
    pub(super) text: String,
    /// The number of matching lines.
    pub(super) matches: usize,
    /// Whether the file has more matches.
    pub(super) has_more: bool,
    /// Whether the search stopped at the deadline.
    pub(super) timed_out: bool,
}

/// Finds up to `max_matches` lines in a file, with `context` lines around each. Returns `None` for a binary file.
///
/// Holds only one line and its context in memory. A line must also match after its secrets are redacted. Otherwise a model
/// could guess a secret with patterns.
pub(super) fn find(
    opened: &Opened,
    secrets: &Secrets,
    pattern: &Regex,
    (context, max_matches): (usize, usize),
    deadline: &Deadline,
) -> io::Result<Option<FileMatches>> {
    if text::is_binary(opened)? {
        return Ok(None);
    }
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, &opened.file);
    let mut window = SecretWindow::new(&opened.file, secrets);
    let (mut found, mut number, mut next_start) = (FileMatches::default(), 0_u64, 0_u64);
    // The lines before the current one that may become the context of a match.
    let mut before: VecDeque<Line> = VecDeque::new();
    // The number of the last line in the answer, and the number of context lines that still follow.
    let (mut last_shown, mut context_left) = (0, 0);
    let mut line = Vec::new();
    loop {
        let start = next_start;
        next_start += next_line(&mut reader, &mut line)?;
        if next_start == start {
            break;
        }
        number += 1;
        if deadline.is_over() {
            found.timed_out = true;
            break;
        }
        let may_match = pattern.is_match(&line);
        let redacted = if may_match || context_left > 0 { window.redact(start, line.clone())? } else { Vec::new() };
        if may_match && pattern.is_match(&redacted) {
            if found.matches == max_matches {
                found.has_more = true;
                break;
            }
            found.matches += 1;
            let first = before.front().map_or(number, |(number, ..)| *number);
            if context > 0 && last_shown > 0 && first > last_shown + 1 {
                found.text.push_str("  --\n");
            }
            for (number, start, line) in before.drain(..) {
                push_line(&mut found.text, number, '-', &window.redact(start, line)?, pattern);
            }
            push_line(&mut found.text, number, ':', &redacted, pattern);
            (last_shown, context_left) = (number, context);
        } else if context_left > 0 {
            push_line(&mut found.text, number, '-', &redacted, pattern);
            (last_shown, context_left) = (number, context_left - 1);
        } else if context > 0 {
            if before.len() == context {
                before.pop_front();
            }
            before.push_back((number, start, line.clone()));
        }
    }
    Ok(Some(found))
}

/// Reads up to [`MAX_LINE_BYTES`] of the next line, without the line ending. Returns the length of the whole line with its ending;
/// 0 at the end of the file.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', buffer);
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        let room = MAX_LINE_BYTES - line.len();
        line.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
        let taken = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(taken);
        length += taken as u64;
        if end.is_some() {
            break;
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(length)
}

/// Appends a line to the text. A long line is cut to the part around its first match.
fn push_line(text: &mut String, number: u64, separator: char, line: &[u8], pattern: &Regex) {
    let at = if line.len() > MAX_SHOWN_BYTES { pattern.find(line).map_or(0, |found| found.start()) } else { 0 };
    let start = at.saturating_sub(MAX_SHOWN_BYTES / 4).min(line.len().saturating_sub(MAX_SHOWN_BYTES));
    let end = line.len().min(start + MAX_SHOWN_BYTES);
    let shown = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    // Tabs are not escaped, because code is indented with them.
    let shown: Vec<String> = shown.split('\t').map(escape_controls).collect();
    let (dots_before, dots_after) = (if start > 0 { "..." } else { "" }, if end < line.len() { "..." } else { "" });
    // Writing to a String does not fail.
    let _ = writeln!(text, "  {number}{separator} {dots_before}{}{dots_after}", shown.join("\t"));
}
