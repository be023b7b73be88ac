//! Applies the plan for a Job: creates and deletes pods, updates Approvals, deletes the Job.

use super::applied::{AppliedPlan, StartedPod, TakenName};
use super::build::{PreparedPod, revision_of};
use super::call_not_started;
use super::fetch::{FetchedJob, stored_pod};
use super::plan::{Act, JobEnd, Plan, PodDeletion, Wait, earlier};
use super::queue;
use super::skill_template;
use crate::apply::{ApplyResult, KnownObject};
use crate::approval::evaluate::{ApprovalUpdate, expected_approval};
use crate::approval::store;
use crate::context::Context;
use crate::error::Error;
use crate::owned;
use crate::pod_deletion;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::SignedDuration;
use kube::Api;
use kube::core::ResourceExt;
use std::time::Instant;

/// The retry delay while a cache catches up.
const CACHE_CATCH_UP_DELAY: SignedDuration = SignedDuration::from_secs(1);

/// The result of the creation of a pod.
enum PodCreation {
    /// The pod exists.
    Started(Box<StartedPod>),
    /// A pod that the operator did not create has the name.
    NameTaken(TakenName),
    /// The pod cannot be created until a person changes something.
    MustWait(Wait),
    /// A cache is behind: retry after this delay.
    RetryAfter(SignedDuration),
}

/// Applies a plan. Returns the result, and when to reconcile again.
pub async fn apply(
    context: &Context,
    fetched: &FetchedJob,
    plan: Plan<PreparedPod>,
) -> Result<(AppliedPlan, Option<SignedDuration>), Error> {
    let Plan { act, delete, mut requeue_after } = plan;
    for pod in &delete {
        requeue_after = earlier(requeue_after, delete_pod(context, fetched, pod).await?);
    }
    let applied = match act {
        Act::Idle | Act::KeepPausing | Act::WaitForChildren => AppliedPlan::Nothing,
        Act::Observe(problem) => AppliedPlan::Observed(problem),
        Act::Pause(lost) => AppliedPlan::Paused(lost),
        Act::WaitForPeople(wait) => AppliedPlan::WaitsForPeople(wait),
        Act::UpdateApprovals(updates) => {
            let replaces = updates.iter().any(|update| matches!(update, ApprovalUpdate::Void { .. }));
            if replaces && let Some(wait) = context.void_pace.wait(&fetched.uid, Instant::now()) {
                let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::ZERO);
                return Ok((AppliedPlan::Nothing, earlier(requeue_after, Some(wait))));
            }
            for update in &updates {
                update_approval(context, fetched, update).await?;
            }
            // The written Approvals wake the Job again.
            AppliedPlan::Nothing
        }
        Act::RecordParking(message) => AppliedPlan::Parked(message),
        Act::CreateSkill(after) => match skill_template::create_skill(context, fetched).await? {
            // The created Skill wakes the Job.
            Ok(()) => AppliedPlan::Nothing,
            Err(wait) => {
                let requeue_after = earlier(requeue_after, wait.retry);
                return Ok((AppliedPlan::Waiting(wait, after), requeue_after));
            }
        },
        Act::Suspend(after) => AppliedPlan::Waiting(suspension_wait(&fetched.namespace), after),
        Act::Wait(wait, after) => AppliedPlan::Waiting(wait, after),
        Act::AwaitPodEnd(cause, problem) => AppliedPlan::AwaitsPodEnd(cause, problem),
        Act::Delete => {
            context.applier.delete_if_unchanged(&fetched.job).await?;
            return Ok((AppliedPlan::Deleted, None));
        }
        Act::End(end) => applied_end(fetched, end),
        Act::Start { attempt, after } => match Box::pin(create_pod(context, fetched, attempt)).await? {
            PodCreation::Started(started) => AppliedPlan::Started(*started, after),
            PodCreation::NameTaken(taken) => AppliedPlan::NameTaken(taken, after),
            PodCreation::MustWait(wait) => {
                let requeue_after = earlier(requeue_after, wait.retry);
                return Ok((AppliedPlan::Waiting(wait, after), requeue_after));
            }
            PodCreation::RetryAfter(delay) => return Ok((AppliedPlan::Nothing, earlier(requeue_after, Some(delay)))),
        },
    };
    Ok((applied, requeue_after))
}

