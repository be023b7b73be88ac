//! Performs the calls of core tools. Each family of tools has a module. The engine's [`core_tools`](bloomery_engine::core_tools) selects
//! the tools of a Job and describes them to the model.

mod error;
mod files;
mod http;
mod memory;

pub use bloomery_files::bank::DIR as BANK;
pub use error::Error;
pub use memory::MemoryBank;

use crate::continued;
use crate::focus::FocusCache;
use crate::inputs::Inputs;
use bloomery_crds::run::{BoundResource, ContinuedJob};
use bloomery_crds::v1alpha1::{Context, ResourceDeclaration, SkillSpec};
use bloomery_engine::Event;
use bloomery_engine::core_tools::{APPLY_FEATURE, FOCUS_READ, SKILL_DOC, skill_texts};
use bloomery_engine::event::ContextPart;
use bloomery_engine::step::ToolCall;
use bloomery_files::Workspace;
use bloomery_http::address::AddressPolicy;
use bloomery_journal::files::Files;
use bloomery_redact::Redactor;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The core tools of one Job, with the resources and stores that they use.
#[derive(Debug)]
pub struct CoreTools {
    focus: FocusCache,
    workspace: Arc<Workspace>,
    http: http::Http,
    redactor: Redactor,
    bank: Option<MemoryBank>,
    /// The Skill, whose texts some tools read.
    skill: Option<SkillSpec>,
    /// The Job that this Job continues, and the memory with its record.
    continued: Option<(PathBuf, ContinuedJob)>,
}

impl CoreTools {
    /// Creates the core tools of a Job.
    ///
    /// `memory` is the directory of the Skill's memory, and `writer` is unique to this worker. The focus cache is bounded by
    /// `focus_cache_bytes`. Endpoints are called only at `addresses`.
    pub fn for_job(
        inputs: &Inputs,
        memory: &Path,
        writer: &str,
        focus_cache_bytes: u64,
        addresses: AddressPolicy,
    ) -> Self {
        let resources = &inputs.part.resources;
        let spec = &inputs.revision.spec;
        Self::new(resources, FocusCache::new(memory, writer, focus_cache_bytes))
            .with_memory_bank(MemoryBank::new(memory, writer, &inputs.part, spec))
            .with_continued(memory, inputs.part.continues.as_ref())
            .with_skill(spec.clone())
            .with_endpoints(&spec.resources, resources, addresses, inputs.redactor.clone())
    }

    /// Creates the core tools of a Job that binds `resources`, with the focus cache of its skill directory.
    pub fn new(resources: &[BoundResource], focus: FocusCache) -> Self {
        Self {
            focus,
            workspace: Arc::new(files::workspace(resources)),
            http: http::Http::default(),
            redactor: Redactor::default(),
            bank: None,
            skill: None,
            continued: None,
        }
    }

    /// Adds the endpoints among `resources`, as the Skill declares them. They are called only at `addresses`. Calls whose arguments
    /// contain a redaction mark of `redactor` are refused.
    #[must_use]
    pub fn with_endpoints(
        self,
        declared: &[ResourceDeclaration],
        resources: &[BoundResource],
        addresses: AddressPolicy,
        redactor: Redactor,
    ) -> Self {
        Self { http: http::Http::new(declared, resources, addresses, redactor.clone()), redactor, ..self }
    }

    /// Adds the memory bank of the skill directory.
    #[must_use]
    pub fn with_memory_bank(self, bank: MemoryBank) -> Self {
        Self { bank: Some(bank), ..self }
    }

    /// Adds the Skill, whose texts some tools read.
    #[must_use]
    pub fn with_skill(self, skill: SkillSpec) -> Self {
        Self { skill: Some(skill), ..self }
    }

    /// Adds the Job that this Job continues, if any. Its record is in `memory`.
    #[must_use]
    pub fn with_continued(self, memory: &Path, continued: Option<&ContinuedJob>) -> Self {
        Self { continued: continued.map(|continued| (memory.to_owned(), continued.clone())), ..self }
    }

    /// Hides directories from the file tools, wherever the Job's resources contain them.
    ///
    /// # Errors
    /// If a directory cannot be opened.
    pub fn hiding(self, dirs: &[&Path]) -> io::Result<Self> {
        let workspace = Arc::unwrap_or_clone(self.workspace).with_hidden_dirs(dirs)?;
        Ok(Self { workspace: Arc::new(workspace), ..self })
    }

