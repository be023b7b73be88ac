//! The protocols of the providers: reading and checking requests, writing answers and errors.

mod anthropic;
mod openai;

use axum::http::HeaderMap;
use serde_json::Value;

use super::answer::Answer;
use super::cache::Part;
use super::error::ApiError;
use super::event::Event;
use super::request::{Protocol, Request};
use super::violation::BrokenRule;

/// Returns the protocol of a request to a path that both protocols have. Only Anthropic's clients send a version.
pub(super) fn protocol_of(headers: &HeaderMap) -> Protocol {
    if headers.contains_key(anthropic::VERSION) { Protocol::Anthropic } else { Protocol::Openai }
}

/// Returns the key that a client sent.
pub(super) fn key(protocol: Protocol, headers: &HeaderMap) -> Option<&str> {
    match protocol {
        Protocol::Openai => bearer(headers),
        Protocol::Anthropic => anthropic::key(headers).or_else(|| bearer(headers)),
    }
}

/// Reads a request. [`check`] checks its content.
///
/// # Errors
/// The body is not JSON, or lacks the fields that every request has.
pub(super) fn read(protocol: Protocol, headers: &HeaderMap, body: &[u8]) -> Result<Request, serde_json::Error> {
    match protocol {
        Protocol::Openai => openai::read(body),
        Protocol::Anthropic => anthropic::read(headers, body),
    }
}

/// Returns the violations for which the provider would refuse a request.
pub(super) fn check(request: &Request) -> Vec<BrokenRule> {
    match request.protocol {
        Protocol::Openai => openai::check(request),
        Protocol::Anthropic => anthropic::check(request),
    }
}

/// Returns the provider's message about an unknown field.
pub(super) fn unknown_field(protocol: Protocol, path: &str) -> String {
    match protocol {
        Protocol::Openai => openai::unknown_field(path),
        Protocol::Anthropic => anthropic::unknown_field(path),
    }
}

/// Writes an answer in one piece.
pub(super) fn whole(request: &Request, answer: &Answer) -> Value {
    match request.protocol {
        Protocol::Openai => openai::whole(answer),
        Protocol::Anthropic => anthropic::whole(request, answer),
    }
}

/// Writes an answer as the events of a stream. The last event marks the end of the stream.
pub(super) fn events(request: &Request, answer: &Answer) -> Vec<Event> {
    match request.protocol {
        Protocol::Openai => openai::events(request, answer),
        Protocol::Anthropic => anthropic::events(request, answer),
    }
}

/// Returns the parts of an answer that the next request must return unchanged.
pub(super) fn thoughts(request: &Request, answer: &Answer) -> Vec<Value> {
    match request.protocol {
        Protocol::Openai => Vec::new(),
        Protocol::Anthropic => anthropic::thoughts(request, answer),
    }
}

/// Returns the parts of a prompt that a client can mark for the cache.
pub(super) fn parts(request: &Request) -> Vec<Part> {
    match request.protocol {
        // The protocol has no marks.
        Protocol::Openai => Vec::new(),
        Protocol::Anthropic => anthropic::parts(request),
    }
}

/// Writes an error.
pub(super) fn error(protocol: Protocol, error: &ApiError) -> Value {
    match protocol {
        Protocol::Openai => openai::error(error),
        Protocol::Anthropic => anthropic::error(error),
    }
}

/// Writes an error within a stream.
pub(super) fn error_event(protocol: Protocol, error: &ApiError) -> Event {
    match protocol {
        Protocol::Openai => Event::unnamed(openai::error(error)),
        Protocol::Anthropic => Event::named("error", anthropic::error(error)),
    }
}

/// Returns the name of the response header with the id of the request.
pub(super) const fn request_id_header(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Openai => "x-request-id",
        Protocol::Anthropic => "request-id",
    }
}

/// Writes the list of models.
pub(super) fn models<'a>(protocol: Protocol, names: impl Iterator<Item = &'a String>) -> Value {
    match protocol {
        Protocol::Openai => openai::models(names),
        Protocol::Anthropic => anthropic::models(names),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(axum::http::header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}
