//! What differs from one provider's protocol to the other's, behind one face.

use super::extra::Refused;
use super::key::Key;
use super::no_answer::NoAnswer;
use super::{anthropic, openai};
use bloomery_crds::run::ModelEndpoint;
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::event::{Answer, RequestedCall};
use bloomery_engine::history::ModelMessage;
use bloomery_engine::step::ModelRequest;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;
use std::collections::BTreeSet;

/// The most tool calls that one answer may ask for.
pub(super) const MAX_CALLS: usize = 128;

/// The calls of an answer, where each of them can have its result.
pub(super) fn answerable(calls: Vec<RequestedCall>) -> Result<Vec<RequestedCall>, NoAnswer> {
    if calls.len() > MAX_CALLS {
        return Err(NoAnswer::unreadable("it asks for too many tools at once", calls.len().to_string()));
    }
    let mut ids = BTreeSet::new();
    match calls.iter().find(|call| !ids.insert(call.id.as_str())) {
        // Two results for one id have no place in the history.
        Some(twice) => Err(NoAnswer::unreadable("two of its tool calls have the same id", twice.id.as_str())),
        None => Ok(calls),
    }
}

/// What a request is made of, beside its turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    /// Who is asked.
    pub(super) endpoint: &'a ModelEndpoint,
    /// For whom: the Job's UID.
    pub(super) user: &'a str,
    /// What.
    pub(super) request: &'a ModelRequest<'a>,
    /// What must be left out.
    pub(super) refused: &'a Refused,
}

/// A turn, as one Model is told of it.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// What the user says.
    User(&'a str),
    /// What this Model said: its own message, verbatim, as JSON.
    Own(&'a str),
    /// What another Model said.
    Told {
        /// In words.
        text: String,
        /// The tools that it asked for.
        calls: Vec<RequestedCall>,
    },
    /// The result of a call.
    Result {
        /// The id of the call.
        id: &'a str,
        /// What came of it.
        text: &'a str,
    },
}

/// Writes the turns of a request in one provider's form: what was written stays as it is.
pub(super) trait Writer: std::fmt::Debug + Send {
    /// Adds a turn.
    fn add(&mut self, bytes: &mut Vec<u8>, piece: &Piece<'_>) -> serde_json::Result<()>;

    /// What a request ends with, after the turns so far.
    fn end(&self) -> &'static [u8];
}

/// Folds a streamed answer.
pub(super) trait Fold: std::fmt::Debug + Send {
    /// Takes the data of the next event; whether it was the last one.
    fn event(&mut self, data: &str) -> Result<bool, NoAnswer>;

    /// How many bytes of an answer are held.
    fn held(&self) -> usize;

    /// The answer, once the last event was there.
    fn answer(self: Box<Self>) -> Result<Answer, NoAnswer>;
}

/// Begins a request: all that stands before its turns, and who writes those.
pub(super) fn begin(asking: Asking<'_>) -> serde_json::Result<(Vec<u8>, Box<dyn Writer>)> {
    match asking.endpoint.provider {
        ModelProvider::Openai => openai::request::begin(asking),
        ModelProvider::Anthropic => anthropic::request::begin(asking),
    }
}

/// Reads the body of a successful response.
pub(super) fn read(provider: ModelProvider, body: &[u8]) -> Result<Answer, NoAnswer> {
    match provider {
        ModelProvider::Openai => openai::answer::read(body),
        ModelProvider::Anthropic => anthropic::answer::read(body),
    }
}

/// Begins to read a streamed response.
pub(super) fn fold(provider: ModelProvider) -> Box<dyn Fold> {
    match provider {
        ModelProvider::Openai => Box::<openai::stream::Folded>::default(),
        ModelProvider::Anthropic => Box::<anthropic::stream::Folded>::default(),
    }
}

/// The words and the calls of a message that a provider's Model said, which was read once and so can be again.
pub(super) fn told(said: &ModelMessage) -> (String, Vec<RequestedCall>) {
    // It was written by us.
    let message: Value = serde_json::from_str(&said.message).unwrap_or_default();
    match said.provider {
        ModelProvider::Openai => openai::answer::told(&message),
        ModelProvider::Anthropic => anthropic::answer::told(&message),
    }
}

/// Where requests go, below the base URL.
pub(super) fn path(provider: ModelProvider) -> &'static str {
    match provider {
        ModelProvider::Openai => "chat/completions",
        ModelProvider::Anthropic => "messages",
    }
}

/// The headers that a provider wants: the key, where there is one, and the version of its protocol.
pub(super) fn headers(provider: ModelProvider, key: &Key) -> Vec<(HeaderName, HeaderValue)> {
    match provider {
        ModelProvider::Openai => {
            key.header("Bearer ").map(|key| (reqwest::header::AUTHORIZATION, key)).into_iter().collect()
        }
        ModelProvider::Anthropic => {
            let key = key.header("").map(|key| (HeaderName::from_static("x-api-key"), key));
            let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static(anthropic::VERSION));
            key.into_iter().chain([version]).collect()
        }
    }
}
