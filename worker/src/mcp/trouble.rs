//! Why a request brought nothing, and what that proves.

use super::wire::Fate;
use crate::http::cause;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Why a request brought nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// No byte of it has left us.
    #[error("{0}")]
    Unsent(String),
    /// It was sent, or may have been.
    #[error("{0}")]
    Broken(String),
}

/// A connection that could not be made has carried nothing; any other error may have come after the request.
pub(super) fn unanswered(error: &reqwest::Error) -> Error {
    if error.is_connect() {
        Error::Unsent(format!("it cannot be reached: {}", cause(error)))
    } else {
        Error::Broken(format!("the connection broke: {}", cause(error)))
    }
}

pub(super) fn broken(why: String) -> StreamableHttpError<Error> {
    StreamableHttpError::Client(Error::Broken(why))
}

pub(super) fn fate(error: &StreamableHttpError<Error>) -> Fate {
    match error {
        StreamableHttpError::Client(Error::Unsent(why)) => Fate::Unsent(why.clone()),
        StreamableHttpError::Client(Error::Broken(why)) => Fate::Broken(why.clone()),
        StreamableHttpError::SessionExpired => Fate::Broken("it has ended the session (HTTP 404)".to_owned()),
        other => Fate::Broken(other.to_string()),
    }
}
