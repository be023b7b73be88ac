//! What answers the calls of core tools, one file a family. Which tools there are for a Job, and what the model is told
//! of them, is the engine's [`core_tools`](bloomery_engine::core_tools), by the same names.

mod error;
mod files;
mod http;
mod memory;

pub use bloomery_files::bank::DIR as BANK;
pub use error::Error;
pub use memory::Notes;

use crate::continued;
use crate::focus::FocusCache;
use crate::inputs::Inputs;
use bloomery_crds::run::{BoundResource, ContinuedJob};
use bloomery_crds::v1alpha1::{Context, ResourceDeclaration};
use bloomery_engine::Event;
use bloomery_engine::core_tools::FOCUS_READ;
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

/// Everything that core tools work with.
#[derive(Debug)]
pub struct CoreTools {
    focus: FocusCache,
    workspace: Arc<Workspace>,
    http: http::Http,
    redactor: Redactor,
    notes: Option<Notes>,
    continues: Option<(PathBuf, ContinuedJob)>,
}

impl CoreTools {
    /// Creates the core tools of a Job. The Skill's memory is in `memory`, `writer` is unique to this worker, the focus cache
    /// may take `focus_cache_bytes`, and the endpoints that the Job binds may be within `reach`.
    pub fn for_job(inputs: &Inputs, memory: &Path, writer: &str, focus_cache_bytes: u64, reach: AddressPolicy) -> Self {
        let resources = &inputs.part.resources;
        let spec = &inputs.revision.spec;
        Self::new(resources, FocusCache::new(memory, writer, focus_cache_bytes))
            .with_notes(Notes::new(memory, writer, &inputs.part, spec.bank()))
            .following(memory, inputs.part.continues.as_ref())
            .calling(&spec.resources, resources, reach, inputs.redactor.clone())
    }

    /// The core tools of a Job that binds `resources`, with the slag's focus cache.
    pub fn new(resources: &[BoundResource], focus: FocusCache) -> Self {
        Self {
            focus,
            workspace: Arc::new(files::workspace(resources)),
            http: http::Http::default(),
            redactor: Redactor::default(),
            notes: None,
            continues: None,
        }
    }

    /// The same, which calls the endpoints among `resources` as the Skill declares them: those within `reach`. What stands
    /// in place of the secrets that `redactor` knows is not written in their place.
    #[must_use]
    pub fn calling(
        self,
        declared: &[ResourceDeclaration],
        resources: &[BoundResource],
        reach: AddressPolicy,
        redactor: Redactor,
    ) -> Self {
        Self { http: http::Http::new(declared, resources, reach, redactor.clone()), redactor, ..self }
    }

    /// With the slag's memory bank.
    #[must_use]
    pub fn with_notes(self, notes: Notes) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// Of a Job that follows up another, whose record is in this memory.
    #[must_use]
    pub fn following(self, memory: &Path, continued: Option<&ContinuedJob>) -> Self {
        Self { continues: continued.map(|continued| (memory.to_owned(), continued.clone())), ..self }
    }

    /// Hides directories from the file tools, wherever the Job's resources contain them.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn hiding(self, dirs: &[&Path]) -> io::Result<Self> {
        let workspace = Arc::unwrap_or_clone(self.workspace).hiding(dirs)?;
        Ok(Self { workspace: Arc::new(workspace), ..self })
    }

    /// Returns whether the memory bank has notes that this Job may read.
    pub fn has_notes(&self) -> bool {
        self.notes.as_ref().is_some_and(Notes::are_there)
    }

    /// Returns the cache of large results.
    pub fn focus(&self) -> &FocusCache {
        &self.focus
    }

    /// Makes a call once; gives [`Event::ToolCompleted`], [`Event::ToolFailed`] where it did not happen, and
    /// [`Event::ToolIndeterminate`] where that is not known when `within` is over: of a call that was made before, whose
    /// answer was lost, it is not known either. `files` is the layer below the slag's memory.
    pub async fn call(&self, call: &ToolCall<'_>, within: Duration, files: &impl Files) -> Event {
        let answer = tokio::time::timeout(within, self.answer(call, within, files))
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

    /// Gathers what a Skill wants to know of the bound file systems before its conversation opens, and the notes of the
    /// memory bank, and what was said in the Job that this one follows up. What cannot be gathered `within` the time is
    /// told as a fault.
    pub async fn gather(&self, wanted: &Context, within: Duration) -> Vec<ContextPart> {
        let secrets = self.redactor.secrets();
        let mut parts = files::gather(&self.workspace, wanted, within, &secrets).await;
        if let Some(notes) = &self.notes {
            parts.extend(notes.gather(within, secrets).await);
        }
        if let Some((memory, continued)) = &self.continues {
            parts.push(continued::gathered(memory, continued, &self.redactor, within).await);
        }
        parts
    }

    async fn answer(&self, call: &ToolCall<'_>, within: Duration, files: &impl Files) -> Result<String, Error> {
        if let Some(tool) = files::tool(call.tool) {
            return files::answer(&self.workspace, tool, call.arguments, self.redactor.secrets()).await;
        }
        if http::is_http_tool(call.tool) {
            return self.http.answer(call, within).await;
        }
        if let (Some(tool), Some(notes)) = (memory::tool(call.tool), &self.notes) {
            return notes.answer(tool, call.id, call.arguments, self.redactor.secrets()).await;
        }
        match call.tool {
            FOCUS_READ => self.read_on(call.arguments, files).await,
            other => Err(Error::Failed(format!("This worker has no tool {other}; nothing was done."))),
        }
    }

    /// Reads on in a result that was put aside: where the file system may block, on a thread of its own.
    async fn read_on(&self, arguments: &str, files: &impl Files) -> Result<String, Error> {
        let Some(files) = files.elsewhere() else { return Ok(self.focus.read(files, arguments, &self.redactor)?) };
        let (focus, arguments, redactor) = (self.focus.clone(), arguments.to_owned(), self.redactor.clone());
        match tokio::task::spawn_blocking(move || focus.read(files.as_ref(), &arguments, &redactor)).await {
            Ok(answer) => Ok(answer?),
            Err(error) => Err(Error::Indeterminate(format!("{FOCUS_READ} ended without an answer: {error}."))),
        }
    }
}

#[cfg(test)]
mod tests;
