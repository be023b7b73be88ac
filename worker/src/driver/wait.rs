//! Retries until something outside is available, for a bounded time.

use super::environment::{Environment, Observer};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::text::sentence;
use bloomery_engine::{Event, step};
use bloomery_http::Backoff;
use std::time::Duration;
use tokio::time::Instant;

/// The result of a wait.
pub(super) enum WaitResult<T> {
    /// An attempt succeeded.
    Done(T),
    /// The run is to stop.
    Stopped,
    /// The time limit is over. The event ends the conversation.
    TimedOut(Event),
}

/// Retries `attempt` until it succeeds, the time limit is over or the run is to stop. The observer learns what the run waits
/// for. Returns the time before the last attempt, too, which does not count as work.
pub(super) async fn retry<M, T, R, W>(
    mut attempt: impl FnMut() -> W,
    environment: &Environment<'_, M, T>,
    observer: &dyn Observer,
) -> (WaitResult<R>, Duration)
where
    W: Future<Output = Result<R, ExternalWait>>,
{
    let began = Instant::now();
    let mut logged: Option<String> = None;
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
    let result = loop {
        // The time before the attempt that succeeds was waiting, delays included.
        let before = began.elapsed();
        let waiting = tokio::select! {
            _ = environment.stop.wait() => break (WaitResult::Stopped, began.elapsed()),
            result = attempt() => match result {
                Ok(done) => break (WaitResult::Done(done), before),
                Err(waiting) => waiting,
            },
        };
        let waited = began.elapsed();
        if waited >= environment.patience.outside {
            break (WaitResult::TimedOut(timed_out(&waiting, waited)), waited);
        }
        let reason = describe(&waiting);
        if logged.as_ref() != Some(&reason) {
            tracing::warn!("{reason} It is waited for.");
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

/// Returns the event that ends a conversation whose tools can never be listed.
pub(super) fn tools_unavailable(message: &str) -> Event {
    let what = sentence(message);
    step::unavailable(OutcomeCode::McpUnavailable, format!("{what} Mend it, or what names it, and make the Job anew."))
}

fn timed_out(waiting: &ExternalWait, after: Duration) -> Event {
    let (code, remedy) = match waiting {
        ExternalWait::McpUnavailable { .. } => (OutcomeCode::McpUnavailable, "Mend the MCP server, or what names it"),
        ExternalWait::SecretMissing { .. } => (OutcomeCode::ModelUnavailable, "Put it there"),
        ExternalWait::ModelUnavailable { .. } => (OutcomeCode::ModelUnavailable, "Mend the Model"),
    };
    let (what, seconds) = (describe(waiting), after.as_secs());
    step::unavailable(code, format!("{what} It was waited for {seconds} s. {remedy}, and make the Job anew."))
}

/// Returns a sentence that says what the run waits for.
fn describe(waiting: &ExternalWait) -> String {
    match waiting {
        ExternalWait::SecretMissing { name, key } => {
            format!("The key `{key}` of the Secret `{name}` is needed, and it is missing or empty.")
        }
        ExternalWait::McpUnavailable { message } | ExternalWait::ModelUnavailable { message } => sentence(message),
    }
}
