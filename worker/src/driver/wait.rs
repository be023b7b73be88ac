//! Waiting, for a bounded time, for what a person can mend.

use super::World;
use crate::backoff::Backoff;
use crate::sentence::sentence;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::ExternalWait;
use bloomery_engine::{Event, step};
use std::time::Duration;
use tokio::time::Instant;

/// How a wait ended.
pub(super) enum Waited<T> {
    /// With what was waited for.
    Over(T),
    /// The run is to stop.
    Stopped,
    /// Patience is over, which ends the conversation.
    GivenUp(Event),
}

/// Tries until it succeeds, patience is over or the run is to stop, and tells what is waited for. Gives how long
/// it was in vain, which is no work.
pub(super) async fn until<M, T, R, W>(mut attempt: impl FnMut() -> W, world: &World<'_, M, T>) -> (Waited<R>, Duration)
where
    W: Future<Output = Result<R, ExternalWait>>,
{
    let began = Instant::now();
    let mut said: Option<String> = None;
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
    let waited = loop {
        // What was before the try that succeeds was in vain, pauses included.
        let before = began.elapsed();
        let waiting = tokio::select! {
            _ = world.stop.wait() => break (Waited::Stopped, began.elapsed()),
            tried = attempt() => match tried {
                Ok(done) => break (Waited::Over(done), before),
                Err(waiting) => waiting,
            },
        };
        let in_vain = began.elapsed();
        if in_vain >= world.patience.outside {
            break (Waited::GivenUp(given_up(&waiting, in_vain)), in_vain);
        }
        let why = told(&waiting);
        if said.as_ref() != Some(&why) {
            tracing::warn!("{why} It is waited for.");
            said = Some(why);
        }
        world.audience.waiting(Some(waiting));
        tokio::select! {
            _ = world.stop.wait() => break (Waited::Stopped, began.elapsed()),
            () = tokio::time::sleep(backoff.pause()) => {}
        }
    };
    world.audience.waiting(None);
    waited
}

/// The end of a conversation whose tools will never be listed.
pub(super) fn dead(message: &str) -> Event {
    let what = sentence(message);
    step::unavailable(OutcomeCode::McpUnavailable, format!("{what} Mend it, or what names it, and make the Job anew."))
}

fn given_up(waiting: &ExternalWait, after: Duration) -> Event {
    let (code, remedy) = match waiting {
        ExternalWait::McpUnavailable { .. } => (OutcomeCode::McpUnavailable, "Mend the MCP server, or what names it"),
        ExternalWait::SecretMissing { .. } => (OutcomeCode::ModelUnavailable, "Put it there"),
        ExternalWait::ModelUnavailable { .. } => (OutcomeCode::ModelUnavailable, "Mend the Model"),
    };
    let (what, seconds) = (told(waiting), after.as_secs());
    step::unavailable(code, format!("{what} It was waited for {seconds} s. {remedy}, and make the Job anew."))
}

/// What is waited for. A client's message says itself who does not answer.
fn told(waiting: &ExternalWait) -> String {
    match waiting {
        ExternalWait::SecretMissing { name, key } => {
            format!("The key `{key}` of the Secret `{name}` is needed, and it is missing or empty.")
        }
        ExternalWait::McpUnavailable { message } | ExternalWait::ModelUnavailable { message } => sentence(message),
    }
}
