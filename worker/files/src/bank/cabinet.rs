//! The bank's directories, open: nothing outside of them is reached, whatever links say.

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

/// Where claims are, in the bank.
const LEDGER: &str = ".ledger";

/// How many entries of the details are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The open bank.
#[derive(Debug)]
pub(super) struct Cabinet {
    bank: Dir,
    details: Option<Dir>,
    /// None as long as no Job has written.
    pub(super) ledger: Option<Ledger>,
}

impl Cabinet {
    /// Opens the bank as it is; nothing where there is none.
    pub(super) fn find(memory: &Path) -> io::Result<Option<Self>> {
        let Some(bank) = found(Dir::open_ambient_dir(memory, ambient_authority())?.open_dir_nofollow(DIR))? else {
            return Ok(None);
        };
        let details = found(bank.open_dir_nofollow(DETAILS))?;
        let ledger = found(bank.open_dir_nofollow(LEDGER))?.map(Ledger::new);
        Ok(Some(Self { bank, details, ledger }))
    }

    /// Opens the bank to write to it; what is missing of it is made.
    pub(super) fn make(memory: &Path) -> io::Result<Self> {
        let memory = Dir::open_ambient_dir(memory, ambient_authority())?;
        let bank = made(&memory, DIR)?;
        let details = made(&bank, DETAILS)?;
        let ledger = Ledger::new(made(&bank, LEDGER)?);
        Ok(Self { bank, details: Some(details), ledger: Some(ledger) })
    }

    /// Where the file of a note is, if its directory is there.
    pub(super) fn place(&self, name: &Name) -> Option<&Dir> {
        if name.is_core() { Some(&self.bank) } else { self.details.as_ref() }
    }

    /// What a note holds: what was claimed last, though it may not have taken its name yet.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(super) fn held(&self, name: &Name) -> Result<Option<Held>, Error> {
        if let Some(claimed) = self.claimed(name)? {
            return Ok(Some(claimed));
        }
        self.published(name)
    }

    /// What stands under the name of a note.
    pub(super) fn published(&self, name: &Name) -> Result<Option<Held>, Error> {
        self.place(name).map_or(Ok(None), |dir| held::read(dir, name.file(), name))
    }

    /// What the latest claim holds, where it is of this note and has not taken its name yet.
    fn claimed(&self, name: &Name) -> Result<Option<Held>, Error> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let latest = ledger.latest().map_err(|error| super::unusable(&error))?;
        let record = ledger.record(latest).map_err(|error| super::unusable(&error))?;
        let Some(record) = record.filter(|record| record.file == name.to_string()) else { return Ok(None) };
        let before = self.published(name)?;
        // Whoever has changed it by hand since then is the later one.
        if !record.replaces(before.as_ref()) {
            return Ok(None);
        }
        ledger.content(latest, &record, name)
    }

    /// Who has written these notes last, as far as that can be read.
    pub(super) fn authors(&self, names: &[Name]) -> Authors {
        let read = self.ledger.as_ref().and_then(|ledger| ledger.latest_of(names).ok());
        Authors(read.unwrap_or_default())
    }

    /// The notes in the details, by name, and whether there is more than was looked at.
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

    /// How large the file of a note is; nothing where there is none.
    pub(super) fn size(&self, name: &Name) -> Option<u64> {
        let metadata = self.place(name)?.symlink_metadata(name.file()).ok()?;
        metadata.is_file().then(|| metadata.len())
    }

    /// Whether there is anything that could be a note, or should be one.
    pub(super) fn holds_notes(&self) -> bool {
        let is_there = |core: &&str| self.bank.symlink_metadata(core).is_ok();
        CORE.iter().any(is_there) || self.details().is_ok_and(|(names, _)| !names.is_empty()) || self.holds_a_claim()
    }

    /// Whether a note was claimed that has no name yet: the first one of all, perhaps.
    fn holds_a_claim(&self) -> bool {
        let Some(ledger) = &self.ledger else { return false };
        // What cannot be read is told to whoever reads on.
        let Ok(latest) = ledger.latest().and_then(|latest| ledger.record(latest)) else { return true };
        let name = latest.and_then(|record| Name::parse(&record.file).ok());
        name.is_some_and(|name| self.claimed(&name).map_or(true, |held| held.is_some()))
    }
}

/// The latest claims of some notes.
#[derive(Debug)]
pub(super) struct Authors(BTreeMap<String, Record>);

impl Authors {
    /// Who has written what a note holds, to be put behind it; nothing where a person has.
    pub(super) fn of(&self, name: &Name, digest: &Digest) -> String {
        let record = self.0.get(&name.to_string()).filter(|record| record.digest == *digest);
        record.map_or_else(String::new, |Record { author, .. }| {
            format!(", written by Job {} at {}", shown(&author.job), shown(&author.time))
        })
    }
}

/// A directory that may not be there.
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
