//! The history that a model reads: append-only, so that prefixes stay identical.

use serde_json::Value;

/// One turn. A model client maps it to its provider's wire format by a fixed rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// What the user, or the engine in the user's place, says.
    User(String),
    /// What the model answered: the provider's own message, verbatim.
    Assistant(Value),
    /// The one result of one call.
    ToolResult {
        /// The provider's id of the call.
        id: String,
        /// What came of it.
        text: String,
    },
}
