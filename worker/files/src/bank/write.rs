//! Replaces a note, if its content is the expected one.

use super::ledger::{ClaimError, Ledger, PublishError, Record, Staged};
use super::name::{CORE, Name};
use super::note_content::{self, NoteContent};
use super::open_bank::OpenBank;
use super::{Author, DETAILS, MAX_BANK_BYTES, MAX_DETAILS, NONE, WriteError};
use crate::Error;
use crate::marks::Marks;
use bloomery_crds::Digest;

/// The limit on claim attempts. An attempt fails if another worker writes a note at the same time.
const MAX_ATTEMPTS: usize = 64;

/// A requested write of a note.
#[derive(Debug)]
pub(super) struct NoteWrite<'a> {
    pub(super) name: &'a Name,
    pub(super) content: &'a [u8],
    /// The expected hash of the current content.
    pub(super) expect: &'a str,
    pub(super) author: &'a Author,
    /// The marks of secrets. The write is refused if one of them would overwrite its secret.
    pub(super) marks: &'a Marks,
}

/// The result of one attempt to write.
#[derive(Debug)]
pub(super) enum Attempt<'a> {
    /// The note has the content. Contains the message for the model.
    Done(String),
    /// The write is staged, and the caller has to claim it. Contains the old content of the note as well.
    Staged(Box<Staged<'a>>, Option<NoteContent>),
    /// Another worker has written a note since the attempt began.
    Retry,
}

impl OpenBank {
    /// Replaces a note, if its hash is the expected one.
    ///
    /// # Errors
    /// If the note was not written, or if the outcome is unknown.
    pub(super) fn write(&self, request: &NoteWrite<'_>, writer: &str) -> Result<String, WriteError> {
        for _ in 0..MAX_ATTEMPTS {
            match self.attempt(request, writer)? {
                Attempt::Done(text) => return Ok(text),
                Attempt::Retry => {}
                Attempt::Staged(mut staged, old) => {
                    let is_claimed = staged.claim().map_err(|error| claim_failure(request.name, &error))?;
                    if is_claimed {
                        return Ok(self.finish(&staged, request, old.as_ref())?);
                    }
                }
            }
        }
        let message =
            format!("{} was not written, because other Jobs keep writing to the memory bank. Try again.", request.name);
        Err(WriteError::Unwritten(message.into()))
    }

