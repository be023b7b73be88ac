//! Reads a streamed answer event by event. Only the answer so far and one event are in memory.

use crate::error_response::from_protocol_error;
use crate::limits::MAX_ANSWER_BYTES;
use crate::protocol::AnswerStream;
use crate::request_error::Error;
use crate::sse::Events;
use bloomery_engine::event::Answer;
use bloomery_http::progress::{Progress, ProgressObserver};
use bloomery_http::root_cause;
use bloomery_redact::Redactor;
use futures::StreamExt;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use std::time::Duration;
use tokio::time::timeout;

/// The longest wait for the end of the response after the last event. A connection can only be reused after the end.
const END_OF_RESPONSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Returns whether a response is a stream of events.
pub(crate) fn is_event_stream(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// Reads a stream up to its last event, and reports progress to `observer`. Fails if the stream ends before its last event, or if no
/// part of it arrives for `silence`.
pub(crate) async fn read(
    response: Response,
    mut answer: Box<dyn AnswerStream>,
    silence: Duration,
    (redactor, observer): (&Redactor, &ProgressObserver),
) -> Result<Answer, Error> {
    let mut events = Events::new(MAX_ANSWER_BYTES);
    let mut chunks = response.bytes_stream();
    loop {
        let chunk = timeout(silence, chunks.next()).await.map_err(|_| Error::stalled(silence))?;
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|error| Error::interrupted(&root_cause(&error)))?;
        let complete = events.push(&chunk).map_err(|_| Error::too_large(MAX_ANSWER_BYTES))?;
        for data in complete {
            if answer.push(&data).map_err(|error| from_protocol_error(error, redactor))? {
                let _ = timeout(END_OF_RESPONSE_TIMEOUT, chunks.next()).await;
                return answer.finish().map_err(|error| from_protocol_error(error, redactor));
            }
            if answer.size() > MAX_ANSWER_BYTES {
                return Err(Error::too_large(MAX_ANSWER_BYTES));
            }
            observer.notify(|| Progress::ModelAnswering(answer.size()));
        }
    }
    // Some servers omit the empty line after the last event.
    let rest = events.rest();
    if !rest.is_empty() && answer.push(&rest).is_ok_and(|is_last| is_last) {
        return answer.finish().map_err(|error| from_protocol_error(error, redactor));
    }
    Err(Error::interrupted("the stream ended before the answer did"))
}
