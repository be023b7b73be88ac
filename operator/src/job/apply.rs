//! Applies the plan for a Job: creates and deletes pods, settles Approvals, deletes the Job.

use super::applied::{Applied, StartedPod};
use super::build::{PreparedPod, revision_of};
use super::call_not_started;
use super::fetch::{Fetched, stored_pod};
use super::plan::{Act, End, Plan, PodDeletion, Wait, sooner};
use crate::approval::settle;
use crate::approval::standing::{Mark, wanted_of};
use crate::context::Context;
use crate::error::Error;
use crate::owned;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::SignedDuration;
use kube::Api;
use kube::core::ResourceExt;

/// How soon to create a refused pod again: quotas, admission rules and pods of other names are not watched.
const REFUSED_POD_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The retry delay while a cache catches up.
const CACHE_CATCH_UP_DELAY: SignedDuration = SignedDuration::from_secs(1);

/// The result of the creation of a pod.
enum Created {
    /// The pod exists.
    Started(StartedPod),
    /// Something that a person has to change is in the way.
    Waits(Wait),
    /// The operator does not know enough yet.
    Later(SignedDuration),
}

/// Applies a plan, and says when to reconcile again.
pub async fn apply(
    context: &Context,
    fetched: &Fetched,
    plan: Plan<PreparedPod>,
) -> Result<(Applied, Option<SignedDuration>), Error> {
    let Plan { act, delete, again } = plan;
    for pod in &delete {
        delete_pod(context, fetched, pod).await?;
    }
    let applied = match act {
        Act::Idle | Act::KeepPausing => Applied::Nothing,
        Act::Observe(problem) => Applied::Observed(problem),
        Act::Pause(lost) => Applied::Paused(lost),
        Act::WaitForPeople(wait) => Applied::WaitsForPeople(wait),
        Act::Settle(marks) => {
            for mark in &marks {
                settle(context, fetched, mark).await?;
            }
            // The written Approvals wake the Job again.
            Applied::Nothing
        }
        Act::RecordParking(message) => Applied::Parked(message),
        Act::Suspend(after) => Applied::Waiting(suspended(&fetched.namespace), after),
        Act::Wait(wait, after) => Applied::Waiting(wait, after),
        Act::AwaitPodEnd(ending, problem) => Applied::AwaitsPodEnd(ending, problem),
        Act::Delete => {
            context.applier.delete_as_seen(&fetched.job).await?;
            return Ok((Applied::Deleted, None));
        }
        Act::End(end) => ended(fetched, end),
        Act::Start { attempt, after } => match create(context, fetched, attempt).await? {
            Created::Started(started) => Applied::Started(started, after),
            Created::Waits(wait) => {
                let again = sooner(again, wait.retry);
                return Ok((Applied::Waiting(wait, after), again));
            }
            Created::Later(delay) => return Ok((Applied::Nothing, sooner(again, Some(delay)))),
        },
    };
    Ok((applied, again))
}

fn ended(fetched: &Fetched, end: End) -> Applied {
    let not_started = call_not_started::at_end(&fetched.status, &fetched.pods, &end).cloned();
    Applied::Ended(end, not_started)
}

async fn delete_pod(context: &Context, fetched: &Fetched, pod: &PodDeletion) -> Result<(), Error> {
    let metadata = ObjectMeta {
        namespace: Some(fetched.namespace.clone()),
        name: Some(pod.name.clone()),
        uid: Some(pod.uid.clone()),
        ..ObjectMeta::default()
    };
    context.applier.delete_within::<Pod>(&metadata, pod.grace).await
}

async fn settle(context: &Context, fetched: &Fetched, mark: &Mark) -> Result<(), Error> {
    let namespace = &fetched.namespace;
    let name = match mark {
        Mark::Count(name) | Mark::Void { name, .. } => name,
        Mark::Withdraw { name, uid, why } => return settle::withdraw(context, namespace, (name, uid), why).await,
        Mark::CallNotStarted { name, uid, why } => {
            return settle::call_not_started(context, namespace, (name, uid), why).await;
        }
    };
    let Some(asked) = &fetched.asked else { return Ok(()) };
    match wanted_of(&fetched.name, &fetched.uid, &asked.call, name) {
        Some(wanted) => settle::settle(context, namespace, name, &wanted).await,
        None => Ok(()),
    }
}