    /// Compares the current content with the expected hash, and stages the new content.
    pub(super) fn attempt(&self, request: &NoteWrite<'_>, writer: &str) -> Result<Attempt<'_>, Error> {
        let ledger = self.ledger.as_ref().ok_or("The memory bank is not open for writing. Nothing was written.")?;
        let latest = ledger.latest().map_err(|error| super::bank_error(&error))?;
        if let Some(record) = ledger.record(latest).map_err(|error| super::bank_error(&error))?
            && let Err(PublishError::Failed(reason)) = ledger.publish(latest, &record, self)
        {
            return Err(
                format!("The last write of another Job could not be completed: {reason} Nothing was written.").into()
            );
        }
        let old = self.published_content(request.name)?;
        if old.as_ref().is_some_and(|old| old.bytes == request.content) {
            return Ok(Attempt::Done(format!("{} already has this content. Nothing was changed.", request.name)));
        }
        if request.expect != note_content::expected_hash(old.as_ref()) {
            return resolve_conflict(request, old.as_ref(), ledger).map(Attempt::Done);
        }
        let old_bytes = old.as_ref().map(|old| old.bytes.as_slice()).unwrap_or_default();
        request.marks.check_none_added(&request.name.to_string(), request.content, old_bytes)?;
        self.check_room(request, old.as_ref())?;
        let number = latest.checked_add(1).ok_or("The memory bank has used all its numbers. Nothing was written.")?;
        let record = Record {
            file: request.name.to_string(),
            digest: Digest::of_bytes(request.content),
            replaced: old.as_ref().map(|old| old.digest.clone()),
            author: request.author.clone(),
            staged: String::new(),
        };
        let staged = ledger
            .stage(number, record, request.content, writer)
            .map_err(|error| cannot_write(request.name, &error))?;
        // `number` may be old: another worker may have claimed and pruned it before the staged files existed. If the latest
        // claim is still the same, `number` is free, and any later pruning also removes the staged files.
        let is_latest = ledger.latest().map_err(|error| super::bank_error(&error))? == latest;
        Ok(if is_latest { Attempt::Staged(Box::new(staged), old) } else { Attempt::Retry })
    }

    /// Publishes the claimed content, and returns the message for the model. The write has happened even if the file system
    /// refuses the publication, because the next write publishes the content.
    ///
    /// # Errors
    /// If a person has changed the note after the claim.
    pub(super) fn finish(
        &self,
        staged: &Staged<'_>,
        request: &NoteWrite<'_>,
        old: Option<&NoteContent>,
    ) -> Result<String, Error> {
        if let Err(PublishError::ChangedByHand) = staged.publish(self) {
            return Err(format!(
                "{} was not written, because a person has changed it at the same time. Read it again.",
                request.name
            )
            .into());
        }
        if let Some(ledger) = &self.ledger {
            // The next write prunes again.
            let _ = ledger.prune(self);
        }
        let (name, bytes) = (request.name, request.content.len());
        let text = String::from_utf8_lossy(request.content);
        let change = match old {
            Some(old) => format!("{bytes} bytes in place of {}", old.bytes.len()),
            None => format!("a new note of {bytes} bytes"),
        };
        let hash = note_content::hash(&staged.record.digest);
        Ok(format!("Wrote {name}: {change}. Its hash is now {hash}.{}", super::advice(name, &text)))
    }

    /// Checks the limits on the number of notes and on the size of the bank.
    fn check_room(&self, request: &NoteWrite<'_>, old: Option<&NoteContent>) -> Result<(), Error> {
        let (details, has_more) = self.details().map_err(|error| super::bank_error(&error))?;
        if old.is_none() && !request.name.is_core() && (has_more || details.len() >= MAX_DETAILS) {
            return Err(format!(
                "{DETAILS}/ has {} notes, and the limit is {MAX_DETAILS}. Nothing was written. Replace a note that is no longer \
                 needed.",
                details.len()
            ).into());
        }
        // Shortening a note is always allowed, even in a bank above the limit.
        if old.is_some_and(|old| request.content.len() <= old.bytes.len()) {
            return Ok(());
        }
        let all = CORE.into_iter().map(Name::Core).chain(details);
        // Files that are too large to read do not count.
        let sizes = all.filter(|name| name != request.name).filter_map(|name| self.size(&name));
        let others: u64 = sizes.filter(|size| *size <= note_content::MAX_READ_BYTES).sum();
        let total = others.saturating_add(request.content.len() as u64);
        if total > MAX_BANK_BYTES {
            return Err(format!(
                "The memory bank would have {total} bytes, more than the limit of {MAX_BANK_BYTES}. Nothing was written. Shorten other \
                 notes first."
            ).into());
        }
        Ok(())
    }
}

/// Handles a hash that is not the expected one. Returns a message of success if this call has already written the note, and
/// another write has replaced the note since.
///
/// # Errors
/// If this call has not written the note.
fn resolve_conflict(request: &NoteWrite<'_>, current: Option<&NoteContent>, ledger: &Ledger) -> Result<String, Error> {
    let (name, current_hash) = (request.name, note_content::expected_hash(current));
    let digest = Digest::of_bytes(request.content);
    let is_own = |record: &Record| {
        (&record.author.run_key, &record.author.call) == (&request.author.run_key, &request.author.call)
            && (&record.file, &record.digest) == (&name.to_string(), &digest)
    };
    if ledger.has_record(is_own).map_err(|error| super::bank_error(&error))? {
        return Ok(format!("Wrote {name}. Another write has changed it since. Its hash is now {current_hash}."));
    }
    let expected = crate::resource_path::quote(request.expect);
    let message = if current_hash == NONE {
        format!(
            "The note {name} does not exist. Nothing was written. To create it, set expect to {NONE} instead of {expected}."
        )
    } else {
        format!(
            "{name} has changed since you read it: its hash is {current_hash}, not {expected}. Nothing was written. Read it again, \
             and write your changes together with those of the others."
        )
    };
    Err(message.into())
}

fn claim_failure(name: &Name, error: &ClaimError) -> WriteError {
    match error {
        ClaimError::Failed(error) => WriteError::Unwritten(cannot_write(name, error)),
        ClaimError::Unknown(error) => {
            WriteError::Unknown(format!("{name} may or may not have been written: {error}. Read it again.").into())
        }
    }
}

fn cannot_write(name: &Name, error: &std::io::Error) -> Error {
    format!("{name} cannot be written: {error}. Nothing was written.").into()
}