fn applied_end(fetched: &FetchedJob, end: JobEnd) -> AppliedPlan {
    let not_started = call_not_started::unstarted_call_at_end(&fetched.status, &fetched.pods, &end).cloned();
    AppliedPlan::Ended(end, not_started)
}

/// Deletes a pod. Returns when to try again if the API server refuses.
async fn delete_pod(
    context: &Context,
    fetched: &FetchedJob,
    pod: &PodDeletion,
) -> Result<Option<SignedDuration>, Error> {
    let metadata = ObjectMeta {
        namespace: Some(fetched.namespace.clone()),
        name: Some(pod.name.clone()),
        uid: Some(pod.uid.clone()),
        ..ObjectMeta::default()
    };
    pod_deletion::delete(context, &fetched.job, &metadata, pod.grace_seconds).await
}

async fn update_approval(context: &Context, fetched: &FetchedJob, update: &ApprovalUpdate) -> Result<(), Error> {
    let namespace = &fetched.namespace;
    let name = match update {
        ApprovalUpdate::Count(name) | ApprovalUpdate::Void { name, .. } => name,
        ApprovalUpdate::Withdraw { name, uid, why } => {
            return store::withdraw(context, namespace, (name, uid), why).await;
        }
        ApprovalUpdate::CallNotStarted { name, uid, why } => {
            return store::record_call_not_started(context, namespace, (name, uid), why).await;
        }
    };
    let Some(call_approvals) = &fetched.call_approvals else { return Ok(()) };
    match expected_approval(&fetched.name, &fetched.uid, &call_approvals.call, name) {
        Some(expected) => store::update(context, namespace, name, &expected).await,
        None => Ok(()),
    }
}

/// Creates the pod of an attempt. Its name follows from the Job and the attempt.
///
/// If the operator crashed after it created a pod and before it wrote the status, the existing pod is adopted. A pod of
/// another making is never adopted: it could carry decisions that no approver has made. The seal proves who created the pod: the
/// admission policy for its label may have been missing at that time.
async fn create_pod(context: &Context, fetched: &FetchedJob, prepared: PreparedPod) -> Result<PodCreation, Error> {
    if !is_current(context, fetched).await? {
        return Ok(PodCreation::RetryAfter(CACHE_CATCH_UP_DELAY));
    }
    if let Some(policy) = &prepared.network_policy
        && let Some(obstacle) = apply_policy(context, policy).await?
    {
        return Ok(obstacle);
    }
    let (namespace, name) = (&fetched.namespace, prepared.pod.name_any());
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    context.metrics.count_write("Pod", "create");
    let sealed = context.pod_seals.sealed(prepared.pod.clone());
    match api.create(&owned::post_params(), &sealed).await {
        Ok(pod) => Ok(started_pod(&pod, prepared)),
        Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => {
            Ok(match stored_pod(context, namespace, &name).await? {
                Some(pod)
                    if owned::is_worker_pod(&pod, (&fetched.name, &fetched.uid)) && context.pod_seals.verify(&pod) =>
                {
                    if run_key_label(&pod) != run_key_label(&prepared.pod) {
                        // The run key was set while the pod was created. This pod uses another log.
                        let retry = pod_deletion::delete(context, &fetched.job, &pod.metadata, None).await?;
                        return Ok(PodCreation::RetryAfter(retry.unwrap_or(CACHE_CATCH_UP_DELAY)));
                    }
                    started_pod(&pod, prepared)
                }
                Some(_) => PodCreation::NameTaken(TakenName { pod: name, attempt: prepared.attempt }),
                None => PodCreation::RetryAfter(CACHE_CATCH_UP_DELAY),
            })
        }
        Err(error) => wait_if_refused(Error::api(format!("create Pod {namespace}/{name}"))(error)),
    }
}

