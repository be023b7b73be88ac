//! Sends the input of people to a Job, and waits until it is durable.

use super::inbox::Letter;
use super::shared::Shared;
use super::statement::{self, Delivery};
use super::thread::Begin;
use crate::error::{Error, ErrorKind};
use crate::input::Input;
use crate::requests::OpenRequests;
use bloomery_crds::outcome::Phase;
use bloomery_engine::people::Statement;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The time in which a Job must record input. A Job records input between two steps, and a step may be a slow answer of a model.
const RECORD_TIMEOUT: Duration = Duration::from_mins(1);

/// Sends the input of `by` to a Job. Returns once it is durable.
///
/// # Errors
/// If the input changes nothing, or is not durable in time.
pub(super) async fn send(shared: &Arc<Shared>, key: &str, by: String, input: Input) -> Result<(), Error> {
    let delivery = shared.with_job(key, move |job| {
        let conversation = job.state()?.conversation;
        if conversation.outcome().is_some() {
            return Err(has_ended(job.key()));
        }
        statement::delivery(input, &by, &OpenRequests::new(&conversation))
    });
    match delivery.await? {
        Delivery::Statement(statement) => record(shared, key, statement).await,
        Delivery::Cancel => cancel(shared, key).await,
    }
}

/// Passes a statement to a Job, and waits until its event is durable. If no thread drives the Job, one begins.
async fn record(shared: &Arc<Shared>, key: &str, statement: Statement) -> Result<(), Error> {
    let (letter, recorded) = Letter::new(statement);
    if let Some(letter) = shared.running.deliver(key, letter) {
        shared.resume(None, Begin::Resume(key.to_owned(), letter)).await?;
    }
    match timeout(RECORD_TIMEOUT, recorded).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(match phase_of_end(shared, key).await? {
            Some(_) => has_ended(key),
            None => Error::new(
                ErrorKind::Unavailable,
                format!("the Job {key} has stopped before it recorded the input: send the input again"),
            ),
        }),
        Err(_) => Err(not_yet(key)),
    }
}

/// Cancels a Job, and waits until its thread has ended. If no thread drives the Job, one begins, and records the cancellation.
async fn cancel(shared: &Arc<Shared>, key: &str) -> Result<(), Error> {
    let mut inbox = shared.running.cancel(key);
    if inbox.is_none() {
        shared.resume(None, Begin::Cancel(key.to_owned())).await?;
        inbox = shared.running.cancel(key);
    }
    if let Some(inbox) = inbox
        && timeout(RECORD_TIMEOUT, inbox.closed()).await.is_err()
    {
        return Err(not_yet(key));
    }
    match phase_of_end(shared, key).await? {
        Some(Phase::Cancelled) => Ok(()),
        Some(_) => Err(has_ended(key)),
        None => Err(Error::failed(format!(
            "the Job {key} has stopped before it recorded the cancellation: see its log, and cancel it again"
        ))),
    }
}

/// Returns the phase of a Job that has ended.
async fn phase_of_end(shared: &Arc<Shared>, key: &str) -> Result<Option<Phase>, Error> {
    let phase = shared.with_job(key, |job| {
        let projection = job.state()?.projection;
        Ok(projection.outcome.is_some().then_some(projection.phase))
    });
    phase.await
}

fn has_ended(key: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("the Job {key} has ended, and accepts no input"))
}

fn not_yet(key: &str) -> Error {
    let seconds = RECORD_TIMEOUT.as_secs();
    let message = format!(
        "the Job {key} has the input, but has not recorded it within {seconds} s, because its current step goes on. It records the \
         input after the step. If the runtime stops before, the input is lost: read the events of the Job before you send it again"
    );
    Error::new(ErrorKind::Unavailable, message)
}
