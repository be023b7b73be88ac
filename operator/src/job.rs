//! The Job controller: one pod per attempt, from the first to the outcome.
//!
//! What happens is decided by pure functions over values ([`decide`]); what is said follows from what was done
//! ([`status`]). The conversation itself is told by its worker, through [`crate::report`].

pub mod applied;
pub mod apply;
pub mod build;
mod census;
pub mod decide;
pub mod fetch;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod interests;
pub mod pace;
pub mod pods;
pub mod replies;
pub mod since;
pub mod start;
pub mod status;
mod tell;
pub mod unbegun;
pub mod validate;

pub(crate) use tell::{tell_end, tell_rest};

use crate::caches::Guarded;
use crate::context::Context;
use crate::controller::{Controller, Wake, labelled, wakes};
use crate::error::Error;
use applied::Applied;
use bloomery_crds::names;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{Approval, Job, JobStatus, Model, Skill};
use decide::GivenUp;
use fetch::Seen;
use futures::stream::BoxStream;
use interests::{Interest, Interests, Kind};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::{PartialObjectMeta, Resource, ResourceExt};
use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store};
use pace::Pace;
use since::Since;
use status::Stamp;
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
    interests: Interests,
    pace: Pace,
    given_up: Since,
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
        wakes: sources(&context, &memory),
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
    let Some(seen) = fetch::seen(&context, &memory.interests, job, now).await? else {
        return Ok(Action::await_change());
    };
    let given_up = given_up(&memory.given_up, &seen, now);
    // pure
    let decision = decide::decide(&seen.facts(retention, given_up, now));
    // API server: validates, builds, creates, deletes
    let (applied, again) = apply::apply(&context, &memory.interests, &seen, decision).await?;
    // pure
    let stamp = Stamp { now: Time(now), generation: seen.job.metadata.generation };
    let next = status::next(&seen.status, &applied, &stamp);
    let next = if applied == Applied::Deleted { next } else { replies::told(next, &seen.job.spec, &stamp) };
    // API server
    let again = write(&context, &memory.pace, &seen, &next, again).await?;
    census::waited(&context.metrics, &seen.status, &next, now);
    tell::tell(&context, &seen, &applied, &next).await;
    Ok(again.and_then(|again| Duration::try_from(again).ok()).map_or_else(Action::await_change, Action::requeue))
}

/// Why the Job is to end whatever it does, and since when that is known, where it is so.
fn given_up(known: &Since, seen: &Seen, now: Timestamp) -> Option<(GivenUp, Timestamp)> {
    if seen.status.is_terminal() {
        known.forget(&seen.uid);
    }
    seen.given_up().map(|why| (why, known.of(&seen.uid, now)))
}

/// Writes the status where it changed. A wait that only got other words is told with the next interval.
async fn write(
    context: &Context,
    pace: &Pace,
    seen: &Seen,
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

/// What wakes which Job: itself, its pods, and what it depends on.
fn sources(context: &Context, memory: &Arc<Memory>) -> Vec<BoxStream<'static, Wake<Job>>> {
    let caches = &context.caches;
    let jobs = caches.jobs.store();
    let forgetful = (memory.clone(), jobs.clone());
    let on_job = move |job: &Guarded<Job>| {
        let (memory, store) = &forgetful;
        let wake = ObjectRef::from_obj(job);
        if store.get(&wake).is_none() {
            memory.interests.forget(&job.namespace().unwrap_or_default(), &job.name_any());
            return Vec::new();
        }
        vec![wake]
    };
    vec![
        wakes(caches.jobs.changes(), jobs, on_job),
        wakes(caches.jobs.changes(), jobs, interested(memory, Kind::Job, |job: &Guarded<Job>| Some(job.name_any()))),
        wakes(caches.jobs.changes(), jobs, continued_by),
        wakes(caches.pods.changes(), jobs, |pod| labelled(pod, names::LABEL_JOB)),
        wakes(caches.approvals.changes(), jobs, of_approval),
        wakes(caches.policies.changes(), jobs, all_that_wait(jobs)),
        wakes(caches.bindings.changes(), jobs, all_that_wait(jobs)),
        wakes(caches.namespaces.changes(), jobs, all_that_go_on(jobs)),
        wakes(
            caches.skills.changes(),
            jobs,
            interested(memory, Kind::Skill, |skill: &Guarded<Skill>| Some(skill.name_any())),
        ),
        wakes(
            caches.models.changes(),
            jobs,
            interested(memory, Kind::Model, |model: &Guarded<Model>| Some(model.name_any())),
        ),
        wakes(
            caches.claims.changes(),
            jobs,
            interested(memory, Kind::Claim, |claim: &PersistentVolumeClaim| Some(claim.name_any())),
        ),
        wakes(
            caches.revisions.changes(),
            jobs,
            interested(memory, Kind::Skill, |revision: &PartialObjectMeta<ConfigMap>| {
                revision.labels().get(names::LABEL_SKILL).cloned()
            }),
        ),
    ]
}