/// Applies the network policy of a Job. Returns why the pod cannot be created yet, if the policy is not in place.
async fn apply_policy(context: &Context, policy: &NetworkPolicy) -> Result<Option<PodCreation>, Error> {
    let (namespace, name) = (policy.namespace().unwrap_or_default(), policy.name_any());
    let known = context.caches.network_policies.get(&namespace, &name);
    let applied = context.applier.apply(policy, known.as_deref().and_then(KnownObject::full)).await?;
    let wait = |reason, why: String| {
        let wait = Wait::new(reason, format!("the NetworkPolicy {name} of the Job {why}"));
        Ok(Some(PodCreation::MustWait(wait)))
    };
    match applied {
        ApplyResult::Unchanged | ApplyResult::Written(_) | ApplyResult::CacheBehind | ApplyResult::Reverted(_) => {
            Ok(None)
        }
        ApplyResult::BeingDeleted => Ok(Some(PodCreation::RetryAfter(CACHE_CATCH_UP_DELAY))),
        ApplyResult::NameTaken | ApplyResult::Replaced => {
            wait(Reason::NameTaken, "has another owner and is left unchanged: delete or rename it".to_owned())
        }
        ApplyResult::Refused(why) => wait(Reason::Refused, format!("is refused by the API server: {why}")),
    }
}

/// The run key that a pod was created with, if the spec of its Job named it.
fn run_key_label(pod: &Pod) -> Option<&String> {
    pod.labels().get(names::LABEL_RUN_KEY)
}

/// Returns whether the stored Job is the one that the plan was made for. A Job that ended or was deleted since then
/// gets no pod.
async fn is_current(context: &Context, fetched: &FetchedJob) -> Result<bool, Error> {
    let api: Api<Job> = Api::namespaced(context.client.clone(), &fetched.namespace);
    let what = format!("read Job {}/{}", fetched.namespace, fetched.name);
    let stored = api.get_metadata_opt(&fetched.name).await.map_err(Error::api(what))?;
    Ok(stored.is_some_and(|stored| {
        stored.metadata.resource_version == fetched.job.metadata.resource_version && stored.uid() == fetched.job.uid()
    }))
}

fn started_pod(pod: &Pod, prepared: PreparedPod) -> PodCreation {
    let PreparedPod { pod: _, network_policy: _, attempt, revision, continued, approved_call, lowered_limits } =
        prepared;
    // An adopted pod may have been created for an earlier revision than the prepared one.
    let revision = revision_of(pod).unwrap_or(revision);
    match pod.uid() {
        None => PodCreation::RetryAfter(CACHE_CATCH_UP_DELAY),
        Some(uid) => PodCreation::Started(Box::new(StartedPod {
            pod: pod.name_any(),
            uid,
            attempt,
            revision,
            continued,
            approved_call,
            lowered_limits,
            created: pod.metadata.creation_timestamp.clone(),
        })),
    }
}

/// Returns a wait for a refusal that a person has to fix, for example because of an admission webhook, and an error for a
/// failure that may be temporary. The queue, or [`super::refused`], decides when the Job tries again.
fn wait_if_refused(error: Error) -> Result<PodCreation, Error> {
    let Some(why) = error.refusal() else { return Err(error) };
    if error.is_quota_refusal() {
        return Ok(PodCreation::MustWait(Wait::new(Reason::QuotaExceeded, queue::quota_message(why))));
    }
    Ok(PodCreation::MustWait(Wait::new(Reason::PodNotStarting, format!("the API server refuses the pod: {why}"))))
}

/// The wait of a Job whose namespace is suspended.
fn suspension_wait(namespace: &str) -> Wait {
    let annotation = names::ANNOTATION_SUSPEND;
    let message = format!(
        "no pod runs while the namespace {namespace} is suspended by its annotation {annotation}: \
         kubectl annotate namespace {namespace} {annotation}- resumes the Job"
    );
    Wait::new(Reason::Suspended, message)
}
