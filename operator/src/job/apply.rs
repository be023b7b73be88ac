//! What is done of a decision.

use super::applied::{Applied, Wait};
use super::call_not_started;
use super::decide::{Act, Decision, End, PodDeletion};
use super::fetch::Fetched;
use super::start::{self, Started};
use crate::approval::settle;
use crate::approval::standing::{Mark, wanted_of};
use crate::context::Context;
use crate::error::Error;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::SignedDuration;

/// Carries a decision out. Says when to look again, too.
pub async fn apply(
    context: &Context,
    seen: &Fetched,
    decision: Decision,
) -> Result<(Applied, Option<SignedDuration>), Error> {
    let Decision { act, delete, again } = decision;
    for doomed in &delete {
        delete_pod(context, seen, doomed).await?;
    }
    Ok(match act {
        Act::Idle | Act::KeepPausing => (Applied::Nothing, again),
        Act::Observe(problem) => (Applied::Observed(problem), again),
        Act::Pause(lost) => (Applied::Paused(lost), again),
        Act::WaitForPeople(awaits) => (Applied::WaitsForPeople(awaits), again),
        Act::Settle(marks) => {
            for mark in &marks {
                settle(context, seen, mark).await?;
            }
            // What was written wakes the Job again.
            (Applied::Nothing, again)
        }
        Act::RecordParking(message) => (Applied::Parked(message), again),
        Act::Suspend(after) => (Applied::Waiting(suspended(&seen.namespace), after), again),
        Act::AwaitPodEnd(why, problem) => (Applied::AwaitsPodEnd(why, problem), again),
        Act::Delete => {
            context.applier.delete_as_seen(&seen.job).await?;
            (Applied::Deleted, None)
        }
        Act::End(end) => (ended(seen, end), again),
        Act::Start { attempt, after } => match start::start(context, seen, attempt).await? {
            Started::Made(made) => (Applied::Started(made, after), again),
            Started::Waits(wait, retry) => (Applied::Waiting(wait, after), sooner(again, retry)),
            Started::Over(end) => (ended(seen, end), again),
            Started::Later(retry) => (Applied::Nothing, sooner(again, Some(retry))),
        },
    })
}

fn ended(seen: &Fetched, end: End) -> Applied {
    let not_started = call_not_started::at_end(&seen.status, &seen.pods, &end).cloned();
    Applied::Ended(end, not_started)
}

async fn delete_pod(context: &Context, seen: &Fetched, doomed: &PodDeletion) -> Result<(), Error> {
    let metadata = ObjectMeta {
        namespace: Some(seen.namespace.clone()),
        name: Some(doomed.name.clone()),
        uid: Some(doomed.uid.clone()),
        ..ObjectMeta::default()
    };
    context.applier.delete_within::<Pod>(&metadata, doomed.grace).await
}

async fn settle(context: &Context, seen: &Fetched, mark: &Mark) -> Result<(), Error> {
    let name = match mark {
        Mark::Count(name) | Mark::Void { name, .. } => name,
        Mark::Withdraw { name, uid, why } => return settle::withdraw(context, &seen.namespace, (name, uid), why).await,
        Mark::CallNotStarted { name, uid, why } => {
            return settle::call_not_started(context, &seen.namespace, (name, uid), why).await;
        }
    };
    let Some(asked) = &seen.asked else { return Ok(()) };
    match wanted_of(&seen.name, &seen.uid, &asked.call, name) {
        Some(wanted) => settle::settle(context, &seen.namespace, name, &wanted).await,
        None => Ok(()),
    }
}

/// What a Job waits for whose namespace is suspended.
fn suspended(namespace: &str) -> Wait {
    let annotation = names::ANNOTATION_SUSPEND;
    let message = format!(
        "no pod runs while the namespace {namespace} is suspended by its annotation {annotation}: \
         kubectl annotate namespace {namespace} {annotation}- lets the Job go on"
    );
    Wait::new(Reason::Suspended, message)
}

fn sooner(one: Option<SignedDuration>, other: Option<SignedDuration>) -> Option<SignedDuration> {
    [one, other].into_iter().flatten().min()
}
