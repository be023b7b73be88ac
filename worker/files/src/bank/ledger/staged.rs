//! A write between being staged and being done.

use super::{Ledger, Overtaken, Record, claim, content};
use crate::bank::cabinet::{Cabinet, sync};
use std::io;

/// A write that has not happened yet. Dropped, it is gone.
#[derive(Debug)]
pub(in crate::bank) struct Staged<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) number: u64,
    pub(in crate::bank) record: Record,
    /// The content belongs to a claim, or nobody knows that it does not.
    pub(super) is_claimed: bool,
}

/// Why it is not said whether a number was claimed.
#[derive(Debug)]
pub(in crate::bank) enum Unclaimed {
    /// It was not.
    Failed(io::Error),
    /// Nobody knows: if it was, the write has happened.
    Unknown(io::Error),
}

impl Staged<'_> {
    /// Claims the number. Whoever has the number before it has to have taken its name.
    ///
    /// Gives false where another has claimed it.
    pub(in crate::bank) fn claim(&mut self) -> Result<bool, Unclaimed> {
        let dir = &self.ledger.dir;
        let linked = dir.hard_link(self.draft(), dir, claim(self.number));
        self.is_claimed = self.is_after(linked)?;
        if self.is_claimed {
            sync(&self.ledger.dir).map_err(Unclaimed::Unknown)?;
        }
        Ok(self.is_claimed)
    }

    /// Whether the number is ours after a link to it, which may have come to more than was answered.
    pub(in crate::bank) fn is_after(&mut self, linked: io::Result<()>) -> Result<bool, Unclaimed> {
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
            Ok(_) => Err(Unclaimed::Failed(error)),
            Err(unread) => {
                self.is_claimed = true;
                Err(Unclaimed::Unknown(unread))
            }
        }
    }

    /// Lets the content that was claimed take its note's name.
    pub(in crate::bank) fn publish(&self, cabinet: &Cabinet) -> Result<(), Overtaken> {
        self.ledger.publish(self.number, &self.record, cabinet)
    }

    pub(super) fn draft(&self) -> String {
        format!("{:020}.{}.json", self.number, self.record.staged)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // Nothing can be done about one that stays; it goes with the claims of its time.
        let _ = self.ledger.dir.remove_file(self.draft());
        if !self.is_claimed {
            let _ = self.ledger.dir.remove_file(content(self.number, &self.record.staged));
        }
    }
}