    /// Writes the notes of the Skill that the memory bank does not have yet.
    pub fn write_first_notes(&self) {
        if let Some(bank) = &self.bank {
            bank.write_first_notes();
        }
    }

    /// Returns whether the memory bank has notes that this Job may read.
    pub fn has_notes(&self) -> bool {
        self.bank.as_ref().is_some_and(MemoryBank::has_notes)
    }

    /// Returns the cache of large results.
    pub fn focus(&self) -> &FocusCache {
        &self.focus
    }

    /// Performs a call once and returns its outcome:
    ///
    /// - [`Event::ToolCompleted`]: the call succeeded.
    /// - [`Event::ToolFailed`]: the call had no effect.
    /// - [`Event::ToolIndeterminate`]: the call may have had an effect. It did not end `within` the time limit, or an earlier worker
    ///   sent it and lost its answer.
    ///
    /// `files` has the file operations for the skill directory.
    pub async fn call(&self, call: &ToolCall<'_>, within: Duration, files: &impl Files) -> Event {
        let answer = tokio::time::timeout(within, self.perform(call, within, files))
            .await
            .unwrap_or_else(|_| Err(Error::Indeterminate(format!("{} did not end within {within:?}.", call.tool))))
            .map_err(|error| error.after_lost_answer(call.sent_before));
        let call = call.id.clone();
        match answer {
            Ok(text) => Event::ToolCompleted { call, text },
            Err(Error::Failed(text)) => Event::ToolFailed { call, text },
            Err(Error::Indeterminate(text)) => Event::ToolIndeterminate { call, text },
        }
    }

    /// Gathers the context of a conversation: the overviews of file systems that the Skill wants, the notes of the memory bank,
    /// and the summary of the continued Job. A part that is not available `within` the time limit contains a fault instead.
    pub async fn gather(&self, wanted: &Context, within: Duration) -> Vec<ContextPart> {
        let secrets = self.redactor.secrets();
        let mut parts = files::gather(&self.workspace, wanted, within, &secrets).await;
        if let Some(bank) = &self.bank {
            parts.extend(bank.gather(within, secrets).await);
        }
        if let Some((memory, continued)) = &self.continued {
            parts.push(continued::context_part(memory, continued, &self.redactor, within).await);
        }
        parts
    }

    async fn perform(&self, call: &ToolCall<'_>, within: Duration, files: &impl Files) -> Result<String, Error> {
        if let Some(tool) = files::tool(call.tool) {
            return files::perform(&self.workspace, tool, call.arguments, self.redactor.secrets()).await;
        }
        if http::is_http_tool(call.tool) {
            return self.http.perform(call, within).await;
        }
        if let (Some(tool), Some(bank)) = (memory::tool(call.tool), &self.bank) {
            return bank.perform(tool, call.id, call.arguments, self.redactor.secrets()).await;
        }
        if let Some(answer) =
            self.skill.as_ref().and_then(|skill| skill_texts::answer(skill, call.tool, call.arguments))
        {
            return answer.map_err(Error::Failed);
        }
        match call.tool {
            FOCUS_READ => self.read_part(call.arguments, files).await,
            other => Err(Error::Failed(format!("This worker has no tool `{other}`, so nothing was done."))),
        }
    }

    /// Reads a part of a large result, on a separate thread if the file system may block.
    async fn read_part(&self, arguments: &str, files: &impl Files) -> Result<String, Error> {
        let Some(files) = files.for_other_thread() else {
            return self.focus.read(files, arguments, &self.redactor).map_err(|error| Error::Failed(error.to_string()));
        };
        let (focus, arguments, redactor) = (self.focus.clone(), arguments.to_owned(), self.redactor.clone());
        match tokio::task::spawn_blocking(move || focus.read(files.as_ref(), &arguments, &redactor)).await {
            Ok(answer) => answer.map_err(|error| Error::Failed(error.to_string())),
            Err(error) => Err(Error::Indeterminate(format!("{FOCUS_READ} ended without an answer: {error}."))),
        }
    }
}

/// Returns whether a core tool uses only the file systems of its pod or the Skill, and sends nothing.
pub fn is_local(tool: &str) -> bool {
    matches!(tool, FOCUS_READ | SKILL_DOC | APPLY_FEATURE)
        || files::tool(tool).is_some()
        || memory::tool(tool).is_some()
}

#[cfg(test)]
mod tests;
