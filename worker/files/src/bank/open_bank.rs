//! The open directories of the bank. All access stays below them, and follows no links.

use super::ledger::{Ledger, Record};
use super::note_content::{self, NoteContent};
use super::{CORE, DETAILS, DIR, Name};
use crate::Error;
use crate::resource_path::quote;
use bloomery_crds::Digest;
use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The directory of the claims, in the bank.
const LEDGER_DIR: &str = ".ledger";

/// The limit on the entries of the details directory that are read.
const MAX_ENTRIES: usize = 10_000;

/// The directories of an open bank.
#[derive(Debug)]
pub(super) struct OpenBank {
    bank: Dir,
    details: Option<Dir>,
    /// The ledger; `None` before a Job has written a note.
    pub(super) ledger: Option<Ledger>,
}

impl OpenBank {
    /// Opens an existing bank. Returns `None` if the bank does not exist.
    pub(super) fn open(skill_dir: &Path) -> io::Result<Option<Self>> {
        let skill_dir = Dir::open_ambient_dir(skill_dir, ambient_authority())?;
        let Some(bank) = if_exists(skill_dir.open_dir_nofollow(DIR))? else { return Ok(None) };
        let details = if_exists(bank.open_dir_nofollow(DETAILS))?;
        let ledger = if_exists(bank.open_dir_nofollow(LEDGER_DIR))?.map(Ledger::new);
        Ok(Some(Self { bank, details, ledger }))
    }

    /// Opens the bank for writing, and creates missing directories.
    pub(super) fn open_or_create(skill_dir: &Path) -> io::Result<Self> {
        let skill_dir = Dir::open_ambient_dir(skill_dir, ambient_authority())?;
        let bank = open_or_create_dir(&skill_dir, DIR)?;
        let details = open_or_create_dir(&bank, DETAILS)?;
        let ledger = Ledger::new(open_or_create_dir(&bank, LEDGER_DIR)?);
        Ok(Self { bank, details: Some(details), ledger: Some(ledger) })
    }

    /// Returns the directory of a note's file, if it exists.
    pub(super) fn dir_of(&self, name: &Name) -> Option<&Dir> {
        if name.is_core() { Some(&self.bank) } else { self.details.as_ref() }
    }

    /// Returns the content of a note. If the latest claim is for this note, that is the claimed content, even before it is
    /// published.
    ///
    /// # Errors
    /// A message for the model.
    pub(super) fn content(&self, name: &Name) -> Result<Option<NoteContent>, Error> {
        match self.unpublished_content(name)? {
            Some(claimed) => Ok(Some(claimed)),
            None => self.published_content(name),
        }
    }

    /// Returns the published content of a note.
    pub(super) fn published_content(&self, name: &Name) -> Result<Option<NoteContent>, Error> {
        self.dir_of(name).map_or(Ok(None), |dir| note_content::read(dir, name.file(), name))
    }

    /// Returns the content of the latest claim, if it is for this note and not published yet.
    fn unpublished_content(&self, name: &Name) -> Result<Option<NoteContent>, Error> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let latest = ledger.latest().map_err(|error| super::bank_error(&error))?;
        let record = ledger.record(latest).map_err(|error| super::bank_error(&error))?;
        let Some(record) = record.filter(|record| record.file == name.to_string()) else { return Ok(None) };
        let published = self.published_content(name)?;
        // If the file does not have the replaced content, the claim is published, or a person has changed the note after the
        // claim.
        if !record.replaces(published.as_ref()) {
            return Ok(None);
        }
        ledger.content(latest, &record, name)
    }

    /// Returns the last authors of these notes, if their claims can be read.
    pub(super) fn authors(&self, names: &[Name]) -> Authors {
        let records = self.ledger.as_ref().and_then(|ledger| ledger.latest_records(names).ok());
        Authors(records.unwrap_or_default())
    }

    /// Returns the notes in [`DETAILS`], sorted by name, and whether the directory has more entries than the limit.
    pub(super) fn details(&self) -> io::Result<(Vec<Name>, bool)> {
        let Some(details) = &self.details else { return Ok((Vec::new(), false)) };
        let mut names = Vec::new();
        let mut entries = details.entries()?;
        for entry in entries.by_ref().take(MAX_ENTRIES) {
            names.extend(entry?.file_name().to_str().and_then(Name::from_details_file));
        }
        names.sort();
        Ok((names, entries.next().is_some()))
    }

    /// Returns the size of a note's file in bytes, if the file exists.
    pub(super) fn size(&self, name: &Name) -> Option<u64> {
        let metadata = self.dir_of(name)?.symlink_metadata(name.file()).ok()?;
        metadata.is_file().then(|| metadata.len())
    }

    /// Returns whether the bank has a note, or a directory or link with the name of one.
    pub(super) fn has_notes(&self) -> bool {
        let exists = |core: &&str| self.bank.symlink_metadata(core).is_ok();
        CORE.iter().any(exists)
            || self.details().is_ok_and(|(names, _)| !names.is_empty())
            || self.has_unpublished_note()
    }

    /// Returns whether a claimed note is not published yet. Returns `true` if the claim cannot be read, so that the caller reads
    /// the bank and gets the error.
    fn has_unpublished_note(&self) -> bool {
        let Some(ledger) = &self.ledger else { return false };
        let Ok(latest) = ledger.latest().and_then(|latest| ledger.record(latest)) else { return true };
        let name = latest.and_then(|record| Name::parse(&record.file).ok());
        name.is_some_and(|name| self.unpublished_content(&name).map_or(true, |content| content.is_some()))
    }
}

/// The records of the latest writes of some notes, by the names of the notes.
#[derive(Debug)]
pub(super) struct Authors(BTreeMap<String, Record>);

impl Authors {
    /// Returns the author of a note's content as a suffix for messages; empty if a person wrote it.
    pub(super) fn suffix(&self, name: &Name, digest: &Digest) -> String {
        let record = self.0.get(&name.to_string()).filter(|record| record.digest == *digest);
        record.map_or_else(String::new, |Record { author, .. }| {
            format!(", written by Job {} at {}", quote(&author.job), quote(&author.time))
        })
    }
}

/// Turns a missing directory into `None`.
fn if_exists(opened: io::Result<Dir>) -> io::Result<Option<Dir>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Opens a directory, and creates it durably if it is missing.
fn open_or_create_dir(parent: &Dir, name: &str) -> io::Result<Dir> {
    match parent.create_dir(name) {
        Ok(()) => sync_dir(parent)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    parent.open_dir_nofollow(name)
}

/// Makes the entries of a directory durable.
pub(super) fn sync_dir(dir: &Dir) -> io::Result<()> {
    dir.open(".")?.sync_all()
}
