//! The order of all writes of a bank, without a lock: compare-and-swap by exclusive hard links, as the log has it.
//!
//! A write is staged as two files of its own: the content, and a record that says which note it is of and what it
//! replaces. Linking the record to the next number **is** the write: the link is exclusive and atomic, so of all who
//! have read the same state one gets the number. Then the content takes the note's name, by a rename that uses it up:
//! whoever does it, it happens once, so one that was frozen meanwhile cannot bring an old content back. Nobody claims
//! a number before the claim before it has taken its name; so a worker that died in between is finished by the next.
//!
//! Old claims are removed, and staged files for their numbers before them: a worker that was frozen all along finds its
//! own file gone, and nothing to link.

mod publish;
mod staged;

pub(super) use publish::PublishError;
pub(super) use staged::{ClaimError, Staged};

use super::Author;
use super::held::{self, Held};
use super::name::Name;
use crate::Error;
use bloomery_crds::Digest;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;

/// The largest record that is read, in bytes.
const MAX_RECORD: u64 = 16 * 1024;

/// The record of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    /// The note.
    pub(super) file: String,
    /// The digest of its new content.
    pub(super) digest: Digest,
    /// The digest of the replaced content; `None` for a new note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaced: Option<Digest>,
    /// The author of the write.
    #[serde(flatten)]
    pub(super) author: Author,
    /// The suffix of the staged content's file name.
    pub(super) staged: String,
}

impl Record {
    /// Returns whether this write replaced `held`.
    pub(super) fn replaces(&self, held: Option<&Held>) -> bool {
        self.replaced.as_ref() == held.map(|held| &held.digest)
    }
}

/// The claims and the staged files of a bank.
#[derive(Debug)]
pub(super) struct Ledger {
    dir: Dir,
}

impl Ledger {
    pub(super) fn new(dir: Dir) -> Self {
        Self { dir }
    }

    /// Returns the number of the latest claim, or 0. A directory listing may be stale on a network file system, a lookup is
    /// not.
    pub(super) fn latest(&self) -> io::Result<u64> {
        let mut latest = self.names()?.iter().filter_map(|name| claimed(name)).max().unwrap_or_default();
        while let Some(next) = latest.checked_add(1)
            && self.dir.symlink_metadata(claim(next)).is_ok()
        {
            latest = next;
        }
        Ok(latest)
    }

    /// What a claim says; nothing where it is gone, or no claim of ours. One that cannot be read is an error: what it
    /// claims may be a write that nobody has finished.
    pub(super) fn record(&self, number: u64) -> io::Result<Option<Record>> {
        let name = claim(number);
        let bytes = match self.read(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io::Error::new(error.kind(), format!("{name} cannot be read: {error}"))),
            Ok(bytes) => bytes,
        };
        let record: Option<Record> = serde_json::from_slice(&bytes).ok();
        Ok(record.filter(|record| !record.staged.contains('/')))
    }

    /// The latest claim of each of these notes.
    pub(super) fn latest_of(&self, names: &[Name]) -> io::Result<BTreeMap<String, Record>> {
        let wanted: BTreeSet<String> = names.iter().map(Name::to_string).collect();
        let mut latest = BTreeMap::new();
        for number in self.numbers()?.into_iter().rev() {
            if latest.len() == wanted.len() {
                break;
            }
            if let Some(record) = self.record(number)?.filter(|record| wanted.contains(&record.file)) {
                latest.entry(record.file.clone()).or_insert(record);
            }
        }
        Ok(latest)
    }

    /// Returns whether a claim matches the predicate.
    pub(super) fn holds(&self, is_meant: impl Fn(&Record) -> bool) -> io::Result<bool> {
        for number in self.numbers()?.into_iter().rev() {
            if self.record(number)?.is_some_and(|record| is_meant(&record)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the claimed numbers in ascending order.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers: Vec<u64> = self.names()?.iter().filter_map(|name| claimed(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the claimed content, until it is published.
    pub(super) fn content(&self, number: u64, record: &Record, name: &Name) -> Result<Option<Held>, Error> {
        let read = held::read(&self.dir, Path::new(&content(number, &record.staged)), name)?;
        Ok(read.filter(|held| held.digest == record.digest))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = self.dir.entries()?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        held::open(&self.dir, name)?.take(MAX_RECORD).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

fn claim(number: u64) -> String {
    format!("{number:020}.json")
}

fn content(number: u64, staged: &str) -> String {
    format!("{number:020}.{staged}.md")
}

/// Returns the number of a claim from its file name.
fn claimed(name: &str) -> Option<u64> {
    numbered(name.strip_suffix(".json")?)
}

fn numbered(digits: &str) -> Option<u64> {
    if digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}
