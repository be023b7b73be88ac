//! Retries until something outside is available, for a bounded time.

use super::environment::{Environment, Observer};
use crate::stop::StopReason;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::{ExternalWait, ParkReason};
use bloomery_crds::text::sentence;
use bloomery_engine::line::Entry;
use bloomery_engine::{Event, step};
use bloomery_http::Backoff;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tokio::time::Instant;

/// The remedy for an MCP server that cannot be used. A host replaces it if the server is a program.
pub const REPAIR_SERVER: &str = "Repair the MCP server, or correct its address";

/// The result of a step, such as waiting for people or for the end of a child.
pub(super) enum Awaited {
    /// The events of the step. They are not applied to the conversation yet.
    Recorded(Vec<Entry>),
    /// The wait does not end here, so the conversation parks.
    Unavailable(ParkReason),
    /// The run is to stop.
    Stopped(StopReason),
}

/// The result of [`retry`].
pub(super) enum WaitResult<T> {
    /// A try succeeded.
    Done(T),
    /// The run is to stop.
    Stopped,
    /// The time limit is over. The event ends the conversation.
    TimedOut(Box<Event>),
}

/// Retries `try_once` until it succeeds, the time limit is over or the run is to stop. Meanwhile, the observer shows what the run
/// waits for. Also returns the waiting time, which does not count as work.
pub(super) async fn retry<M, T, R, W>(
    mut try_once: impl FnMut() -> W,
    environment: &Environment<'_, M, T>,
    observer: &dyn Observer,
) -> (WaitResult<R>, Duration)
where
    W: Future<Output = Result<R, ExternalWait>>,
{
    let began = Instant::now();
    let mut logged: Option<String> = None;
    // Set once, so that repeated reports of the same wait are equal.
    let mut end: Option<Option<i64>> = None;
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
    let result = loop {
        // If this try succeeds, the time before it was waiting, including the delays.
        let before = began.elapsed();
        let waiting = tokio::select! {
            _ = environment.stop.wait() => break (WaitResult::Stopped, began.elapsed()),
            result = try_once() => match result {
                Ok(done) => break (WaitResult::Done(done), before),
                Err(waiting) => waiting,
            },
        };
        let waited = began.elapsed();
        let limit = environment.patience.limit_for(&waiting);
        if waited >= limit {
            break (WaitResult::TimedOut(Box::new(timed_out(&waiting, waited))), waited);
        }
        let waiting = with_end(waiting, *end.get_or_insert_with(|| unix_time_after(limit.saturating_sub(waited))));
        let reason = describe(&waiting);
        if logged.as_ref() != Some(&reason) {
            tracing::warn!("{reason} The worker waits for it.");
            logged = Some(reason);
        }
        observer.waiting(Some(waiting));
        tokio::select! {
            _ = environment.stop.wait() => break (WaitResult::Stopped, began.elapsed()),
            () = tokio::time::sleep(backoff.next_delay()) => {}
        }
    };
    observer.waiting(None);
    result
}

/// Adds the time until which the run waits for a missing key, for people.
fn with_end(waiting: ExternalWait, end: Option<i64>) -> ExternalWait {
    match waiting {
        ExternalWait::SecretMissing { name, key, until: _ } => ExternalWait::SecretMissing { name, key, until: end },
        other => other,
    }
}

/// Returns the Unix time after a duration, in seconds; none if no clock can show it.
fn unix_time_after(duration: Duration) -> Option<i64> {
    Timestamp::now().checked_add(SignedDuration::try_from(duration).ok()?).ok().map(Timestamp::as_second)
}

/// Returns the event that ends a conversation whose tools can never be listed.
pub(super) fn tools_unavailable(message: &str) -> Event {
    let message = sentence(message);
    step::unavailable(OutcomeCode::McpUnavailable, format!("{message} {REPAIR_SERVER}, then start the Job again."))
}

fn timed_out(waiting: &ExternalWait, after: Duration) -> Event {
    let (code, remedy) = match waiting {
        ExternalWait::McpUnavailable { .. } => (OutcomeCode::McpUnavailable, REPAIR_SERVER),
        ExternalWait::SecretMissing { .. } => (OutcomeCode::ModelUnavailable, "Add the key to the Secret"),
        ExternalWait::ModelUnavailable { .. } => (OutcomeCode::ModelUnavailable, "Correct the Model"),
    };
    let (reason, seconds) = (describe(waiting), after.as_secs());
    step::unavailable(
        code,
        format!("{reason} The worker waited {seconds} s for it. {remedy}, then start the Job again."),
    )
}

/// Returns a sentence that says what the run waits for.
fn describe(waiting: &ExternalWait) -> String {
    match waiting {
        ExternalWait::SecretMissing { name, key, .. } => {
            format!("The key `{key}` of the Secret `{name}` is missing or empty.")
        }
        ExternalWait::McpUnavailable { message } | ExternalWait::ModelUnavailable { message } => sentence(message),
    }
}
