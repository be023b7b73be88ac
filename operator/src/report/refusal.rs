//! Refusals of reports, as HTTP responses to the worker.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// The reason why a report is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The token is missing, or does not belong to a worker. A renewed token may be accepted.
    #[error("{0}")]
    Unauthorized(String),
    /// The token is valid, but its pod may not report for this Job.
    #[error("{0}")]
    Forbidden(String),
    /// The Job does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The attempt is not recorded yet: report again in a moment.
    #[error("{0}")]
    TooEarly(String),
    /// Another attempt continues the Job, so this worker must stop.
    #[error("{0}")]
    Superseded(String),
    /// The report contradicts an earlier one about the same event of the log. Sending it again does not help.
    #[error("{0}")]
    Conflict(String),
    /// The body of the request did not arrive in time.
    #[error("{0}")]
    TooSlow(String),
    /// The report is too large.
    #[error("{0}")]
    TooLarge(String),
    /// The report is invalid. Sending it again does not help.
    #[error("{0}")]
    Invalid(String),
    /// The API server cannot be reached or does not answer, or is not asked about more tokens of an address: report again.
    #[error("{0}")]
    Unavailable(String),
}

impl Refusal {
    /// The HTTP status, on which the worker acts.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::TooEarly(_) => StatusCode::CONFLICT,
            Self::Superseded(_) => StatusCode::GONE,
            // 409 asks the worker to repeat the report.
            Self::Conflict(_) => StatusCode::PRECONDITION_FAILED,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The label value for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unauthorized(_) => "unauthorized",
            Self::Forbidden(_) => "forbidden",
            Self::NotFound(_) => "not_found",
            Self::TooEarly(_) => "too_early",
            Self::Superseded(_) => "superseded",
            Self::Conflict(_) => "conflict",
            Self::TooSlow(_) => "too_slow",
            Self::TooLarge(_) => "too_large",
            Self::Invalid(_) => "invalid",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status(), Json(serde_json::json!({ "error": self.to_string() }))).into_response()
    }
}
