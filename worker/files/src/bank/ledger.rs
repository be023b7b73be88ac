//! The ledger orders all writes of a bank without a lock. Each write claims a number by creating a hard link, which fails if the
//! number is taken.
//!
//! 1. **Stage.** The worker writes two files: the content, and a record with the name of the note and the digests of its new and its
//!    replaced content.
//! 2. **Claim.** It links the record to the next number. The link is atomic, and only one worker gets the number. From then on the
//!    write has happened.
//! 3. **Publish.** It renames the content to the name of the note. The rename can happen only once, so a worker that was frozen
//!    cannot publish an old content again.
//!
//! Before a worker claims a number, it publishes the content of the latest claim. So the next write completes the write of a worker
//! that was killed between claim and publication.
//!
//! Pruning removes old claims. It first removes the staged files with the numbers of these claims. So a worker that was frozen
//! for long cannot claim a number that pruning has freed: it has no file to link.
//!
//! The log (`bloomery-journal`) claims names in the same way, but its code is not shared. A log segment has no second file to
//! publish. If the reply to a link is lost, the log ends its epoch, whereas the ledger has to find out whether the link exists.
//! The log opens files by path, so tests can simulate its disk. The ledger uses open directory handles, because it must not
//! follow links.

mod publish;
mod staged;

pub(super) use publish::PublishError;
pub(super) use staged::{ClaimError, Staged};

use super::Author;
use super::name::Name;
use super::note_content::{self, NoteContent};
use crate::Error;
use bloomery_crds::Digest;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;

/// The limit on the part of a record file that is read, in bytes.
const MAX_RECORD_BYTES: u64 = 16 * 1024;

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
    /// The unique part of the names of the staged files.
    pub(super) staged: String,
}

impl Record {
    /// Returns whether this write replaces `content`.
    pub(super) fn replaces(&self, content: Option<&NoteContent>) -> bool {
        self.replaced.as_ref() == content.map(|content| &content.digest)
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

    /// Returns the number of the latest claim; 0 without claims. The directory listing may be stale on a network file system,
    /// so the numbers after the listed ones are looked up by name.
    pub(super) fn latest(&self) -> io::Result<u64> {
        let mut latest = self.file_names()?.iter().filter_map(|name| parse_claim_file(name)).max().unwrap_or_default();
        while let Some(next) = latest.checked_add(1)
            && self.dir.symlink_metadata(claim_file(next)).is_ok()
        {
            latest = next;
        }
        Ok(latest)
    }

    /// Returns the record of a claim; `None` if the claim does not exist, or no worker has written it.
    ///
    /// # Errors
    /// If the claim cannot be read. Its write may not be published yet, so it must not be ignored.
    pub(super) fn record(&self, number: u64) -> io::Result<Option<Record>> {
        let name = claim_file(number);
        let bytes = match self.read(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io::Error::new(error.kind(), format!("{name} cannot be read: {error}"))),
            Ok(bytes) => bytes,
        };
        let record: Option<Record> = serde_json::from_slice(&bytes).ok();
        // A worker writes no `/` into `staged`. Such a path could lead to a content outside of the ledger.
        Ok(record.filter(|record| !record.staged.contains('/')))
    }

    /// Returns the record of the latest write of each of these notes.
    pub(super) fn latest_records(&self, names: &[Name]) -> io::Result<BTreeMap<String, Record>> {
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

    /// Returns whether the ledger has a record that matches.
    pub(super) fn has_record(&self, matches: impl Fn(&Record) -> bool) -> io::Result<bool> {
        for number in self.numbers()?.into_iter().rev() {
            if self.record(number)?.is_some_and(|record| matches(&record)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the claimed numbers in ascending order.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers: Vec<u64> = self.file_names()?.iter().filter_map(|name| parse_claim_file(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the claimed content while it is staged; `None` once it is published, or if it does not match the record.
    pub(super) fn content(&self, number: u64, record: &Record, name: &Name) -> Result<Option<NoteContent>, Error> {
        let content = note_content::read(&self.dir, Path::new(&content_file(number, &record.staged)), name)?;
        Ok(content.filter(|content| content.digest == record.digest))
    }

    fn file_names(&self) -> io::Result<Vec<String>> {
        let names = self.dir.entries()?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        note_content::open(&self.dir, name)?.take(MAX_RECORD_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Returns the file name of a claim.
fn claim_file(number: u64) -> String {
    format!("{number:020}.json")
}

/// Returns the file name of a staged content.
fn content_file(number: u64, staged: &str) -> String {
    format!("{number:020}.{staged}.md")
}

/// Returns the number of a claim from its file name; `None` for other files.
fn parse_claim_file(name: &str) -> Option<u64> {
    parse_number(name.strip_suffix(".json")?)
}

/// Parses the number in a file name. It has 20 digits, as many as the largest `u64`.
fn parse_number(digits: &str) -> Option<u64> {
    if digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}
