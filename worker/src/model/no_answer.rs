//! What came instead of an answer, with a status that promised one.

use super::MAX_QUOTE;
use super::refusal::{self, said};
use super::trouble::Trouble;
use bloomery_redact::Redactor;
use serde_json::Value;

/// Why there is no answer in what a server sent as one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It cannot be read.
    Unreadable {
        /// What is wrong with it.
        why: String,
        /// The part that is wrong.
        quote: String,
    },
    /// It is an error of the provider.
    Error(Value),
    /// The provider's filter has stopped the model.
    Filtered {
        /// What the provider says of it.
        why: String,
    },
}

impl NoAnswer {
    /// Something that cannot be read.
    pub(super) fn unreadable(why: impl Into<String>, quote: impl Into<String>) -> Self {
        Self::Unreadable { why: why.into(), quote: quote.into() }
    }

    /// What to do about it. A server may quote the key, and what a parser says quotes the server.
    pub(super) fn trouble(self, redactor: &Redactor) -> Trouble {
        match self {
            Self::Unreadable { why, quote } => {
                let (why, quote) = (redactor.quote(&why, MAX_QUOTE), redactor.quote(&quote, MAX_QUOTE));
                let quote = if quote.is_empty() { "an empty body" } else { &quote };
                Trouble::Unreadable { message: format!("gave an answer that cannot be read: {why}: {quote}") }
            }
            Self::Error(error) => {
                let says = said(&error.to_string());
                refusal::inside(&error, redactor)
                    .unwrap_or_else(|| Self::unreadable("it is an error", says).trouble(redactor))
            }
            Self::Filtered { why } => Trouble::Refused {
                message: format!(
                    "gave no answer: the provider's filter stopped it ({})",
                    redactor.quote(&why, MAX_QUOTE)
                ),
            },
        }
    }
}
