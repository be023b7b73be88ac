//! The outcome of a tool call.

use bloomery_engine::tool::ListedTool;
use serde_json::Value;

/// The outcome of a call. Its text is for the model; that of an indeterminate call becomes part of a sentence for people.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The server has answered.
    Completed {
        /// The text of the result.
        text: String,
        /// The structured content, which is part of the text, too.
        structured: Option<Value>,
        /// The binary content. The text names each item by its digest.
        media: Vec<Vec<u8>>,
    },
    /// The server has answered that the call failed, or no byte of the call was sent.
    Failed {
        /// The reason.
        text: String,
        /// The binary content of the answer.
        media: Vec<Vec<u8>>,
    },
    /// The call was sent, and may or may not have taken effect.
    Indeterminate {
        /// What is known.
        text: String,
    },
}

impl CallOutcome {
    /// A failure without binary content.
    pub fn failed(text: String) -> Self {
        Self::Failed { text, media: Vec::new() }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// The outcome.
    pub outcome: CallOutcome,
    /// The tools, if they were listed again before the call.
    pub listed: Option<Vec<ListedTool>>,
}

/// Describes a call whose answer was lost and that could not be repeated, as a clause.
pub fn not_repeatable(reason: &str) -> String {
    format!("its answer was lost; it could not be repeated: {reason}")
}
