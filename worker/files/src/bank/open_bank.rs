//! The open directories of the bank. Access stays below them; links are not followed.

use super::held::{self, Held};
use super::ledger::{Ledger, Record};
use super::{CORE, DETAILS, DIR, Name};
use crate::Error;
use crate::place::shown;
use bloomery_crds::Digest;
use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The directory of the claims, in the bank.
const LEDGER: &str = ".ledger";

/// The limit on the entries of the details directory that are read.
const MAX_ENTRIES: usize = 10_000;

/// The open bank.
#[derive(Debug)]
pub(super) struct OpenBank {
    bank: Dir,
    details: Option<Dir>,
    /// `None` until a Job writes a note.
    pub(super) ledger: Option<Ledger>,
}

impl OpenBank {
    /// Opens an existing bank. Returns `None` if there is none.
    pub(super) fn find(memory: &Path) -> io::Result<Option<Self>> {
        let Some(bank) = found(Dir::open_ambient_dir(memory, ambient_authority())?.open_dir_nofollow(DIR))? else {
            return Ok(None);
        };
        let details = found(bank.open_dir_nofollow(DETAILS))?;
        let ledger = found(bank.open_dir_nofollow(LEDGER))?.map(Ledger::new);
        Ok(Some(Self { bank, details, ledger }))
    }

    /// Opens the bank for writing, and creates missing directories.
    pub(super) fn make(memory: &Path) -> io::Result<Self> {
        let memory = Dir::open_ambient_dir(memory, ambient_authority())?;
        let bank = made(&memory, DIR)?;
        let details = made(&bank, DETAILS)?;
        let ledger = Ledger::new(made(&bank, LEDGER)?);
        Ok(Self { bank, details: Some(details), ledger: Some(ledger) })
    }

    /// Returns the directory of a note's file, if it exists.
    pub(super) fn place(&self, name: &Name) -> Option<&Dir> {
        if name.is_core() { Some(&self.bank) } else { self.details.as_ref() }
    }

    /// Returns the content of a note: the one claimed last, even if it is not published yet.
    ///
    /// # Errors
    /// A message for the model.
    pub(super) fn held(&self, name: &Name) -> Result<Option<Held>, Error> {
        if let Some(claimed) = self.claimed(name)? {
            return Ok(Some(claimed));
        }
        self.published(name)
    }

    /// Returns the published content of a note.
    pub(super) fn published(&self, name: &Name) -> Result<Option<Held>, Error> {
        self.place(name).map_or(Ok(None), |dir| held::read(dir, name.file(), name))
    }

    /// Returns the content of the latest claim, if it is for this note and not published yet.
    fn claimed(&self, name: &Name) -> Result<Option<Held>, Error> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let latest = ledger.latest().map_err(|error| super::unusable(&error))?;
        let record = ledger.record(latest).map_err(|error| super::unusable(&error))?;
        let Some(record) = record.filter(|record| record.file == name.to_string()) else { return Ok(None) };
        let before = self.published(name)?;
        // A manual change after the claim is newer than the claim.
        if !record.replaces(before.as_ref()) {
            return Ok(None);
        }
        ledger.content(latest, &record, name)
    }

    /// Returns the last authors of these notes, as far as their claims can be read.
    pub(super) fn authors(&self, names: &[Name]) -> Authors {
        let read = self.ledger.as_ref().and_then(|ledger| ledger.latest_of(names).ok());
        Authors(read.unwrap_or_default())
    }

    /// Returns the notes in the details, by name, and whether there are more entries than the limit.
    pub(super) fn details(&self) -> io::Result<(Vec<Name>, bool)> {
        let Some(details) = &self.details else { return Ok((Vec::new(), false)) };
        let mut names = Vec::new();
        let mut entries = details.entries()?;
        for entry in entries.by_ref().take(MAX_ENTRIES) {
            names.extend(entry?.file_name().to_str().and_then(Name::of_detail));
        }
        names.sort();
        Ok((names, entries.next().is_some()))
    }

    /// Returns the size of a note's file in bytes, if it exists.
    pub(super) fn size(&self, name: &Name) -> Option<u64> {
        let metadata = self.place(name)?.symlink_metadata(name.file()).ok()?;
        metadata.is_file().then(|| metadata.len())
    }

    /// Returns whether the bank holds a note, or something in the place of one.
    pub(super) fn holds_notes(&self) -> bool {
        let is_there = |core: &&str| self.bank.symlink_metadata(core).is_ok();
        CORE.iter().any(is_there) || self.details().is_ok_and(|(names, _)| !names.is_empty()) || self.holds_a_claim()
    }

    /// Returns whether a claimed note is not published yet.
    fn holds_a_claim(&self) -> bool {
        let Some(ledger) = &self.ledger else { return false };
        // A later read returns the error.
        let Ok(latest) = ledger.latest().and_then(|latest| ledger.record(latest)) else { return true };
        let name = latest.and_then(|record| Name::parse(&record.file).ok());
        name.is_some_and(|name| self.claimed(&name).map_or(true, |held| held.is_some()))
    }
}

/// The latest claims of some notes.
#[derive(Debug)]
pub(super) struct Authors(BTreeMap<String, Record>);

impl Authors {
    /// Returns the author of a note's content as a suffix for messages; empty if a person wrote it.
    pub(super) fn suffix(&self, name: &Name, digest: &Digest) -> String {
        let record = self.0.get(&name.to_string()).filter(|record| record.digest == *digest);
        record.map_or_else(String::new, |Record { author, .. }| {
            format!(", written by Job {} at {}", shown(&author.job), shown(&author.time))
        })
    }
}

/// Turns a missing directory into `None`.
fn found(opened: io::Result<Dir>) -> io::Result<Option<Dir>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn made(parent: &Dir, name: &str) -> io::Result<Dir> {
    match parent.create_dir(name) {
        Ok(()) => sync(parent)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    parent.open_dir_nofollow(name)
}

/// Makes the entries of a directory durable.
pub(super) fn sync(dir: &Dir) -> io::Result<()> {
    dir.open(".")?.sync_all()
}
