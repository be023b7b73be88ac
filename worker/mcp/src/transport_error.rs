//! Errors of the HTTP transport, and what each proves about the delivery of its request.

use crate::delivery::Delivery;
use bloomery_http::root_cause;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// The reason that a request got no answer. Each text is a clause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No byte of the request was sent.
    #[error("{0}")]
    NotSent(String),
    /// The server answered that it has not applied the request, because it does not accept the credentials (HTTP 401).
    #[error("{0}")]
    Unauthorized(String),
    /// The request was sent, or may have been.
    #[error("{0}")]
    Broken(String),
}

impl From<&reqwest::Error> for Error {
    /// An error of the connection set-up proves that nothing was sent. Any other error may have occurred after the request was sent.
    fn from(error: &reqwest::Error) -> Self {
        if error.is_connect() {
            Self::NotSent(format!("it cannot be reached: {}", root_cause(error)))
        } else {
            Self::Broken(format!("the connection broke: {}", root_cause(error)))
        }
    }
}

/// Returns the error of a request that was sent, or may have been.
pub(crate) fn broken(reason: String) -> StreamableHttpError<Error> {
    StreamableHttpError::Client(Error::Broken(reason))
}

/// Returns what an error proves about the delivery of its request.
pub(crate) fn delivery(error: &StreamableHttpError<Error>) -> Delivery {
    match error {
        StreamableHttpError::Client(Error::NotSent(reason)) => Delivery::NotSent(reason.clone()),
        StreamableHttpError::Client(Error::Unauthorized(reason)) => Delivery::Unauthorized(reason.clone()),
        StreamableHttpError::Client(Error::Broken(reason)) => Delivery::Broken(reason.clone()),
        StreamableHttpError::SessionExpired => Delivery::SessionUnknown,
        other => Delivery::Broken(other.to_string()),
    }
}
