//! Replacing a note: compare-and-swap on what it holds.

use super::held::{self, Held};
use super::ledger::{ClaimError, Ledger, PublishError, Record, Staged};
use super::name::{CORE, Name};
use super::open_bank::OpenBank;
use super::{Author, DETAILS, MAX_BANK, MAX_DETAILS, NONE, WriteError};
use crate::Error;
use crate::marks::Marks;
use bloomery_crds::Digest;

/// The limit on claim attempts. Each failed attempt means that another worker wrote a note.
const MAX_TRIES: usize = 64;

/// A requested write of a note.
#[derive(Debug)]
pub(super) struct NoteWrite<'a> {
    pub(super) name: &'a Name,
    pub(super) content: &'a [u8],
    /// The expected hash of the current content.
    pub(super) expect: &'a str,
    pub(super) author: &'a Author,
    /// The redaction marks that must not replace a secret.
    pub(super) marks: &'a Marks,
}

/// The result of one attempt to write.
#[derive(Debug)]
pub(super) enum Attempt<'a> {
    /// The write is done, or not needed.
    Done(String),
    /// The write is staged and has to be claimed.
    Staged(Box<Staged<'a>>, Option<Held>),
    /// Another worker wrote meanwhile.
    Retry,
}

impl OpenBank {
    /// Replaces a note, if its hash is the expected one.
    ///
    /// # Errors
    /// If the note was not written, or may not have been.
    pub(super) fn write(&self, wish: &NoteWrite<'_>, writer: &str) -> Result<String, WriteError> {
        for _ in 0..MAX_TRIES {
            match self.attempt(wish, writer)? {
                Attempt::Done(text) => return Ok(text),
                Attempt::Retry => {}
                Attempt::Staged(mut staged, before) => {
                    if staged.claim().map_err(|why| unclaimed(wish.name, &why))? {
                        return Ok(self.finish(&staged, wish, before.as_ref())?);
                    }
                }
            }
        }
        let busy =
            format!("Other Jobs write to the memory bank all the time; {} was not written. Try again.", wish.name);
        Err(WriteError::Unwritten(busy.into()))
    }

