//! A staged write.

use super::publish::PublishError;
use super::{Ledger, Record, claim, content};
use crate::bank::open_bank::{OpenBank, sync};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};

/// How many names are tried for a staged file: those of workers that died may still be there.
const MAX_NAMES: u32 = 1000;

static STAGED: AtomicU32 = AtomicU32::new(0);

/// A staged write. Dropping it before the claim removes its files.
#[derive(Debug)]
pub(in crate::bank) struct Staged<'a> {
    ledger: &'a Ledger,
    number: u64,
    pub(in crate::bank) record: Record,
    /// Whether the content belongs to a claim, or may belong to one.
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
    /// Stages a content and its record durably, to claim `number` with them.
    pub(in crate::bank) fn stage(
        &self,
        number: u64,
        mut record: Record,
        bytes: &[u8],
        writer: &str,
    ) -> io::Result<Staged<'_>> {
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

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        self.dir.open_with(name, options.write(true).create_new(true).follow(FollowSymlinks::No))
    }
}

impl Staged<'_> {
    /// Claims the number. The content of the claim before it must be published.
    ///
    /// Returns `false` if another worker has claimed it.
    pub(in crate::bank) fn claim(&mut self) -> Result<bool, ClaimError> {
        let dir = &self.ledger.dir;
        let linked = dir.hard_link(self.draft(), dir, claim(self.number));
        self.is_claimed = self.is_after(linked)?;
        if self.is_claimed {
            sync(&self.ledger.dir).map_err(ClaimError::Unknown)?;
        }
        Ok(self.is_claimed)
    }

    /// Returns whether this worker owns the number after a link attempt. The link may exist even if the attempt returned an
    /// error.
    pub(in crate::bank) fn is_after(&mut self, linked: io::Result<()>) -> Result<bool, ClaimError> {
        let error = match linked {
            Ok(()) => return Ok(true),
            // It was removed, with the claims of long ago.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => error,
        };
        match self.ledger.record(self.number) {
            // The reply was lost: the name exists, and is ours.
            Ok(Some(record)) if record == self.record => Ok(true),
            Ok(_) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Ok(_) => Err(ClaimError::Failed(error)),
            Err(unread) => {
                self.is_claimed = true;
                Err(ClaimError::Unknown(unread))
            }
        }
    }

    /// Publishes the claimed content under its note's name.
    pub(in crate::bank) fn publish(&self, cabinet: &OpenBank) -> Result<(), PublishError> {
        self.ledger.publish(self.number, &self.record, cabinet)
    }

    fn draft(&self) -> String {
        format!("{:020}.{}.json", self.number, self.record.staged)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // Pruning removes a file that cannot be removed here.
        let _ = self.ledger.dir.remove_file(self.draft());
        if !self.is_claimed {
            let _ = self.ledger.dir.remove_file(content(self.number, &self.record.staged));
        }
    }
}

/// Writes a file, durably.
fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}
