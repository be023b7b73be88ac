//! Errors, before a protocol gives them its shape.

use std::time::Duration;

use axum::http::StatusCode;

use super::script::RetryAfter;

/// An error that the client reads as it reads the provider's.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    pub(super) message: String,
    pub(super) reason: Reason,
    pub(super) retry_after: Option<RetryAfter>,
}

/// Why a request is refused, where a provider says more than the status does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Nothing more.
    Plain,
    /// The key is not the right one.
    Key,
    /// There is no such model.
    Model,
    /// The prompt has more tokens than the model takes.
    TooLong,
}

/// The status that Anthropic gives while it is overloaded; no other standard knows it.
pub(super) const OVERLOADED: u16 = 529;

impl ApiError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), reason: Reason::Plain, retry_after: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn wrong_key() -> Self {
        Self { reason: Reason::Key, ..Self::new(StatusCode::UNAUTHORIZED, "Incorrect API key provided.") }
    }

    pub(super) fn unknown_model(name: &str) -> Self {
        let error = Self::new(StatusCode::NOT_FOUND, format!("The model `{name}` does not exist."));
        Self { reason: Reason::Model, ..error }
    }

    pub(super) fn too_long() -> Self {
        let message = "prompt is too long: the maximum context length is 200000 tokens, and it has 210000 tokens";
        Self { reason: Reason::TooLong, ..Self::bad_request(message) }
    }

    /// The error that a script asks for.
    pub(super) fn scripted(status: u16, retry_after: Option<RetryAfter>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let reason = if status == StatusCode::UNAUTHORIZED { Reason::Key } else { Reason::Plain };
        Self { reason, retry_after, ..Self::new(status, "As the script says.") }
    }

    /// The value of `Retry-After`: seconds, or the date so far from now.
    pub(super) fn retry_after(&self) -> Option<String> {
        match self.retry_after? {
            RetryAfter::Seconds(seconds) => Some(seconds.to_string()),
            RetryAfter::Date(seconds) => {
                let at = jiff::Timestamp::now().checked_add(Duration::from_secs(seconds)).ok()?;
                jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).ok()
            }
        }
    }
}