/// The Job whose call an Approval is of. Labels may be changed, this may not.
fn of_approval(approval: &Guarded<Approval>) -> Vec<Wake<Job>> {
    let (Ok(approval), Some(namespace)) = (&approval.0, &approval.meta().namespace) else { return Vec::new() };
    vec![ObjectRef::new(&approval.spec.job).within(namespace)]
}

/// The Job that another one continues: it may be let go once that one has begun.
fn continued_by(job: &Guarded<Job>) -> Vec<Wake<Job>> {
    let (Ok(job), Some(namespace)) = (&job.0, &job.meta().namespace) else { return Vec::new() };
    job.spec.continues.iter().map(|continued| ObjectRef::new(continued).within(namespace)).collect()
}

/// The Jobs that wait for people: whether they can be asked has changed.
fn all_that_wait<C>(jobs: &Store<Guarded<Job>>) -> impl Fn(&C) -> Vec<Wake<Job>> + Send + 'static {
    all_that(jobs, |_, _, status| status.is_some_and(|status| status.phase == Some(Phase::AwaitingApproval)))
}

/// The Jobs of a namespace that have not ended: whether it is suspended has changed, for nothing else of it is told.
fn all_that_go_on(
    jobs: &Store<Guarded<Job>>,
) -> impl Fn(&PartialObjectMeta<Namespace>) -> Vec<Wake<Job>> + Send + 'static {
    all_that(jobs, |namespace: &PartialObjectMeta<Namespace>, of, status| {
        of == namespace.metadata.name.as_deref() && !status.is_some_and(JobStatus::is_terminal)
    })
}

/// The Jobs that a change is of, by their namespaces and what stands in their status.
fn all_that<C>(
    jobs: &Store<Guarded<Job>>,
    is_one: impl Fn(&C, Option<&str>, Option<&JobStatus>) -> bool + Send + 'static,
) -> impl Fn(&C) -> Vec<Wake<Job>> + Send + 'static {
    let jobs = jobs.clone();
    move |changed| {
        let is_one = |job: &Guarded<Job>| {
            let status = job.0.as_ref().ok().and_then(|job| job.status.as_ref());
            is_one(changed, job.meta().namespace.as_deref(), status)
        };
        jobs.state().iter().filter(|job| is_one(job)).map(|job| ObjectRef::from_obj(job.as_ref())).collect()
    }
}

/// The Jobs that depend on what changed, by the name that they know it under.
fn interested<C: Resource>(
    memory: &Arc<Memory>,
    kind: Kind,
    name: impl Fn(&C) -> Option<String> + Send + 'static,
) -> impl Fn(&C) -> Vec<Wake<Job>> + Send + 'static {
    let memory = memory.clone();
    move |object| {
        let (Some(namespace), Some(name)) = (&object.meta().namespace, name(object)) else { return Vec::new() };
        memory.interests.of(&Interest::new(kind, namespace, &name))
    }
}

#[cfg(test)]
mod tests;
