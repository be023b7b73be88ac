//! The outcome of a tool call.

use bloomery_engine::tool::ListedTool;
use serde_json::Value;

/// The outcome of a call. The text of a completed or failed call is for the model. The text of an indeterminate call is a clause that
/// becomes part of a sentence for people.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The server answered.
    Completed {
        /// The text of the result.
        text: String,
        /// The structured content. The text includes it, too.
        structured: Option<Value>,
        /// The binary content. The text refers to each item by its digest.
        media: Vec<Vec<u8>>,
    },
    /// The server answered, and the answer was too large to be read.
    Unread {
        /// A note for the model, which says that the call has happened.
        text: String,
    },
    /// The server answered that the call failed, or no byte of the call was sent.
    Failed {
        /// The reason.
        text: String,
        /// The binary content of the answer.
        media: Vec<Vec<u8>>,
    },
    /// The call was sent, and may or may not have taken effect.
    Indeterminate {
        /// The reason that the outcome is unknown.
        text: String,
    },
}

impl CallOutcome {
    /// Creates a failure without binary content.
    pub fn failed(text: String) -> Self {
        Self::Failed { text, media: Vec::new() }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// The outcome.
    pub outcome: CallOutcome,
    /// The tools of the server, if they were listed before the call.
    pub listed: Option<Vec<ListedTool>>,
}

/// Describes a call whose answer was lost and whose repetition failed for `reason`, as a clause.
pub fn describe_lost_call(reason: &str) -> String {
    format!("its answer was lost, and the call could not be repeated: {reason}")
}
