//! Live progress of model and tool calls, for an observer such as a terminal. Progress is not stored, and no decision depends
//! on it.

use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::event::ToolProgress;
use std::fmt;
use std::sync::Arc;

/// A step of a call that is in progress.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A request is sent to a model, for a stage of the conversation.
    ModelRequested(Stage),
    /// This many bytes of the model's answer have arrived.
    ModelAnswering(usize),
    /// A tool of the Skill's server is called.
    ToolCalled(String),
    /// The server sent progress or a log line of a running call. The text may hold control characters.
    ToolProgressed(ToolProgress),
    /// The call of a tool has ended.
    ToolEnded(String),
}

/// An observer of progress. The default observer ignores all steps.
#[derive(Clone, Default)]
pub struct ProgressObserver(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl ProgressObserver {
    /// Creates an observer that calls `notify` with each step. `notify` must not block.
    pub fn new(notify: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(notify)))
    }

    /// Passes a step to the observer. The default observer does not call `progress`.
    pub fn notify(&self, progress: impl FnOnce() -> Progress) {
        if let Some(notify) = &self.0 {
            notify(progress());
        }
    }
}

impl fmt::Debug for ProgressObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressObserver").field(&self.0.is_some()).finish()
    }
}
