//! What answers the calls of core tools, one file a family. Which tools there are for a Job, and what the model is told
//! of them, is the engine's [`core_tools`](bloomery_engine::gate::core_tools), by the same names.

mod files;

use crate::focus::FocusCache;
use crate::log::files::Files;
use bloomery_crds::run::BoundResource;
use bloomery_crds::v1alpha1::Context;
use bloomery_engine::Event;
use bloomery_engine::event::ContextPart;
use bloomery_engine::gate::core_tools::FOCUS_READ;
use bloomery_engine::step::ToolCall;
use bloomery_files::Workspace;
use std::sync::Arc;
use std::time::Duration;

/// Everything that core tools work with.
#[derive(Debug)]
pub struct CoreTools {
    focus: FocusCache,
    workspace: Arc<Workspace>,
}

/// Why a call of a core tool has no answer: text for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It did not happen, or happened as far as the text says.
    Failed(String),
    /// Nobody knows whether it happened.
    Indeterminate(String),
}

impl From<String> for Fault {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl CoreTools {
    /// The core tools of a Job that binds `resources`, with the slag's focus cache.
    pub fn new(resources: &[BoundResource], focus: FocusCache) -> Self {
        Self { focus, workspace: Arc::new(files::workspace(resources)) }
    }

    /// Where large results are kept.
    pub fn focus(&self) -> &FocusCache {
        &self.focus
    }

    /// Makes a call once; gives [`Event::ToolCompleted`], [`Event::ToolFailed`] where it did not happen, and
    /// [`Event::ToolIndeterminate`] where that is not known when `within` is over. `files` is the layer below the
    /// slag's memory.
    pub async fn call(&self, call: &ToolCall<'_>, within: Duration, files: &impl Files) -> Event {
        let answer = tokio::time::timeout(within, self.answer(call, files))
            .await
            .unwrap_or_else(|_| Err(Fault::Indeterminate(format!("{} did not end within {within:?}.", call.tool))));
        let call = call.id.clone();
        match answer {
            Ok(text) => Event::ToolCompleted { call, text },
            Err(Fault::Failed(text)) => Event::ToolFailed { call, text },
            Err(Fault::Indeterminate(text)) => Event::ToolIndeterminate { call, text },
        }
    }

    /// Gathers what a Skill wants to know of the bound file systems before its conversation opens. What cannot be
    /// gathered `within` the time is told as a fault.
    pub async fn gather(&self, wanted: &Context, within: Duration) -> Vec<ContextPart> {
        files::gather(&self.workspace, wanted, within).await
    }

    async fn answer(&self, call: &ToolCall<'_>, files: &impl Files) -> Result<String, Fault> {
        if let Some(tool) = files::tool(call.tool) {
            return files::answer(&self.workspace, tool, call.arguments).await;
        }
        match call.tool {
            FOCUS_READ => Ok(self.focus.read(files, call.arguments)?),
            other => Err(Fault::Failed(format!("This worker has no tool {other}; nothing was done."))),
        }
    }
}

#[cfg(test)]
mod tests;
