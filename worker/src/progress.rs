//! What goes on while a model or a tool is at work, for whoever looks on. Nothing is decided by it, and nothing of it is
//! kept: what is worth that is an event.

use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::event::ToolProgress;
use std::fmt;
use std::sync::Arc;

/// Something that goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A model is asked, for a stage of the conversation.
    Asked(Stage),
    /// So many bytes of its answer are there.
    Answering(usize),
    /// A tool of the Skill's server is called.
    Called(String),
    /// What the server tells of a call that is under way. It may hold control characters.
    ToolProgress(ToolProgress),
    /// The call of a tool is over.
    Over(String),
}

/// Who looks on; nobody, unless somebody says so.
#[derive(Clone, Default)]
pub struct Onlooker(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl Onlooker {
    /// Somebody who is told at once, and must not wait.
    pub fn new(tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// Tells them, where there is anybody.
    pub fn sees(&self, progress: impl FnOnce() -> Progress) {
        if let Some(tell) = &self.0 {
            tell(progress());
        }
    }
}

impl fmt::Debug for Onlooker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Onlooker").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
pub(crate) mod seen {
    use super::{Onlooker, Progress};
    use std::sync::{Arc, Mutex};

    /// An onlooker that remembers what it saw.
    pub(crate) fn by_all() -> (Onlooker, Arc<Mutex<Vec<Progress>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        (Onlooker::new(move |progress| kept.lock().unwrap().push(progress)), seen)
    }
}
