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

mod staged;

pub(super) use staged::{ClaimError, Staged};

use super::Author;
use super::held::{self, Held};
use super::name::Name;
use super::open_bank::{OpenBank, sync};
use crate::Error;
use bloomery_crds::Digest;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The largest record that is read, in bytes.
const MAX_RECORD: u64 = 16 * 1024;

/// How many claims there may be before old ones go, and how many of the newest stay in any case.
const MAX_CLAIMS: usize = 512;
const KEPT_CLAIMS: usize = 256;

/// How much older than the newest claim one must be to go, by the clock of the file system: no worker is in the middle
/// of a write for as long, and no list of names is as old.
const KEPT_FOR: Duration = Duration::from_hours(1);

/// How many names are tried for a staged file: those of workers that died may still be there.
const MAX_NAMES: u32 = 1000;

static STAGED: AtomicU32 = AtomicU32::new(0);

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

/// The error of publishing a claimed content under its note's name.
#[derive(Debug)]
pub(super) enum PublishError {
    /// A person changed the note after the claim.
    ChangedByHand,
    /// The file system refused the operation.
    Failed(Error),
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

    /// Stages a content and its record durably, to claim `number` with them.
    pub(super) fn stage(&self, number: u64, mut record: Record, bytes: &[u8], writer: &str) -> io::Result<Staged<'_>> {
        for _ in 0..MAX_NAMES {
            let count = STAGED.fetch_add(1, Ordering::Relaxed);
            record.staged = format!("{writer}-{}-{count}", std::process::id());
            let file = match self.create(&content(number, &record.staged)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            };
            // From here on, whatever is there of it goes with this.
            let staged = Staged { ledger: self, number, record, is_claimed: false };
            fill(file, bytes)?;
            fill(self.create(&staged.draft())?, &serde_json::to_vec(&staged.record)?)?;
            return Ok(staged);
        }
        Err(io::Error::other("too many files of workers that died lie in it"))
    }

    /// Publishes a claimed content under its note's name, unless that was done before.
    pub(super) fn publish(&self, number: u64, record: &Record, cabinet: &OpenBank) -> Result<(), PublishError> {
        // A record with an invalid note name is not from a worker.
        let Ok(name) = Name::parse(&record.file) else { return Ok(()) };
        let from = content(number, &record.staged);
        let fault = |error: &io::Error| PublishError::Failed(format!("{name} cannot be written: {error}.").into());
        let now = cabinet.published(&name).map_err(PublishError::Failed)?;
        match self.dir.symlink_metadata(&from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(|error| fault(&error))?,
        };
        // Asked after the content, which others may have used up: then this is not what was replaced either.
        if !record.replaces(now.as_ref()) && now.is_none_or(|now| now.digest != record.digest) {
            return match self.dir.remove_file(&from) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                _ => Err(PublishError::ChangedByHand),
            };
        }
        let Some(to) = cabinet.place(&name) else { return Ok(()) };
        match self.dir.rename(&from, to, name.file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(|error| fault(&error))?,
        }
        sync(to).and_then(|()| sync(&self.dir)).map_err(|error| fault(&error))
    }

    /// Removes old claims above [`MAX_CLAIMS`], except the last one of each existing note.
    pub(super) fn prune(&self, cabinet: &OpenBank) -> io::Result<()> {
        let names = self.names()?;
        let mut claims: Vec<u64> = names.iter().filter_map(|name| claimed(name)).collect();
        if claims.len() <= MAX_CLAIMS {
            return Ok(());
        }
        claims.sort_unstable();
        let aged = |number: u64| self.dir.symlink_metadata(claim(number)).and_then(|found| found.modified());
        let newest = aged(claims.last().copied().unwrap_or_default())?;
        let mut later = BTreeSet::new();
        let mut old = Vec::new();
        for (at, number) in claims.into_iter().rev().enumerate() {
            let Ok(record) = self.record(number) else { continue };
            let file = record.map(|record| record.file);
            let is_last = file.as_ref().is_some_and(|file| later.insert(file.clone()) && is_there(cabinet, file));
            let is_old = || aged(number).is_ok_and(|at| newest.duration_since(at).is_ok_and(|age| age > KEPT_FOR));
            if at >= KEPT_CLAIMS && !is_last && is_old() {
                old.push(number);
            }
        }
        let Some(youngest) = old.first().copied() else { return Ok(()) };
        for name in names.iter().filter(|name| staged_for(name).is_some_and(|number| number <= youngest)) {
            let _ = self.dir.remove_file(name);
        }
        sync(&self.dir)?;
        old.into_iter().rev().try_for_each(|number| self.dir.remove_file(claim(number)))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = self.dir.entries()?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        self.dir.open_with(name, options.write(true).create_new(true).follow(FollowSymlinks::No))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        held::open(&self.dir, name)?.take(MAX_RECORD).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Writes a file, durably.
fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
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

/// Returns the number of a staged file from its name.
fn staged_for(name: &str) -> Option<u64> {
    let (number, rest) = name.split_once('.')?;
    if rest == "json" { None } else { numbered(number) }
}

fn numbered(digits: &str) -> Option<u64> {
    if digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

fn is_there(cabinet: &OpenBank, file: &str) -> bool {
    Name::parse(file).is_ok_and(|name| cabinet.size(&name).is_some())
}
