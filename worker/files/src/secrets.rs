//! Secrets in what is read: where they stand is asked before anything is cut off a text, because a part of a value is not
//! found any more. So no cut falls within one.

use crate::marks::Marks;
use cap_std::fs::{File, FileExt};
use std::borrow::Cow;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The part of a file that is scanned ahead, in bytes: the next part shown is usually near.
const AHEAD: u64 = 16 * 1024;

/// Finds secrets in text.
pub trait Finder: Debug + Send + Sync {
    /// Returns the places of secrets in a text: ordered, disjoint, at character boundaries.
    fn find(&self, text: &[u8]) -> Vec<Spot>;

    /// Returns the largest number of bytes that one secret takes in a text, in any encoding.
    fn reach(&self) -> usize;
}

/// The place of a secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The bytes.
    pub place: Range<usize>,
    /// The mark that replaces it.
    pub mark: String,
}

/// The secrets that a call redacts: how to find them, and their marks.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    pub(crate) marks: Marks,
    finder: Option<Arc<dyn Finder>>,
}

impl From<Marks> for Secrets {
    fn from(marks: Marks) -> Self {
        Self { marks, finder: None }
    }
}

impl Secrets {
    /// Returns the secrets that `finder` finds, with the marks that replace them.
    pub fn new(marks: Marks, finder: Arc<dyn Finder>) -> Self {
        Self { marks, finder: Some(finder) }
    }

    /// Returns a text with marks in place of secrets.
    pub(crate) fn text(&self, text: String) -> String {
        let found = self.find(text.as_bytes());
        if found.is_empty() {
            return text;
        }
        String::from_utf8_lossy(&covered(text.as_bytes(), 0, &placed(found, 0))).into_owned()
    }

    /// Returns a redacted part of a content. Secrets that cross its bounds are found, too.
    pub(crate) fn part<'c>(&self, content: &'c [u8], part: Range<usize>) -> Cow<'c, [u8]> {
        let around = part.start.saturating_sub(self.reach())..content.len().min(part.end.saturating_add(self.reach()));
        let found = placed(self.find(content.get(around.clone()).unwrap_or_default()), around.start as u64);
        let shown = content.get(part.clone()).unwrap_or_default();
        if found.is_empty() { Cow::Borrowed(shown) } else { Cow::Owned(covered(shown, part.start as u64, &found)) }
    }

    /// Returns the places of secrets in a content.
    pub(crate) fn places(&self, content: &[u8]) -> Vec<Range<usize>> {
        self.find(content).into_iter().map(|spot| spot.place).collect()
    }

    fn find(&self, text: &[u8]) -> Vec<Spot> {
        self.finder.as_ref().map_or_else(Vec::new, |finder| finder.find(text))
    }

    fn reach(&self) -> usize {
        self.finder.as_ref().map_or(0, |finder| finder.reach())
    }
}

/// A place in a file where a secret stands, and its mark.
type Placed = (Range<u64>, String);

fn placed(found: Vec<Spot>, from: u64) -> Vec<Placed> {
    found.into_iter().map(|spot| (from + spot.place.start as u64..from + spot.place.end as u64, spot.mark)).collect()
}

/// A part that begins at `start`, with a mark in place of each secret, or of what of it lies in the part.
fn covered(part: &[u8], start: u64, found: &[Placed]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(part.len());
    let at = |place: u64| usize::try_from(place.saturating_sub(start)).map_or(part.len(), |at| at.min(part.len()));
    let mut next = 0;
    for (place, mark) in found {
        let (from, to) = (at(place.start), at(place.end));
        if from < to {
            shown.extend_from_slice(part.get(next..from).unwrap_or_default());
            shown.extend_from_slice(mark.as_bytes());
            next = to;
        }
    }
    shown.extend_from_slice(part.get(next..).unwrap_or_default());
    shown
}

/// Finds the secrets in and around the shown part of a file, without reading the rest.
#[derive(Debug)]
pub(crate) struct SecretWindow<'a> {
    file: &'a File,
    secrets: &'a Secrets,
    /// The range that was scanned, and the secrets found there.
    seen: Range<u64>,
    found: Vec<Placed>,
}

impl<'a> SecretWindow<'a> {
    /// Returns a window on this file.
    pub(crate) fn new(file: &'a File, secrets: &'a Secrets) -> Self {
        Self { file, secrets, seen: 0..0, found: Vec::new() }
    }

    /// Returns a part that was read at `start`, with marks in place of secrets.
    pub(crate) fn cover(&mut self, start: u64, part: Vec<u8>) -> io::Result<Vec<u8>> {
        self.look(start..start + part.len() as u64)?;
        let is_near = |(place, _): &&Placed| place.start < start + part.len() as u64 && start < place.end;
        let is_any = self.found.iter().any(|placed| is_near(&placed));
        Ok(if is_any { covered(&part, start, &self.found) } else { part })
    }

    /// A part that was read at `start`, which goes on where it would end within a secret: to the end of it, and of the
    /// line, where it ended with one.
    pub(crate) fn extend(&mut self, start: u64, part: &mut Vec<u8>) -> io::Result<()> {
        let end = start + part.len() as u64;
        self.look(start..end)?;
        let Some((cut, _)) = self.found.iter().find(|(place, _)| place.start < end && end < place.end) else {
            return Ok(());
        };
        let rest = usize::try_from(cut.end - end).unwrap_or_default();
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

    fn look(&mut self, part: Range<u64>) -> io::Result<()> {
        let reach = self.secrets.reach() as u64;
        let around = part.start.saturating_sub(reach)..part.end + reach;
        if self.secrets.finder.is_none() || self.seen.start <= around.start && around.end <= self.seen.end {
            return Ok(());
        }
        self.seen = around.start..around.end + AHEAD;
        let length = usize::try_from(self.seen.end - self.seen.start).map_err(io::Error::other)?;
        self.found = placed(self.secrets.find(&read_at(self.file, around.start, length)?), around.start);
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
