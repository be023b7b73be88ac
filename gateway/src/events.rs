//! Follows Jobs by server-sent events.

use crate::path::Segments;
use crate::problem::Problem;
use crate::session::Session;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bloomery_embed::{Cursor, JobEvent, JobStatus, Runtime, Tenant};
use futures::{Stream, StreamExt};
use std::sync::Arc;
use std::time::Duration;

/// The header with the id of the last event that a client has.
const LAST_EVENT_ID: &str = "last-event-id";

/// The interval of heartbeats, which are comments. Proxies close silent connections after a minute or more.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Sends the events of a Job after the last event that the client has. A client that has all events of an ended Job gets no content: this
/// is the only response after which an `EventSource` does not connect again.
pub(crate) async fn follow<R: Runtime>(
    session: Session<R>,
    Segments(job): Segments<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = cursor(&headers)?;
    if after != Cursor::START && has_all(&session.tenant, &job, after).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    stream(&session.tenant, &job, after).await
}

/// Returns whether a Job has ended, and has no events after a cursor.
async fn has_all<T: Tenant>(tenant: &T, job: &str, after: Cursor) -> Result<bool, Problem> {
    let JobStatus { status, .. } = tenant.status(job).await?;
    Ok(status.outcome.is_some() && !after.lacks(status.log.events))
}

/// Returns the response with the events of a Job after a cursor. It ends with the Job. An error ends it with the event `problem`, which has
/// no id: a client that connects again misses nothing.
///
/// # Errors
/// If the Job cannot be followed.
pub(crate) async fn stream<T: Tenant>(tenant: &T, job: &str, after: Cursor) -> Result<Response, Problem> {
    Ok(respond(tenant.events(job, after).await?, HEARTBEAT))
}

/// Returns the response with these events, with a heartbeat after each interval without an event.
fn respond(
    events: impl Stream<Item = Result<Arc<JobEvent>, bloomery_embed::Error>> + Send + 'static,
    heartbeat: Duration,
) -> Response {
    let events = events.map(|event| match event {
        Ok(event) => Ok(Event::default().id(event.seq.to_string()).event(&event.kind).data(event.json())),
        Err(error) => Event::default().event("problem").json_data(Problem::from(error)),
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(heartbeat)).into_response()
}

/// Returns the position of a client. A client without one begins with the first event.
///
/// # Errors
/// If the header is no position.
fn cursor(headers: &HeaderMap) -> Result<Cursor, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(Cursor::START) };
    let invalid = |fault: String| Problem::new(StatusCode::BAD_REQUEST, format!("The header Last-Event-ID: {fault}."));
    let text = value.to_str().map_err(|_| invalid("it has other characters than visible ASCII".to_owned()))?;
    text.parse().map_err(|fault: bloomery_embed::InvalidCursor| invalid(fault.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;

    #[tokio::test]
    async fn a_silent_stream_has_heartbeats() {
        let silent = stream::pending::<Result<Arc<JobEvent>, bloomery_embed::Error>>();
        let body = respond(silent, Duration::from_millis(1)).into_body().into_data_stream();
        let chunks: Vec<_> = body.take(2).map(Result::unwrap).collect().await;
        // A line that begins with a colon is a comment.
        assert_eq!(chunks, [":\n\n"; 2]);
    }
}
