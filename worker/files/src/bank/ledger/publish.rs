//! Publishing claimed contents, and removing old claims.

use super::{Ledger, Record, claim, claimed, content, numbered};
use crate::Error;
use crate::bank::name::Name;
use crate::bank::open_bank::{OpenBank, sync};
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// How many claims there may be before old ones go, and how many of the newest stay in any case.
const MAX_CLAIMS: usize = 512;
const KEPT_CLAIMS: usize = 256;

/// How much older than the newest claim one must be to go, by the clock of the file system: no worker is in the middle
/// of a write for as long, and no list of names is as old.
const KEPT_FOR: Duration = Duration::from_hours(1);

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
    pub(in crate::bank) fn publish(
        &self,
        number: u64,
        record: &Record,
        cabinet: &OpenBank,
    ) -> Result<(), PublishError> {
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
    pub(in crate::bank) fn prune(&self, cabinet: &OpenBank) -> io::Result<()> {
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
}

/// Returns the number of a staged file from its name.
fn staged_for(name: &str) -> Option<u64> {
    let (number, rest) = name.split_once('.')?;
    if rest == "json" { None } else { numbered(number) }
}

fn is_there(cabinet: &OpenBank, file: &str) -> bool {
    Name::parse(file).is_ok_and(|name| cabinet.size(&name).is_some())
}
