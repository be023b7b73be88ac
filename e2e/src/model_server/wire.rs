//! The protocols of the providers: how each reads a request, and writes an answer or an error.

mod anthropic;
mod openai;

use axum::http::HeaderMap;
use serde_json::Value;

use super::answer::Answer;
use super::cache::Part;
use super::check::Broken;
use super::error::ApiError;
use super::event::Event;
use super::request::Request;

/// A provider's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wire {
    /// Chat completions.
    Openai,
    /// Messages.
    Anthropic,
}

impl Wire {
    /// Which protocol a request for something that both have is of: only one sends a version.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        if headers.contains_key(anthropic::VERSION) { Self::Anthropic } else { Self::Openai }
    }

    /// Returns the key that a client sent.
    pub(super) fn key(self, headers: &HeaderMap) -> Option<&str> {
        match self {
            Self::Openai => bearer(headers),
            Self::Anthropic => anthropic::key(headers).or_else(|| bearer(headers)),
        }
    }

    /// Reads a request; what it holds is checked by [`Wire::check`].
    ///
    /// # Errors
    /// It is no request at all; the sentence says why.
    pub(super) fn read(self, headers: &HeaderMap, body: &[u8]) -> Result<Request, String> {
        match self {
            Self::Openai => openai::read(body),
            Self::Anthropic => anthropic::read(headers, body),
        }
    }

    /// Finds what the provider would refuse.
    pub(super) fn check(self, request: &Request) -> Vec<Broken> {
        match self {
            Self::Openai => openai::check(request),
            Self::Anthropic => anthropic::check(request),
        }
    }

    /// Says what the provider says of a field that it does not know.
    pub(super) fn unknown_field(self, path: &str) -> String {
        match self {
            Self::Openai => openai::unknown_field(path),
            Self::Anthropic => anthropic::unknown_field(path),
        }
    }

    /// Writes an answer in one piece.
    pub(super) fn whole(self, request: &Request, answer: &Answer) -> Value {
        match self {
            Self::Openai => openai::whole(answer),
            Self::Anthropic => anthropic::whole(request, answer),
        }
    }

    /// Writes an answer as the events of a stream, the one that marks its end last.
    pub(super) fn events(self, request: &Request, answer: &Answer) -> Vec<Event> {
        match self {
            Self::Openai => openai::events(request, answer),
            Self::Anthropic => anthropic::events(request, answer),
        }
    }

    /// Returns what of an answer the next request has to hold as it was.
    pub(super) fn thoughts(self, request: &Request, answer: &Answer) -> Vec<Value> {
        match self {
            Self::Openai => Vec::new(),
            Self::Anthropic => anthropic::thoughts(request, answer),
        }
    }

    /// Returns the parts of a prompt that a cache is told to keep.
    pub(super) fn parts(self, request: &Request) -> Vec<Part> {
        match self {
            // It keeps what it likes.
            Self::Openai => Vec::new(),
            Self::Anthropic => anthropic::parts(request),
        }
    }

    /// Writes an error.
    pub(super) fn error(self, error: &ApiError) -> Value {
        match self {
            Self::Openai => openai::error(error),
            Self::Anthropic => anthropic::error(error),
        }
    }

    /// Writes an error that comes after a stream has begun.
    pub(super) fn error_event(self, error: &ApiError) -> Event {
        match self {
            Self::Openai => Event::unnamed(self.error(error)),
            Self::Anthropic => Event::named("error", self.error(error)),
        }
    }

    /// Returns the header in which a provider says which request it answers.
    pub(super) const fn request_id(self) -> &'static str {
        match self {
            Self::Openai => "x-request-id",
            Self::Anthropic => "request-id",
        }
    }

    /// Lists models.
    pub(super) fn models<'a>(self, names: impl Iterator<Item = &'a String>) -> Value {
        match self {
            Self::Openai => openai::models(names),
            Self::Anthropic => anthropic::models(names),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(axum::http::header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Whether a name is one that both providers take for a tool: OpenAI's rule, the narrower of the two.
fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
