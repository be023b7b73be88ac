//! Publishes claimed contents, and removes old claims.

use super::{Ledger, Record, claim_file, content_file, parse_claim_file, parse_number};
use crate::Error;
use crate::bank::name::Name;
use crate::bank::open_bank::{OpenBank, sync_dir};
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// The number of claims above which old claims are removed.
const MAX_CLAIMS: usize = 512;

/// The number of claims that pruning keeps in any case: the newest ones.
const MIN_CLAIMS: usize = 256;

/// The age above which a claim can be removed. It is the time from the claim to the newest claim, by the clock of the file system. No
/// write takes that long, and no directory listing is that stale.
const MIN_AGE: Duration = Duration::from_hours(1);

/// The error of publishing a claimed content under its note's name.
#[derive(Debug)]
pub(in crate::bank) enum PublishError {
    /// A person changed the note after the claim.
    ChangedByHand,
    /// The file system refused the operation.
    Failed(Error),
}

impl Ledger {
    /// Publishes a claimed content under its note's name, unless that was done before.
    pub(in crate::bank) fn publish(&self, number: u64, record: &Record, bank: &OpenBank) -> Result<(), PublishError> {
        // No worker writes a record with an invalid note name.
        let Ok(name) = Name::parse(&record.file) else { return Ok(()) };
        let from = content_file(number, &record.staged);
        let failure = |error: &io::Error| PublishError::Failed(format!("{name} cannot be written: {error}.").into());
        let current = bank.published_content(&name).map_err(PublishError::Failed)?;
        match self.dir.symlink_metadata(&from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            metadata => metadata.map_err(|error| failure(&error))?,
        };
        // The staged content still exists, so no worker had published it when `current` was read. If `current` is neither the
        // replaced nor the claimed content, a person has written it.
        let is_replaced_or_claimed =
            record.replaces(current.as_ref()) || current.is_some_and(|current| current.digest == record.digest);
        if !is_replaced_or_claimed {
            return match self.dir.remove_file(&from) {
                // Another worker was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                _ => Err(PublishError::ChangedByHand),
            };
        }
        // A bank that is open for writing has all directories.
        let Some(to) = bank.dir_of(&name) else { return Ok(()) };
        match self.dir.rename(&from, to, name.file()) {
            // Another worker was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(|error| failure(&error))?,
        }
        sync_dir(to).and_then(|()| sync_dir(&self.dir)).map_err(|error| failure(&error))
    }

    /// Removes old claims if there are more than [`MAX_CLAIMS`]. Keeps the last claim of each existing note, because it names
    /// the author.
    pub(in crate::bank) fn prune(&self, bank: &OpenBank) -> io::Result<()> {
        let names = self.file_names()?;
        let mut claims: Vec<u64> = names.iter().filter_map(|name| parse_claim_file(name)).collect();
        if claims.len() <= MAX_CLAIMS {
            return Ok(());
        }
        claims.sort_unstable();
        let time_of =
            |number: u64| self.dir.symlink_metadata(claim_file(number)).and_then(|metadata| metadata.modified());
        let newest_time = time_of(claims.last().copied().unwrap_or_default())?;
        let mut files_seen = BTreeSet::new();
        // The claims to remove, the newest first.
        let mut removable = Vec::new();
        for (newer_claims, number) in claims.into_iter().rev().enumerate() {
            // Keep a claim that cannot be read: it may be the last one of its note.
            let Ok(record) = self.record(number) else { continue };
            let file = record.map(|record| record.file);
            let is_last_of_note =
                file.as_ref().is_some_and(|file| files_seen.insert(file.clone()) && note_exists(bank, file));
            let is_old =
                || time_of(number).is_ok_and(|time| newest_time.duration_since(time).is_ok_and(|age| age > MIN_AGE));
            if newer_claims >= MIN_CLAIMS && !is_last_of_note && is_old() {
                removable.push(number);
            }
        }
        let Some(newest_removable) = removable.first().copied() else { return Ok(()) };
        let is_stale = |name: &&String| parse_staged_file(name).is_some_and(|number| number <= newest_removable);
        for name in names.iter().filter(is_stale) {
            let _ = self.dir.remove_file(name);
        }
        sync_dir(&self.dir)?;
        removable.into_iter().rev().try_for_each(|number| self.dir.remove_file(claim_file(number)))
    }
}

/// Returns the number of a staged file from its name; `None` for claims and other files.
fn parse_staged_file(name: &str) -> Option<u64> {
    let (number, rest) = name.split_once('.')?;
    if rest == "json" { None } else { parse_number(number) }
}

fn note_exists(bank: &OpenBank, file: &str) -> bool {
    Name::parse(file).is_ok_and(|name| bank.size(&name).is_some())
}
