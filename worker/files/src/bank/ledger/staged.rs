//! Stages and claims writes.

use super::publish::PublishError;
use super::{Ledger, Record, claim_file, content_file};
use crate::bank::open_bank::{OpenBank, sync_dir};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};

/// The limit on the names that are tried for a staged file. Staged files of killed workers may have the first ones.
const MAX_NAMES: u32 = 1000;

/// The number of staged writes of this process, which makes their names unique.
static STAGED_COUNT: AtomicU32 = AtomicU32::new(0);

/// A staged write. Dropping it before the claim removes its files.
#[derive(Debug)]
pub(in crate::bank) struct Staged<'a> {
    ledger: &'a Ledger,
    number: u64,
    pub(in crate::bank) record: Record,
    /// Whether the number was claimed, or may have been. If so, the staged content must not be removed.
    is_claimed: bool,
}

/// The error of a claim.
#[derive(Debug)]
pub(in crate::bank) enum ClaimError {
    /// The number was not claimed.
    Failed(io::Error),
    /// The outcome is unknown. If the number was claimed, the write has happened.
    Unknown(io::Error),
}

impl Ledger {
    /// Stages a content and its record durably for the claim of `number`.
    pub(in crate::bank) fn stage(
        &self,
        number: u64,
        mut record: Record,
        bytes: &[u8],
        writer: &str,
    ) -> io::Result<Staged<'_>> {
        for _ in 0..MAX_NAMES {
            let count = STAGED_COUNT.fetch_add(1, Ordering::Relaxed);
            record.staged = format!("{writer}-{}-{count}", std::process::id());
            let file = match self.create(&content_file(number, &record.staged)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            };
            // From here on, dropping `staged` removes the files.
            let staged = Staged { ledger: self, number, record, is_claimed: false };
            write_durably(file, bytes)?;
            write_durably(self.create(&staged.record_file())?, &serde_json::to_vec(&staged.record)?)?;
            return Ok(staged);
        }
        Err(io::Error::other("the ledger contains too many staged files of killed workers"))
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        self.dir.open_with(name, options.write(true).create_new(true).follow(FollowSymlinks::No))
    }
}

impl Staged<'_> {
    /// Claims the number. The caller must have published the content of the previous claim.
    ///
    /// Returns `false` if another worker has claimed the number.
    pub(in crate::bank) fn claim(&mut self) -> Result<bool, ClaimError> {
        let dir = &self.ledger.dir;
        let link_result = dir.hard_link(self.record_file(), dir, claim_file(self.number));
        self.is_claimed = self.owns_number(link_result)?;
        if self.is_claimed {
            sync_dir(&self.ledger.dir).map_err(ClaimError::Unknown)?;
        }
        Ok(self.is_claimed)
    }

    /// Returns whether this worker owns the number, from the result of the link. On a network file system, the link may exist even
    /// if its creation returned an error.
    pub(in crate::bank) fn owns_number(&mut self, link_result: io::Result<()>) -> Result<bool, ClaimError> {
        let error = match link_result {
            Ok(()) => return Ok(true),
            // Another worker has pruned the record, so the number is an old one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => error,
        };
        match self.ledger.record(self.number) {
            // The link exists, and only its reply was lost.
            Ok(Some(record)) if record == self.record => Ok(true),
            Ok(_) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Ok(_) => Err(ClaimError::Failed(error)),
            Err(read_error) => {
                self.is_claimed = true;
                Err(ClaimError::Unknown(read_error))
            }
        }
    }

    /// Publishes the claimed content under its note's name.
    pub(in crate::bank) fn publish(&self, bank: &OpenBank) -> Result<(), PublishError> {
        self.ledger.publish(self.number, &self.record, bank)
    }

    /// Returns the file name of the staged record.
    fn record_file(&self) -> String {
        format!("{:020}.{}.json", self.number, self.record.staged)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // If a removal fails, pruning removes the file later.
        let _ = self.ledger.dir.remove_file(self.record_file());
        if !self.is_claimed {
            let _ = self.ledger.dir.remove_file(content_file(self.number, &self.record.staged));
        }
    }
}

/// Writes a content durably.
fn write_durably(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}
