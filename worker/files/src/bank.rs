//! The memory bank of a skill directory: notes that a Skill's Jobs leave for one another (seed 003, "Memory Bank"; `docs/explanation/design.md`,
//! section 5). Six core notes, and `details/` for what is too long for them.
//!
//! Several workers may write at once, on one machine or on a network file system, and any of them may freeze or die at
//! any point. So there is no lock: like the log, each write claims a number by an exclusive hard link (`ledger`), and
//! the claim says what it replaces. What is read is data of others: links are not followed, nothing large is held.

mod author;
mod consult;
mod error;
mod held;
mod ledger;
mod length;
mod limits;
mod name;
mod open_bank;
mod write;

pub use author::Author;
pub use consult::{INDEX, Note};
pub use error::WriteError;
pub use limits::{CORE_WORDS, DETAILS, DIR, MAX_BANK, MAX_DETAILS, MAX_NOTE, NONE};
pub use name::{CORE, MAX_NAME};

use crate::Error;
use crate::secrets::Secrets;
use crate::text;
use error::unusable;
use held::Held;
use length::{advice, words};
use name::Name;
use open_bank::OpenBank;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The memory bank, as one worker uses it. All methods block; the caller chooses the thread.
#[derive(Debug, Clone)]
pub struct Bank {
    memory: PathBuf,
    writer: String,
    secrets: Secrets,
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
    /// Returns the bank of the skill directory whose memory is at `memory`. `writer` is unique to this worker.
    pub fn new(memory: &Path, writer: &str) -> Self {
        Self { memory: memory.to_owned(), writer: writer.to_owned(), secrets: Secrets::default() }
    }

    /// Returns the same bank, which redacts these secrets and refuses to write their marks.
    #[must_use]
    pub fn with_secrets(&self, secrets: impl Into<Secrets>) -> Self {
        Self { secrets: secrets.into(), ..self.clone() }
    }

    /// Returns whether the bank holds a note, or something in the place of one.
    pub fn holds_notes(&self) -> bool {
        match OpenBank::find(&self.memory) {
            Ok(cabinet) => cabinet.is_some_and(|cabinet| cabinet.holds_notes()),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Answers a call of `memory_read`: a note, and its hash.
    ///
    /// # Errors
    /// A message for the model.
    pub fn read(&self, arguments: &str) -> Result<String, Error> {
        let ReadArguments { file } = crate::parsed(arguments)?;
        let name = Name::parse(&file)?;
        let cabinet = OpenBank::find(&self.memory).map_err(|error| unusable(&error))?;
        let held = match &cabinet {
            Some(cabinet) => cabinet.held(&name)?,
            None => None,
        };
        let (Some(cabinet), Some(held)) = (&cabinet, held) else {
            return Err(format!("There is no note {name} yet: its hash, for memory_write, is {NONE}.").into());
        };
        Ok(rendered(&name, &held, cabinet))
    }

    /// Answers a call of `memory_write`: replaces a note, if it is still what the caller has read.
    ///
    /// Writing the current content again changes nothing, whatever `expect` says, so a call can be retried after a lost
    /// reply.
    ///
    /// # Errors
    /// If the note was not written, or may not have been.
    pub fn write(&self, arguments: &str, author: &Author) -> Result<String, WriteError> {
        let WriteArguments { file, content, expect } = crate::parsed(arguments)?;
        let name = Name::parse(&file)?;
        if content.len() > MAX_NOTE {
            return Err(Error::from(format!(
                "The content has {} bytes, more than the {MAX_NOTE} that a note may have; nothing was written. Keep what \
                 later Jobs need, and put parts of it into {DETAILS}/.",
                content.len()
            ))
            .into());
        }
        if text::has_nul(content.as_bytes()) {
            return Err(Error::from("The content holds a NUL byte: a note is text; nothing was written.").into());
        }
        let cabinet = OpenBank::make(&self.memory).map_err(|error| unusable(&error))?;
        let (content, expect) = (content.as_bytes(), expect.trim());
        let wish = write::NoteWrite { name: &name, content, expect, author, marks: &self.secrets.marks };
        cabinet.write(&wish, &self.writer)
    }
}

/// Formats a note for the model.
fn rendered(name: &Name, held: &Held, cabinet: &OpenBank) -> String {
    let text::Decoded { text, notes } = text::decoded(&held.bytes);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let author = cabinet.authors(std::slice::from_ref(name)).suffix(name, &held.digest);
    let advice = advice(name, &text);
    format!("{text}{gap}[{name}: {} bytes, hash {}{author}{notes}]{advice}", held.bytes.len(), held.hash())
}

#[cfg(test)]
mod tests;
