//! The Job controller: one pod for each attempt, from the first attempt to the outcome.
//!
//! A reconcile has the steps of every controller, `fetch -> validate -> build -> apply -> status`, and one more:
//! [`decide`] comes before the pod's inputs are fetched, so a Job whose pod runs costs no request. The [`plan::Plan`]
//! passes through the steps, and its type shows how far it has come. The progress of the conversation arrives through
//! [`crate::report`].
//!
//! Two paths through these modules:
//! - `spec.goal` reaches the worker in [`validate`] (`ValidAttempt::goal`) and [`build`] (the Job's part of the run
//!   document, which the pod mounts as a file).
//! - The decision of a person is counted in [`apply`] ([`crate::approval::store::update`]). Then [`decide`] starts the
//!   next attempt, [`fetch::attempt`] reads the decision, and [`build`] puts it into the Job's part.

pub mod applied;
pub mod apply;
mod approved_call;
pub mod asked_calls;
pub mod build;
pub mod call_not_started;
pub(crate) mod change_metrics;
mod children;
pub mod decide;
pub mod ending;
mod events;
pub mod fetch;
#[cfg(test)]
pub(crate) mod fixtures;
mod memory_wait;
pub(crate) mod paths;
mod phase_metrics;
pub mod plan;
pub mod pods;
mod queue;
mod refused;
pub mod replies;
mod run_key;
mod skill_template;
mod start_pace;
pub mod status;
pub mod validate;
mod wake;
pub mod write_pace;

pub(crate) use validate::is_single_node as is_memory_single_node;

pub(crate) use events::{publish_changed_tools, publish_end, publish_new_wait, publish_waiting};

use crate::children::family::is_cancelled;
use crate::context::Context;
use crate::controller::Controller;
use crate::error::Error;
use crate::first_seen::FirstSeen;
use crate::status::StatusStamp;
use applied::AppliedPlan;
use bloomery_crds::v1alpha1::{Job, JobStatus};
use decide::Facts;
use ending::EndCause;
use fetch::FetchedJob;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::ResourceExt;
use kube::runtime::controller::Action;
use plan::{Blocked, earlier};
use queue::Queue;
use start_pace::StartPace;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use write_pace::WritePace;

/// The maximum number of concurrent reconciles. Each makes a few requests to the API server.
const MAX_CONCURRENT_RECONCILES: u16 = 32;

/// The time to wait for the CA of the report endpoint before Jobs are reconciled. The leader reads or creates it right
/// after it starts. A Job that is reconciled earlier would be recorded as waiting, which costs two unnecessary writes.
const REPORT_CA_TIMEOUT: Duration = Duration::from_secs(10);

/// The state that the controller keeps between reconciles.
#[derive(Debug, Default)]
struct ControllerState {
    pace: WritePace,
    /// When each ending Job was first seen ending: the API server does not record when a field such as `spec.cancel` was set. A new
    /// leader gives the worker the whole time again.
    ending: FirstSeen,
    starts: StartPace,
    /// When the pod of each Job was first refused.
    refused_since: FirstSeen,
    queue: Queue,
}

/// Runs the Job controller until the shutdown.
pub async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    tokio::select! {
        () = context.report_ca_bundle.wait_until_known() => {}
        () = tokio::time::sleep(REPORT_CA_TIMEOUT) => {}
        () = shutdown.cancelled() => return,
    }
    tokio::select! {
        () = context.caches.wait_until_synced() => {}
        () = shutdown.cancelled() => return,
    }
    let state = Arc::new(ControllerState::default());
    let controller = Controller {
        name: "job",
        store: context.caches.jobs.store().clone(),
        wakes: wake::changes(&context, &state.queue),
        concurrency: MAX_CONCURRENT_RECONCILES,
    };
    state.queue.restore(&context, Timestamp::now());
    let (reconcile_state, queue) = (state.clone(), state.queue.clone());
    let reconcile = move |job: Job, context: Arc<Context>| reconcile(job, context, reconcile_state.clone());
    tokio::select! {
        () = controller.run(context.clone(), reconcile, shutdown) => {}
        () = phase_metrics::run(&context, &queue) => {}
    }
}

