//! Redacts secrets in file contents. The finder recognizes only whole secrets, so secrets are searched before a text is cut,
//! and no text is cut within a secret.

use crate::marks::Marks;
use cap_std::fs::{File, FileExt};
use std::borrow::Cow;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The number of bytes after a part that are searched together with it, because the next part to redact is usually near.
const READ_AHEAD_BYTES: u64 = 16 * 1024;

/// Finds secrets in text.
pub trait SecretFinder: Debug + Send + Sync {
    /// Returns the secrets in a text. The ranges are in order and disjoint, and begin and end at character boundaries.
    fn find(&self, text: &[u8]) -> Vec<SecretMatch>;

    /// Returns the largest number of bytes that one secret takes in a text, in any encoding.
    fn max_secret_length(&self) -> usize;
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretMatch {
    /// The range of the secret in the text, in bytes.
    pub range: Range<usize>,
    /// The mark that replaces the secret.
    pub mark: String,
}

/// The secrets that a call redacts, and their marks.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    pub(crate) marks: Marks,
    finder: Option<Arc<dyn SecretFinder>>,
}

impl From<Marks> for Secrets {
    fn from(marks: Marks) -> Self {
        Self { marks, finder: None }
    }
}

impl Secrets {
    /// Returns the secrets that `finder` finds. `marks` are all marks that can replace them.
    pub fn new(marks: Marks, finder: Arc<dyn SecretFinder>) -> Self {
        Self { marks, finder: Some(finder) }
    }

    /// Redacts a complete text.
    pub(crate) fn redact(&self, text: String) -> String {
        let found = self.find(text.as_bytes());
        if found.is_empty() {
            return text;
        }
        String::from_utf8_lossy(&replace_by_marks(text.as_bytes(), 0, &with_offset(found, 0))).into_owned()
    }

    /// Redacts a range of a content, including secrets that begin before the range or end after it.
    pub(crate) fn redact_range<'c>(&self, content: &'c [u8], range: Range<usize>) -> Cow<'c, [u8]> {
        let margin = self.max_secret_length();
        let around = range.start.saturating_sub(margin)..content.len().min(range.end.saturating_add(margin));
        let found = with_offset(self.find(content.get(around.clone()).unwrap_or_default()), around.start as u64);
        let part = content.get(range.clone()).unwrap_or_default();
        if found.is_empty() {
            Cow::Borrowed(part)
        } else {
            Cow::Owned(replace_by_marks(part, range.start as u64, &found))
        }
    }

    /// Returns the ranges of secrets in a content.
    pub(crate) fn ranges(&self, content: &[u8]) -> Vec<Range<usize>> {
        self.find(content).into_iter().map(|found| found.range).collect()
    }

    fn find(&self, text: &[u8]) -> Vec<SecretMatch> {
        self.finder.as_ref().map_or_else(Vec::new, |finder| finder.find(text))
    }

    fn max_secret_length(&self) -> usize {
        self.finder.as_ref().map_or(0, |finder| finder.max_secret_length())
    }
}

/// The range of a secret in a file, and its mark.
type FileMatch = (Range<u64>, String);

/// Turns ranges in a part of a file into ranges in the file. The part begins at `offset`.
fn with_offset(found: Vec<SecretMatch>, offset: u64) -> Vec<FileMatch> {
    let in_file = |found: SecretMatch| (offset + found.range.start as u64..offset + found.range.end as u64, found.mark);
    found.into_iter().map(in_file).collect()
}

/// Replaces secrets by their marks in a part of a file that begins at `start`. A secret that is only partly in the part is
/// replaced, too.
fn replace_by_marks(part: &[u8], start: u64, found: &[FileMatch]) -> Vec<u8> {
    let mut redacted = Vec::with_capacity(part.len());
    let in_part = |at: u64| usize::try_from(at.saturating_sub(start)).map_or(part.len(), |at| at.min(part.len()));
    let mut next = 0;
    for (range, mark) in found {
        let (from, to) = (in_part(range.start), in_part(range.end));
        if from < to {
            redacted.extend_from_slice(part.get(next..from).unwrap_or_default());
            redacted.extend_from_slice(mark.as_bytes());
            next = to;
        }
    }
    redacted.extend_from_slice(part.get(next..).unwrap_or_default());
    redacted
}

/// Redacts parts of a file. Searches only around each part, not in the whole file.
#[derive(Debug)]
pub(crate) struct SecretWindow<'a> {
    file: &'a File,
    secrets: &'a Secrets,
    /// The range that was searched.
    searched: Range<u64>,
    /// The secrets in the searched range.
    found: Vec<FileMatch>,
}

impl<'a> SecretWindow<'a> {
    /// Returns a window on this file.
    pub(crate) fn new(file: &'a File, secrets: &'a Secrets) -> Self {
        Self { file, secrets, searched: 0..0, found: Vec::new() }
    }

    /// Redacts a part that was read at `start`.
    pub(crate) fn redact(&mut self, start: u64, part: Vec<u8>) -> io::Result<Vec<u8>> {
        let end = start + part.len() as u64;
        self.search(start..end)?;
        let has_secret = self.found.iter().any(|(range, _)| range.start < end && start < range.end);
        Ok(if has_secret { replace_by_marks(&part, start, &self.found) } else { part })
    }

    /// Extends a part that was read at `start` if it ends within a secret: to the end of the secret, and to the end of the line
    /// if the part ended with a line feed.
    pub(crate) fn extend(&mut self, start: u64, part: &mut Vec<u8>) -> io::Result<()> {
        let end = start + part.len() as u64;
        self.search(start..end)?;
        let Some((cut_secret, _)) = self.found.iter().find(|(range, _)| range.start < end && end < range.end) else {
            return Ok(());
        };
        let rest = usize::try_from(cut_secret.end - end).unwrap_or_default();
        // A line ending has up to two bytes.
        let mut more = read_at(self.file, end, rest + 2)?;
        let after = more.get(rest..).unwrap_or_default();
        let line_end = match after {
            _ if part.last() != Some(&b'\n') => 0,
            [b'\n', ..] => 1,
            [b'\r', b'\n'] => 2,
            _ => 0,
        };
        more.truncate(rest + line_end);
        part.extend_from_slice(&more);
        Ok(())
    }

    /// Searches in and around a part, unless that was done before.
    fn search(&mut self, part: Range<u64>) -> io::Result<()> {
        let margin = self.secrets.max_secret_length() as u64;
        let around = part.start.saturating_sub(margin)..part.end + margin;
        let is_searched = self.searched.start <= around.start && around.end <= self.searched.end;
        if self.secrets.finder.is_none() || is_searched {
            return Ok(());
        }
        self.searched = around.start..around.end + READ_AHEAD_BYTES;
        let length = usize::try_from(self.searched.end - self.searched.start).map_err(io::Error::other)?;
        self.found = with_offset(self.secrets.find(&read_at(self.file, around.start, length)?), around.start);
        Ok(())
    }
}

/// Reads up to `length` bytes of a file from an offset.
pub(crate) fn read_at(file: &File, from: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, from + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}
