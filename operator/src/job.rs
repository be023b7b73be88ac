//! The Job controller: one pod per attempt, from the first to the outcome.
//!
//! What happens is decided by pure functions over values ([`decide`]); what is said follows from what was done
//! ([`status`]). The conversation itself is told by its worker, through [`crate::report`].

pub mod applied;
pub mod apply;
pub mod build;
pub mod call_not_started;
mod census;
pub mod decide;
pub mod ending;
pub mod fetch;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod pace;
mod paths;
pub mod pods;
pub mod replies;
pub mod start;
pub mod status;
mod tell;
pub mod validate;
mod wake;

pub(crate) use tell::{tell_end, tell_waiting};

use crate::context::Context;
use crate::controller::Controller;
use crate::error::Error;
use crate::status::Stamp;
use applied::Applied;
use bloomery_crds::v1alpha1::{Job, JobStatus};
use ending::{Ending, EndingSince};
use fetch::Fetched;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::runtime::controller::Action;
use pace::Pace;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How many Jobs are worked on at the same time: each is a few requests to the API server.
const CONCURRENCY: u16 = 32;

/// How long Jobs are not looked at while the CA of the report endpoint is not known: it is read, or made, in the
/// first moments of a leader, and a Job that comes before it would be told to wait, with two writes for nothing.
const CA_PATIENCE: Duration = Duration::from_secs(10);

/// What the controller knows beside the context.
#[derive(Debug, Default)]
struct Memory {
    pace: Pace,
    ending: EndingSince,
}

/// Runs the Job controller until the shutdown.
pub async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    tokio::select! {
        () = context.report_trust.known() => {}
        () = tokio::time::sleep(CA_PATIENCE) => {}
        () = shutdown.cancelled() => return,
    }
    let memory = Arc::new(Memory::default());
    let controller = Controller {
        name: "job",
        store: context.caches.jobs.store().clone(),
        wakes: wake::changes(&context),
        concurrency: CONCURRENCY,
    };
    let one = move |job: Job, context: Arc<Context>| reconcile(job, context, memory.clone());
    tokio::select! {
        () = controller.run(context.clone(), one, shutdown) => {}
        () = census::keep(&context) => {}
    }
}

/// One look at one Job.
async fn reconcile(job: Job, context: Arc<Context>, memory: Arc<Memory>) -> Result<Action, Error> {
    let now = Timestamp::now();
    let retention = SignedDuration::try_from(context.settings.worker.pod_retention).unwrap_or(SignedDuration::MAX);
    // API server
    let Some(seen) = fetch::seen(&context, job, now).await? else {
        return Ok(Action::await_change());
    };
    let ending = ending(&memory.ending, &seen, now);
    // pure
    let decision = decide::decide(&seen.facts(retention, ending, now));
    // API server: validates, builds, creates, deletes
    let (applied, again) = apply::apply(&context, &seen, decision).await?;
    // pure
    let stamp = Stamp::new(&seen.job, now);
    let next = status::next(&seen.status, &applied, &stamp);
    let next = if applied == Applied::Deleted { next } else { replies::told(next, &seen.job.spec, &stamp) };
    // API server
    let again = write(&context, &memory.pace, &seen, &next, again).await?;
    census::waited(&context.metrics, &seen.status, &next, now);
    tell::tell(&context, &seen, &applied, &next).await;
    Ok(again.and_then(|again| Duration::try_from(again).ok()).map_or_else(Action::await_change, Action::requeue))
}

/// Why the Job is to end whatever it does, and since when that is known, where it is so.
fn ending(known: &EndingSince, seen: &Fetched, now: Timestamp) -> Option<(Ending, Timestamp)> {
    if seen.status.is_terminal() {
        known.forget(&seen.uid);
    }
    seen.ending().map(|why| (why, known.first_known(&seen.uid, now)))
}

/// Writes the status where it changed. A wait that only got other words is told with the next interval.
async fn write(
    context: &Context,
    pace: &Pace,
    seen: &Fetched,
    next: &JobStatus,
    again: Option<SignedDuration>,
) -> Result<Option<SignedDuration>, Error> {
    if *next == seen.status {
        return Ok(again);
    }
    if status::only_words_changed(&seen.status, next)
        && let Some(left) = pace.left(&seen.uid, Instant::now())
    {
        let left = SignedDuration::try_from(left).unwrap_or(SignedDuration::ZERO);
        return Ok(Some(again.map_or(left, |again| again.min(left))));
    }
    if context.statuses.replace(&seen.job, next.clone()).await?.is_some() {
        pace.wrote(&seen.uid, Instant::now());
    }
    Ok(again)
}

#[cfg(test)]
mod tests;