    /// Compares the current content with the expected hash, and stages the new content.
    pub(super) fn attempt(&self, wish: &NoteWrite<'_>, writer: &str) -> Result<Attempt<'_>, Error> {
        let ledger = self.ledger.as_ref().ok_or("The memory bank cannot be used; nothing was written.")?;
        let latest = ledger.latest().map_err(|error| super::unusable(&error))?;
        if let Some(record) = ledger.record(latest).map_err(|error| super::unusable(&error))?
            && let Err(PublishError::Failed(why)) = ledger.publish(latest, &record, self)
        {
            return Err(
                format!("What another Job has written could not be finished: {why} Nothing was written.").into()
            );
        }
        let before = self.published(wish.name)?;
        if before.as_ref().is_some_and(|held| held.bytes == wish.content) {
            return Ok(Attempt::Done(format!("{} holds exactly that already: nothing was changed.", wish.name)));
        }
        if wish.expect != held::expectation(before.as_ref()) {
            return conflict(wish, before.as_ref(), ledger).map(Attempt::Done);
        }
        let old = before.as_ref().map(|held| held.bytes.as_slice()).unwrap_or_default();
        wish.marks.refuse(&wish.name.to_string(), wish.content, old)?;
        self.has_room(wish, before.as_ref())?;
        let number = latest.checked_add(1).ok_or("The memory bank has no numbers left; nothing was written.")?;
        let record = Record {
            file: wish.name.to_string(),
            digest: Digest::of_bytes(wish.content),
            replaced: before.as_ref().map(|held| held.digest.clone()),
            author: wish.author.clone(),
            staged: String::new(),
        };
        let staged = ledger.stage(number, record, wish.content, writer).map_err(|error| cannot(wish.name, &error))?;
        // Looked at once more, now that what is staged can be found: claims that are removed from here on take it along.
        let is_latest = ledger.latest().map_err(|error| super::unusable(&error))? == latest;
        Ok(if is_latest { Attempt::Staged(Box::new(staged), before) } else { Attempt::Retry })
    }

    /// Publishes the claimed content. The write has happened even if publishing fails.
    pub(super) fn finish(
        &self,
        staged: &Staged<'_>,
        wish: &NoteWrite<'_>,
        before: Option<&Held>,
    ) -> Result<String, Error> {
        if let Err(PublishError::ChangedByHand) = staged.publish(self) {
            return Err(format!(
                "{} was changed by hand at the same moment, and is left as it is now. Read it again.",
                wish.name
            )
            .into());
        }
        if let Some(ledger) = &self.ledger {
            // The next write prunes again.
            let _ = ledger.prune(self);
        }
        let (name, bytes) = (wish.name, wish.content.len());
        let text = String::from_utf8_lossy(wish.content);
        let what = match before {
            Some(before) => format!("{bytes} bytes in place of {}", before.bytes.len()),
            None => format!("a new note of {bytes} bytes"),
        };
        let hash = held::hash(&staged.record.digest);
        Ok(format!("Wrote {name}: {what}; its hash is {hash} now.{}", super::advice(name, &text)))
    }

    fn has_room(&self, wish: &NoteWrite<'_>, before: Option<&Held>) -> Result<(), Error> {
        let (details, is_cut) = self.details().map_err(|error| super::unusable(&error))?;
        if before.is_none() && !wish.name.is_core() && (is_cut || details.len() >= MAX_DETAILS) {
            return Err(format!(
                "{DETAILS}/ has {} notes, and may have {MAX_DETAILS}: write over one that is not needed any more; nothing \
                 was written.",
                details.len()
            ).into());
        }
        // A bank above the limit can still be shortened.
        if before.is_some_and(|before| wish.content.len() <= before.bytes.len()) {
            return Ok(());
        }
        let all = CORE.into_iter().map(Name::Core).chain(details);
        // Files that are too large to be read do not count as notes.
        let sizes = all.filter(|name| name != wish.name).filter_map(|name| self.size(&name));
        let others: u64 = sizes.filter(|size| *size <= held::MAX_READ).sum();
        let total = others.saturating_add(wish.content.len() as u64);
        if total > MAX_BANK {
            return Err(format!(
                "The memory bank would have {total} bytes, and may have {MAX_BANK}: shorten other notes first; nothing was \
                 written."
            ).into());
        }
        Ok(())
    }
}

/// Reports a hash that does not match. Succeeds if this call's own write was applied and then replaced.
fn conflict(wish: &NoteWrite<'_>, before: Option<&Held>, ledger: &Ledger) -> Result<String, Error> {
    let (name, now) = (wish.name, held::expectation(before));
    let digest = Digest::of_bytes(wish.content);
    let is_own = |record: &Record| {
        (&record.author.run_key, &record.author.call) == (&wish.author.run_key, &wish.author.call)
            && (&record.file, &record.digest) == (&name.to_string(), &digest)
    };
    if ledger.holds(is_own).map_err(|error| super::unusable(&error))? {
        return Ok(format!("Wrote {name}. It has been changed since then: its hash is {now} now."));
    }
    let expected = crate::place::shown(wish.expect);
    let message = if now == NONE {
        format!(
            "There is no note {name} (any more), so expect has to be {NONE}, and not {expected}; nothing was written."
        )
    } else {
        format!(
            "{name} is not what you have read: its hash is {now}, and not {expected}. Nothing was written. Read it again, \
             and write what is to stand there beside what others wrote."
        )
    };
    Err(message.into())
}

fn unclaimed(name: &Name, why: &ClaimError) -> WriteError {
    match why {
        ClaimError::Failed(error) => WriteError::Unwritten(cannot(name, error)),
        ClaimError::Unknown(error) => {
            WriteError::Unknown(format!("It is unknown whether {name} was written: {error}. Read it again.").into())
        }
    }
}

fn cannot(name: &Name, error: &std::io::Error) -> Error {
    format!("{name} cannot be written: {error}; nothing was written.").into()
}
