//! The memory bank of a skill directory: notes that a Skill's Jobs leave for one another (seed 003, "Memory Bank"; `docs/explanation/design.md`,
//! section 5). Six core notes, and `details/` for what is too long for them.
//!
//! Several workers may write at once, on one machine or on a network file system, and any of them may freeze or die at
//! any point. So there is no lock: like the log, each write claims a number by an exclusive hard link (`ledger`), and
//! the claim says what it replaces. What is read is data of others: links are not followed, nothing large is held.

mod consult;
mod held;
mod ledger;
mod name;
mod open_bank;
mod write;

pub use consult::{INDEX, Note};
pub use name::{CORE, MAX_NAME};

use crate::Error;
use crate::secrets::Secrets;
use crate::text;
use held::Held;
use name::Name;
use open_bank::OpenBank;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The directory of the bank in the memory of a skill directory.
pub const DIR: &str = "memory-bank";

/// The directory for notes with details that do not fit into the core notes.
pub const DETAILS: &str = "details";

/// How many words a core note should have at most (seed 003).
pub const CORE_WORDS: usize = 300;

/// The largest note that is written, in bytes.
pub const MAX_NOTE: usize = 16 * 1024;

/// The most notes in [`DETAILS`].
pub const MAX_DETAILS: usize = 64;

/// The limit on the size of all notes together, in bytes, checked at each write.
pub const MAX_BANK: u64 = 512 * 1024;

/// The placeholder hash of a missing note.
pub const NONE: &str = "none";

/// The memory bank, as one worker uses it. All methods block; the caller chooses the thread.
#[derive(Debug, Clone)]
pub struct Bank {
    memory: PathBuf,
    writer: String,
    secrets: Secrets,
}

/// The author of a note, recorded in the claim of the write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// The Job, as `namespace/name`.
    pub job: String,
    /// The run key, which names the Job's log.
    pub run_key: String,
    /// The call ID. It begins with the number of the line in that log that requested the call.
    pub call: String,
    /// The time of the write, in RFC 3339.
    pub time: String,
}

/// The error of a write to the memory bank.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Nothing was written.
    #[error(transparent)]
    Unwritten(#[from] Error),
    /// The outcome is unknown: the note may have been written.
    #[error(transparent)]
    Unknown(Error),
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

/// Returns the request to shorten a core note that exceeds [`CORE_WORDS`].
fn advice(name: &Name, text: &str) -> String {
    let words = words(text);
    if !name.is_core() || words <= CORE_WORDS {
        return String::new();
    }
    format!(
        "\n[{name} has {words} words. Every Job begins by reading it: keep it to about {CORE_WORDS}, move the rest to \
         notes in {DETAILS}/, and name them here.]"
    )
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn unusable(error: &std::io::Error) -> Error {
    format!("The memory bank cannot be used: {error}; nothing was done.").into()
}

#[cfg(test)]
mod tests;
