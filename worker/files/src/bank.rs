//! The memory bank of a skill directory: notes that a Skill's Jobs leave for one another (`docs/explanation/design.md`, section 5).
//! There are six core notes, and `details/` for longer notes.
//!
//! Several workers may write at the same time, on one machine or on a network file system, and each of them may freeze or be
//! killed at any point. So the bank has no lock. Each write claims a number by creating a hard link, which fails if the number
//! is taken. The claim names the content that the write replaces (`ledger`). Other programs may have written the files, so
//! links are not followed, and sizes are limited.

mod author;
mod consult;
mod error;
mod ledger;
mod length;
mod limits;
mod name;
mod note_content;
mod open_bank;
mod write;

pub use author::Author;
pub use consult::{INDEX, Note};
pub use error::WriteError;
pub use limits::{ADVISED_CORE_WORDS, DETAILS, DIR, MAX_BANK_BYTES, MAX_DETAILS, MAX_NOTE_BYTES, NONE};
pub use name::{CORE, MAX_NAME_BYTES};

use crate::Error;
use crate::secrets::Secrets;
use crate::text;
use error::bank_error;
use length::{advice, count_words};
use name::Name;
use note_content::NoteContent;
use open_bank::OpenBank;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The memory bank, as one worker uses it. All methods block; the caller chooses the thread.
#[derive(Debug, Clone)]
pub struct Bank {
    skill_dir: PathBuf,
    writer: String,
    secrets: Secrets,
    /// The core notes that a conversation starts with.
    scope: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    file: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    file: String,
    content: String,
    expect: String,
}

impl Bank {
    /// Returns the bank in a skill directory. `writer` is unique to this worker.
    pub fn new(skill_dir: &Path, writer: &str) -> Self {
        let scope = CORE.map(str::to_owned).to_vec();
        Self { skill_dir: skill_dir.to_owned(), writer: writer.to_owned(), secrets: Secrets::default(), scope }
    }

    /// Returns the same bank with secrets. [`Bank::consult`] replaces each secret by a mark. [`Bank::write`] refuses a content
    /// that would overwrite a secret with its mark.
    #[must_use]
    pub fn with_secrets(&self, secrets: impl Into<Secrets>) -> Self {
        Self { secrets: secrets.into(), ..self.clone() }
    }

    /// Returns the same bank, of whose core notes a conversation starts only with those in `scope`.
    #[must_use]
    pub fn with_scope(self, scope: Vec<String>) -> Self {
        Self { scope, ..self }
    }

    /// Returns whether the bank has a note, or a directory or link with the name of one. Returns `true` if the bank cannot be
    /// opened, so that the caller reads the bank and gets the error.
    pub fn has_notes(&self) -> bool {
        match OpenBank::open(&self.skill_dir) {
            Ok(bank) => bank.is_some_and(|bank| bank.has_notes()),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Answers a call of `memory_read` with a note and its hash.
    ///
    /// # Errors
    /// A message for the model.
    pub fn read(&self, arguments: &str) -> Result<String, Error> {
        let ReadArguments { file } = crate::parse_arguments(arguments)?;
        let name = Name::parse(&file)?;
        let bank = OpenBank::open(&self.skill_dir).map_err(|error| bank_error(&error))?;
        let content = match &bank {
            Some(bank) => bank.content(&name)?,
            None => None,
        };
        let (Some(bank), Some(content)) = (&bank, content) else {
            return Err(format!(
                "The note {name} does not exist yet. To create it with memory_write, set expect to {NONE}."
            )
            .into());
        };
        Ok(render(&name, &content, bank))
    }

    /// Answers a call of `memory_write`: replaces a note, if its hash is still the expected one.
    ///
    /// Writing the current content again changes nothing and succeeds with any `expect`. A call can therefore be retried after a
    /// lost reply.
    ///
    /// # Errors
    /// If the note was not written, or if the outcome is unknown.
    pub fn write(&self, arguments: &str, author: &Author) -> Result<String, WriteError> {
        let WriteArguments { file, content, expect } = crate::parse_arguments(arguments)?;
        self.replace(&file, &content, expect.trim(), author)
    }

    /// Replaces a note, if its hash is the expected one.
    fn replace(&self, file: &str, content: &str, expect: &str, author: &Author) -> Result<String, WriteError> {
        let name = Name::parse(file)?;
        if content.len() > MAX_NOTE_BYTES {
            return Err(Error::from(format!(
                "The content has {} bytes, more than the limit of {MAX_NOTE_BYTES} for a note. Nothing was written. Keep only what later \
                 Jobs need, and move parts to notes in {DETAILS}/.",
                content.len()
            ))
            .into());
        }
        if text::has_nul(content.as_bytes()) {
            return Err(Error::from("The content contains a NUL byte, but a note is text. Nothing was written.").into());
        }
        let bank = OpenBank::open_or_create(&self.skill_dir).map_err(|error| bank_error(&error))?;
        let content = content.as_bytes();
        let request = write::NoteWrite { name: &name, content, expect, author, marks: &self.secrets.marks };
        bank.write(&request, &self.writer)
    }

    /// Writes the first content of a note, unless the note exists. A note that exists is not changed, whatever its content is.
    ///
    /// # Errors
    /// If the note was not written, if the outcome is unknown, or if something else than a note has its name.
    pub fn write_first(&self, file: &str, content: &str, author: &Author) -> Result<(), WriteError> {
        if self.has_note(file)? {
            return Ok(());
        }
        match self.replace(file, content, NONE, author) {
            Ok(_) => Ok(()),
            // Another worker was faster.
            Err(WriteError::Unwritten(_)) if self.has_note(file)? => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a note exists.
    ///
    /// # Errors
    /// If the note cannot be read.
    fn has_note(&self, file: &str) -> Result<bool, Error> {
        let name = Name::parse(file)?;
        match OpenBank::open(&self.skill_dir).map_err(|error| bank_error(&error))? {
            Some(bank) => Ok(bank.content(&name)?.is_some()),
            None => Ok(false),
        }
    }
}

/// Formats a note for the model.
fn render(name: &Name, content: &NoteContent, bank: &OpenBank) -> String {
    let text::Decoded { text, notes } = text::decode(&content.bytes);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let author = bank.authors(std::slice::from_ref(name)).suffix(name, &content.digest);
    let advice = advice(name, &text);
    format!("{text}{gap}[{name}: {} bytes, hash {}{author}{notes}]{advice}", content.bytes.len(), content.hash())
}

#[cfg(test)]
mod tests;