/// Creates the pod of an attempt under its one possible name.
///
/// After a crash between the creation of a pod and the write of the status, the pod is found and taken over.
async fn create(context: &Context, fetched: &Fetched, prepared: PreparedPod) -> Result<Created, Error> {
    if !is_current(context, fetched).await? {
        return Ok(Created::Later(CACHE_CATCH_UP_DELAY));
    }
    let (namespace, name) = (&fetched.namespace, prepared.pod.name_any());
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    context.metrics.wrote("Pod", "create");
    match api.create(&owned::posting(), &prepared.pod).await {
        Ok(pod) => Ok(started(&pod, prepared)),
        Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => {
            Ok(match stored_pod(context, namespace, &name).await? {
                Some(pod) if owned::is_owned_by(&pod.metadata, &fetched.uid) => started(&pod, prepared),
                Some(_) => Created::Waits(name_taken(&name)),
                None => Created::Later(CACHE_CATCH_UP_DELAY),
            })
        }
        Err(error) => refused(Error::api(format!("create Pod {namespace}/{name}"))(error)),
    }
}

/// Whether the plan was made for the Job as it is stored: a Job that ended or was deleted meanwhile gets no pod.
async fn is_current(context: &Context, fetched: &Fetched) -> Result<bool, Error> {
    let api: Api<Job> = Api::namespaced(context.client.clone(), &fetched.namespace);
    let what = format!("read Job {}/{}", fetched.namespace, fetched.name);
    let stored = api.get_metadata_opt(&fetched.name).await.map_err(Error::api(what))?;
    Ok(stored.is_some_and(|stored| {
        stored.metadata.resource_version == fetched.job.metadata.resource_version && stored.uid() == fetched.job.uid()
    }))
}

fn started(pod: &Pod, prepared: PreparedPod) -> Created {
    let PreparedPod { pod: _, attempt, revision, continued } = prepared;
    // A pod that was found may have been created with another revision than a Job that starts now would get.
    let revision = revision_of(pod).unwrap_or(revision);
    match pod.uid() {
        None => Created::Later(CACHE_CATCH_UP_DELAY),
        Some(uid) => Created::Started(StartedPod {
            pod: pod.name_any(),
            uid,
            attempt,
            revision,
            continued,
            created: pod.metadata.creation_timestamp.clone(),
        }),
    }
}

fn name_taken(name: &str) -> Wait {
    let message = format!(
        "there is a pod {name} that belongs to somebody else: delete or rename it, and the Job goes on by itself"
    );
    Wait::new(Reason::NameTaken, message).retry_after(REFUSED_POD_RETRY_INTERVAL)
}

/// Separates what a person has to change, such as a quota or an admission rule, from what may pass by itself.
fn refused(error: Error) -> Result<Created, Error> {
    match &error {
        Error::Api { source: kube::Error::Api(status), .. }
            if matches!(status.code, 400 | 403 | 422) && !error.is_gone() =>
        {
            let message = format!("the API server refuses the pod: {}", status.message);
            let wait = Wait::new(Reason::PodNotStarting, message);
            Ok(Created::Waits(wait.retry_after(REFUSED_POD_RETRY_INTERVAL)))
        }
        _ => Err(error),
    }
}

/// The wait of a Job whose namespace is suspended.
fn suspended(namespace: &str) -> Wait {
    let annotation = names::ANNOTATION_SUSPEND;
    let message = format!(
        "no pod runs while the namespace {namespace} is suspended by its annotation {annotation}: \
         kubectl annotate namespace {namespace} {annotation}- lets the Job go on"
    );
    Wait::new(Reason::Suspended, message)
}
