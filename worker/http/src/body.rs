//! Reads response bodies within bounds of size and time.

use crate::client::root_cause;
use futures::StreamExt;
use reqwest::Response;
use std::time::Duration;
use tokio::time::timeout;

/// The reason that a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The body is larger than allowed.
    #[error("the answer is larger than {max} bytes")]
    TooLarge {
        /// The largest allowed size, in bytes.
        max: usize,
    },
    /// No part of the body arrived in time.
    #[error("the answer stopped: no part of it arrived for {} s", .silence.as_secs_f64().ceil())]
    Stalled {
        /// The longest allowed time between two parts.
        silence: Duration,
    },
    /// The connection ended before the body did.
    #[error("the answer was cut off: {message}")]
    Interrupted {
        /// The error of the transport.
        message: String,
    },
}

/// Reads a body of at most `max` bytes. Stops reading at that size, so a larger body is never held in memory.
pub async fn read(response: Response, max: usize) -> Result<Vec<u8>, Error> {
    read_unless_stalled(response, max, Duration::MAX).await
}

/// A body, or the beginning of one that is too large.
#[derive(Debug)]
pub enum Body {
    /// The whole body.
    Whole(Vec<u8>),
    /// The beginning of a body.
    Beginning(Vec<u8>),
}

/// Reads a body of at most `max` bytes, or else its beginning: at most `max` bytes, and only `shown` bytes of a body that says in
/// advance that it is larger.
pub async fn read_or_begin(response: Response, max: usize, shown: usize) -> Result<Body, Error> {
    let is_larger = response.content_length().is_some_and(|length| length > max as u64);
    let room = if is_larger { shown } else { max };
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| Error::Interrupted { message: root_cause(&error) })?;
        let left = room.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..left.min(chunk.len())).unwrap_or_default());
        if chunk.len() > left {
            body.truncate(shown);
            body.shrink_to_fit();
            return Ok(Body::Beginning(body));
        }
    }
    Ok(Body::Whole(body))
}

/// Reads a body of at most `max` bytes, and fails once no part of it has arrived for `silence`.
pub async fn read_unless_stalled(response: Response, max: usize, silence: Duration) -> Result<Vec<u8>, Error> {
    if response.content_length().is_some_and(|length| length > max as u64) {
        return Err(Error::TooLarge { max });
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = timeout(silence, chunks.next()).await.map_err(|_| Error::Stalled { silence })? {
        let chunk = chunk.map_err(|error| Error::Interrupted { message: root_cause(&error) })?;
        if chunk.len() > max - body.len() {
            return Err(Error::TooLarge { max });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
