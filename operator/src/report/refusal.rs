//! Why a report is not taken, as the worker is told.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Why a report is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The token is missing, or not a worker's. A renewed one may do.
    #[error("{0}")]
    Unauthorized(String),
    /// The token is good, and its pod may not report for this Job.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such Job.
    #[error("{0}")]
    NotFound(String),
    /// The attempt is not recorded yet: report again in a moment.
    #[error("{0}")]
    TooEarly(String),
    /// Another attempt has taken over. This one is over.
    #[error("{0}")]
    Superseded(String),
    /// The report is larger than any of ours.
    #[error("{0}")]
    TooLarge(String),
    /// The report is not what it should be. Sending it again is of no use.
    #[error("{0}")]
    Invalid(String),
    /// The API server does not answer as it should: report again.
    #[error("{0}")]
    Unavailable(String),
}

impl Refusal {
    /// The HTTP status, which is what a worker goes by.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::TooEarly(_) => StatusCode::CONFLICT,
            Self::Superseded(_) => StatusCode::GONE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The word for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unauthorized(_) => "unauthorized",
            Self::Forbidden(_) => "forbidden",
            Self::NotFound(_) => "not_found",
            Self::TooEarly(_) => "too_early",
            Self::Superseded(_) => "superseded",
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
