//! A staged write.

use super::{Ledger, PublishError, Record, claim, content};
use crate::bank::open_bank::{OpenBank, sync};
use std::io;

/// A staged write. Dropping it before the claim removes its files.
#[derive(Debug)]
pub(in crate::bank) struct Staged<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) number: u64,
    pub(in crate::bank) record: Record,
    /// Whether the content belongs to a claim, or may belong to one.
    pub(super) is_claimed: bool,
}

/// The error of a claim.
#[derive(Debug)]
pub(in crate::bank) enum ClaimError {
    /// The number was not claimed.
    Failed(io::Error),
    /// The outcome is unknown. If the number was claimed, the write has happened.
    Unknown(io::Error),
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

    pub(super) fn draft(&self) -> String {
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
