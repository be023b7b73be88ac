//! Reading a streamed answer, event by event. What is held is the answer so far and one event, never the stream.

use super::MAX_ANSWER;
use super::sse::Events;
use super::trouble::{self, Trouble};
use super::wire::Fold;
use crate::http::cause;
use crate::progress::{Onlooker, Progress};
use bloomery_engine::event::Answer;
use bloomery_redact::Redactor;
use futures::StreamExt;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use std::time::Duration;
use tokio::time::timeout;

/// How long the end of the response is waited for once the answer has ended, so that its connection serves the next
/// request too.
const END: Duration = Duration::from_millis(100);

/// Whether a response is a stream of events.
pub(super) fn is_one(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// Reads a stream to the event that ends it, under the eyes of an onlooker. One that ends before that is no answer,
/// whatever came of it.
pub(super) async fn read(
    response: Response,
    mut fold: Box<dyn Fold>,
    silence: Duration,
    (redactor, onlooker): (&Redactor, &Onlooker),
) -> Result<Answer, Trouble> {
    let mut events = Events::new(MAX_ANSWER);
    let mut chunks = response.bytes_stream();
    loop {
        let chunk = timeout(silence, chunks.next()).await.map_err(|_| trouble::silent(silence))?;
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|error| trouble::broken_off(&cause(&error)))?;
        let ended = events.push(&chunk).map_err(|_| trouble::too_large(MAX_ANSWER))?;
        for data in ended {
            if fold.event(&data).map_err(|no_answer| no_answer.trouble(redactor))? {
                let _ = timeout(END, chunks.next()).await;
                return fold.answer().map_err(|no_answer| no_answer.trouble(redactor));
            }
            if fold.held() > MAX_ANSWER {
                return Err(trouble::too_large(MAX_ANSWER));
            }
            onlooker.sees(|| Progress::Answering(fold.held()));
        }
    }
    // Some servers leave out the empty line after their last event.
    let rest = events.rest();
    if !rest.is_empty() && fold.event(&rest).is_ok_and(|is_last| is_last) {
        return fold.answer().map_err(|no_answer| no_answer.trouble(redactor));
    }
    Err(trouble::broken_off("the stream ended before the answer did"))
}
