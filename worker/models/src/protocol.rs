//! The parts that the protocols of all providers share: requests that consist of turns, and answers with tool calls.

use crate::optional_fields::UnsupportedFields;
use bloomery_crds::run::ModelEndpoint;
use bloomery_engine::event::{Answer, RequestedCall};
use bloomery_engine::step::ModelRequest;
use serde_json::Value;
use std::collections::BTreeSet;

/// The largest number of tool calls in one answer.
pub(crate) const MAX_CALLS: usize = 128;

/// The reason that a successful response holds no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// The response cannot be read.
    Unreadable {
        /// The defect, as a clause.
        reason: String,
        /// The defective part.
        quote: String,
    },
    /// The response holds an error object of the provider.
    Provider(Value),
    /// The provider's filter stopped the model.
    Filtered {
        /// The reason, as the provider states it.
        reason: String,
    },
}

impl Error {
    /// Returns the error for a response that cannot be read.
    pub(crate) fn unreadable(reason: impl Into<String>, quote: impl Into<String>) -> Self {
        Self::Unreadable { reason: reason.into(), quote: quote.into() }
    }
}

/// Everything that the body of a request is built from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    /// The Model that is asked.
    pub(crate) endpoint: &'a ModelEndpoint,
    /// The UID of the Job, sent as the user.
    pub(crate) user: &'a str,
    /// The engine's request.
    pub(crate) request: &'a ModelRequest<'a>,
    /// The fields that the server does not support.
    pub(crate) unsupported: &'a UnsupportedFields,
}

/// The content of one turn, as it is sent to one Model.
#[derive(Debug)]
pub(crate) enum TurnContent<'a> {
    /// A text of the user.
    User(&'a str),
    /// An earlier answer of this Model: the verbatim JSON of its message.
    OwnAnswer(&'a str),
    /// An earlier answer of another Model.
    OtherAnswer {
        /// The text of the answer.
        text: String,
        /// The tools that it called.
        calls: Vec<RequestedCall>,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        id: &'a str,
        /// The text of the result.
        text: &'a str,
    },
}

/// Writes the turns of a request in the form of one provider. A later turn never changes the bytes of earlier turns.
pub(crate) trait TurnWriter: std::fmt::Debug + Send {
    /// Appends a turn.
    fn append(&mut self, bytes: &mut Vec<u8>, content: &TurnContent<'_>) -> serde_json::Result<()>;

    /// Returns the bytes that complete the request after its last turn.
    fn ending(&self) -> &'static [u8];
}

/// Assembles an answer from the events of a stream.
pub(crate) trait AnswerStream: std::fmt::Debug + Send {
    /// Adds the data of the next event. Returns whether it was the last one.
    fn push(&mut self, data: &str) -> Result<bool, Error>;

    /// Returns the size of the answer so far, in bytes.
    fn size(&self) -> usize;

    /// Returns the answer after the last event.
    fn finish(self: Box<Self>) -> Result<Answer, Error>;
}

/// Checks that each call of an answer can get a result: there are at most [`MAX_CALLS`], and their ids differ.
pub(crate) fn check_calls(calls: Vec<RequestedCall>) -> Result<Vec<RequestedCall>, Error> {
    if calls.len() > MAX_CALLS {
        return Err(Error::unreadable("it requests too many tool calls", calls.len().to_string()));
    }
    let mut ids = BTreeSet::new();
    match calls.iter().find(|call| !ids.insert(call.id.as_str())) {
        // Later requests cannot hold two results for one id.
        Some(duplicate) => Err(Error::unreadable("two of its tool calls have the same id", duplicate.id.as_str())),
        None => Ok(calls),
    }
}
