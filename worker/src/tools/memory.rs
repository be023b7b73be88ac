//! The tools of the memory bank, and its notes for the context of a conversation. Each operation runs on a separate thread, because
//! file systems block.

use super::error::Error;
use bloomery_crds::memory_scope;
use bloomery_crds::run::JobPart;
use bloomery_crds::v1alpha1::{BankUse, SkillSpec};
use bloomery_engine::core_tools::{MEMORY_READ, MEMORY_WRITE};
use bloomery_engine::event::{CallId, ContextKind, ContextPart};
use bloomery_files::Secrets;
use bloomery_files::bank::{Author, Bank, Note, WriteError};
use bloomery_journal::clock;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The call in the record of a note that no call has written.
const NO_CALL: &str = "0-0";

/// The memory bank of the skill directory, with the rights of one Job.
#[derive(Debug)]
pub struct MemoryBank {
    bank: Arc<Bank>,
    usage: BankUse,
    job: String,
    run_key: String,
    /// The first content of notes, by name.
    first_notes: BTreeMap<String, String>,
}

/// A tool of the memory bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Read,
    Write,
}

/// Returns the tool of the memory bank with a name.
pub(super) fn tool(name: &str) -> Option<Tool> {
    match name {
        MEMORY_READ => Some(Tool::Read),
        MEMORY_WRITE => Some(Tool::Write),
        _ => None,
    }
}

impl MemoryBank {
    /// Creates the bank in `memory` for the Job of `part`, with the rights that the Skill gives it. `writer` is unique to this worker.
    pub fn new(memory: &Path, writer: &str, part: &JobPart, skill: &SkillSpec) -> Self {
        let job = format!("{}/{}", part.job.namespace, part.job.name);
        let scope = memory_scope::core_notes(skill, part.memory_scope.as_deref());
        let bank =
            Bank::new(memory, writer).with_scope(scope.iter().map(|note| note_file(&note.to_string())).collect());
        let first_notes = skill.memory.as_ref().map(|memory| memory.notes.clone()).unwrap_or_default();
        Self { bank: Arc::new(bank), usage: skill.bank(), job, run_key: part.run_key.clone(), first_notes }
    }

    /// Writes the notes of the Skill that do not exist yet. A failure does not stop the Job: its prompt then lacks the note.
    pub fn write_first_notes(&self) {
        if self.usage == BankUse::Off {
            return;
        }
        for (name, content) in &self.first_notes {
            if let Err(error) = self.bank.write_first(&note_file(name), content, &self.author(NO_CALL.to_owned())) {
                tracing::warn!("the first content of the note {name} is not in the memory bank: {error}");
            }
        }
    }

    /// Returns whether the bank has notes that the Job may read.
    pub fn has_notes(&self) -> bool {
        self.usage != BankUse::Off && self.bank.has_notes()
    }

    /// Performs a call. Checks again whether the Skill permits it, because the catalogue may be older than the Skill.
    pub(super) async fn perform(
        &self,
        tool: Tool,
        id: &CallId,
        arguments: &str,
        secrets: Secrets,
    ) -> Result<String, Error> {
        if self.usage == BankUse::Off || tool == Tool::Write && self.usage != BankUse::Write {
            return Err(Error::Failed("The Skill does not permit this (memory.bank), so nothing was done.".into()));
        }
        let (bank, arguments) = (self.bank.with_secrets(secrets), arguments.to_owned());
        let author = self.author(id.to_string());
        let result = tokio::task::spawn_blocking(move || match tool {
            Tool::Read => bank.read(&arguments).map_err(|error| Error::Failed(error.into())),
            Tool::Write => bank.write(&arguments, &author).map_err(Error::from),
        });
        match result.await {
            Ok(answer) => answer,
            Err(error) => Err(Error::Indeterminate(format!("The memory bank failed: {error}."))),
        }
    }

    fn author(&self, call: String) -> Author {
        Author { job: self.job.clone(), run_key: self.run_key.clone(), call, time: clock::wall_time() }
    }

    /// Returns the notes for the context of a conversation.
    pub(super) async fn gather(&self, within: Duration, secrets: Secrets) -> Vec<ContextPart> {
        if self.usage == BankUse::Off {
            return Vec::new();
        }
        let bank = self.bank.with_secrets(secrets);
        let result = tokio::time::timeout(within, tokio::task::spawn_blocking(move || bank.consult())).await;
        let notes = match result {
            Ok(Ok(notes)) => notes,
            Ok(Err(error)) => Bank::failed_consult(&format!("It could not be read: {error}.")),
            Err(_) => Bank::failed_consult(&format!("It was not read within {within:?}.")),
        };
        notes.into_iter().map(part).collect()
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Unwritten(error) => Self::Failed(error.into()),
            WriteError::Unknown(error) => Self::Indeterminate(error.into()),
        }
    }
}

/// Returns the file of a note, from its name in the Skill.
fn note_file(name: &str) -> String {
    format!("{name}.md")
}

fn part(note: Note) -> ContextPart {
    let (text, fault) = match note.text {
        Ok(text) => (text, None),
        Err(error) => (String::new(), Some(error.into())),
    };
    ContextPart { kind: ContextKind::MemoryBank, source: note.file, text, fault }
}