async fn reconcile(job: Job, context: Arc<Context>, state: Arc<ControllerState>) -> Result<Action, Error> {
    let now = Timestamp::now();
    // Fetch (IO): the Job, and the inputs of the decision.
    let uid = job.uid().unwrap_or_default();
    let Some(fetched) = Box::pin(fetch::fetch(&context, job, now)).await? else {
        state.queue.withdraw(&uid);
        return Ok(Action::await_change());
    };
    // Decide (pure).
    let retention = SignedDuration::try_from(context.settings.worker.pod_retention).unwrap_or(SignedDuration::MAX);
    let events = fetched.status.log.as_ref().map_or(0, |log| log.events);
    let start_after = state.starts.remaining(&fetched.uid, events, now);
    let cause = fetched.end_cause(is_cancelled(&context.caches, &fetched.job));
    let ending = track_end_cause(&state.ending, &fetched, cause, now);
    let plan = decide::decide(&Facts { start_after, ..fetched.facts(retention, ending, now) });
    // Decide: whether the run key is free, and the memory of the Skill has room, if the first attempt starts.
    let plan = plan.and_then(|attempt| {
        let run_key_wait = run_key::wait(&context.caches, &fetched);
        let wait = run_key_wait.or_else(|| memory_wait::wait(&context.caches, &fetched, now));
        wait.map_or(Ok(attempt), |wait| Err(Blocked::Wait(wait)))
    });
    // Decide: whether the maxima allow another pod. A Job that waits in the queue costs no request.
    let (plan, admission) = state.queue.admit(&context, &fetched, plan, now);
    // Fetch (IO): the inputs of the pod, if an attempt starts.
    let plan = Box::pin(fetch::attempt::fetch(&context, &fetched, plan)).await?;
    // Validate (pure).
    let plan = plan.and_then(|sources| validate::validate(&fetched, sources, &context.settings));
    // Build (pure).
    let plan = plan.and_then(|valid| build::build(&valid, &context.settings.worker));
    // Apply (IO).
    let (applied, requeue_after) = Box::pin(apply::apply(&context, &fetched, plan)).await?;
    if let AppliedPlan::Started(..) = &applied {
        state.starts.record(&fetched.uid, events, now);
    }
    let requeue_after = state.queue.settle(&context, (&fetched, admission), (&applied, requeue_after), now);
    let requeue_after = earlier(requeue_after, refused::retry_after(&state.refused_since, &uid, &applied, now));
    // Apply (IO): the children that the worker requests.
    let (children, retry_after) = Box::pin(children::advance(&context, &fetched, ending.is_some())).await;
    let requeue_after = earlier(requeue_after, retry_after);
    // Status (pure).
    let stamp = StatusStamp::new(&fetched.job, now);
    let current = status::with_children(fetched.status.clone(), children, &stamp);
    let status = status::compute(&current, &fetched.job.spec, &applied, &stamp);
    // Write the status and publish Events (IO).
    let requeue_after = Box::pin(write(&context, &state.pace, &fetched, &status, requeue_after)).await?;
    phase_metrics::observe_wait(&context.metrics, &fetched.status, &status, now);
    Box::pin(events::publish(&context, &fetched, &applied, &status)).await;
    Ok(requeue_after
        .and_then(|requeue_after| Duration::try_from(requeue_after).ok())
        .map_or_else(Action::await_change, Action::requeue))
}

/// Returns `cause`, why the Job is ending, and the time at which this process first saw the Job ending; none if the Job is not
/// ending. Forgets this time once the Job has ended.
fn track_end_cause(
    ending_since: &FirstSeen,
    fetched: &FetchedJob,
    cause: Option<EndCause>,
    now: Timestamp,
) -> Option<(EndCause, Timestamp)> {
    if fetched.status.is_terminal() {
        ending_since.forget(&fetched.uid);
    }
    cause.map(|cause| (cause, ending_since.first_seen(&fetched.uid, now)))
}

/// Writes the status if it changed. If the Job still waits for the same reason, the write is delayed until
/// [`WritePace`] allows it. Returns the time until the next reconcile.
async fn write(
    context: &Context,
    pace: &WritePace,
    fetched: &FetchedJob,
    status: &JobStatus,
    requeue_after: Option<SignedDuration>,
) -> Result<Option<SignedDuration>, Error> {
    if *status == fetched.status {
        return Ok(requeue_after);
    }
    if status::is_same_wait(&fetched.status, status)
        && let Some(left) = pace.remaining(&fetched.uid, Instant::now())
    {
        return Ok(earlier(requeue_after, Some(SignedDuration::try_from(left).unwrap_or(SignedDuration::ZERO))));
    }
    if context.statuses.replace(&fetched.job, status.clone()).await?.is_some() {
        pace.record_write(&fetched.uid, Instant::now());
        change_metrics::record(&context.metrics, &fetched.job, &fetched.status, status, Timestamp::now());
    }
    Ok(requeue_after)
}

#[cfg(test)]
mod tests;
