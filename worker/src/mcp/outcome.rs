//! What came of what a server was asked.

use bloomery_engine::tool::ListedTool;
use serde_json::Value;

/// Why the tools could not be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The server does not answer, or not as a server of MCP would. It may be asked again.
    #[error("the MCP server at {url} cannot be asked for its tools: {message}")]
    Unavailable {
        /// Where.
        url: String,
        /// Why not.
        message: String,
    },
    /// The server is a program that cannot be started, or that ends before it speaks. Asked again, it would come to the same.
    #[error("the MCP server {url} cannot be asked for its tools: {message}")]
    Dead {
        /// The program.
        url: String,
        /// Why not.
        message: String,
    },
    /// The server is elsewhere, or wants credentials where there are none. Asked again, it would say the same.
    #[error("the MCP server at {url} cannot be asked for its tools: {message}")]
    Refused {
        /// Where.
        url: String,
        /// Why not.
        message: String,
    },
    /// The list itself cannot be used. Only a change of the server mends it.
    #[error("the MCP server at {url} lists tools that cannot be used: {message}")]
    Unusable {
        /// Where.
        url: String,
        /// Why not.
        message: String,
    },
}

/// What came of a call. The text is for the model; that of a call without an answer goes into a sentence for people.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The server has answered.
    Completed {
        /// Its answer.
        text: String,
        /// Its structured content, which the text holds too.
        structured: Option<Value>,
        /// What of it is no text. The text names the digest of each.
        media: Vec<Vec<u8>>,
    },
    /// The server has answered that the call failed, or no byte of it left us.
    Failed {
        /// Why.
        text: String,
        /// What of the answer is no text.
        media: Vec<Vec<u8>>,
    },
    /// The call was sent, and nobody knows whether it took effect.
    Indeterminate {
        /// What is known.
        text: String,
    },
}

impl CallOutcome {
    /// A failure in words.
    pub fn failed(text: String) -> Self {
        Self::Failed { text, media: Vec::new() }
    }
}

/// A call that is over, and what was seen on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// What came of it.
    pub outcome: CallOutcome,
    /// The tools, where they were listed for it.
    pub listed: Option<Vec<ListedTool>>,
}
