//! The errors of responses, independent of the protocol.

use std::time::Duration;

use axum::http::StatusCode;

use super::script::RetryAfter;

/// An error that imitates one of the provider.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    pub(super) message: String,
    pub(super) reason: Reason,
    pub(super) retry_after: Option<RetryAfter>,
}

/// The reason for an error, if the provider reports more than the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// No further reason.
    Plain,
    /// The key is wrong.
    Key,
    /// The model does not exist.
    Model,
    /// The prompt has more tokens than the model accepts.
    TooLong,
}

/// The HTTP status of Anthropic while it is overloaded. It is not a standard status.
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

    /// Returns the error that a script defines.
    pub(super) fn scripted(status: u16, retry_after: Option<RetryAfter>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let reason = if status == StatusCode::UNAUTHORIZED { Reason::Key } else { Reason::Plain };
        Self { reason, retry_after, ..Self::new(status, "As the script says.") }
    }

    /// Returns the value of the header `Retry-After`: a number of seconds, or a date.
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
