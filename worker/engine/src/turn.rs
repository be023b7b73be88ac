//! The history that a model reads: append-only, so that prefixes stay identical.

use crate::event::Answer;
use bloomery_crds::v1alpha1::ModelProvider;

/// One turn. A model client maps it to its provider's wire format by a fixed rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// What the user, or the engine in the user's place, says.
    User(String),
    /// What a model answered.
    Assistant(Said),
    /// The one result of one call.
    ToolResult {
        /// The provider's id of the call.
        id: String,
        /// What came of it.
        text: String,
    },
}

/// What a model answered, verbatim. Another Model gets it in its own form, made of the text and the calls in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The provider's own message, as JSON. A tree of it would take several times the memory, once for each answer.
    pub message: String,
    /// Whose form the message has.
    pub provider: ModelProvider,
    /// The name of the Model that said it; none in a log of an earlier version, where it was the one of the main loop.
    pub model: Option<String>,
}

impl Said {
    /// What stays of an answer in the history.
    pub fn of(answer: &Answer) -> Self {
        // Kept as long as the conversation lasts, so without the room that writing it took.
        let mut message = answer.message.to_string();
        message.shrink_to_fit();
        Self { message, provider: answer.provider, model: answer.model.clone() }
    }
}
