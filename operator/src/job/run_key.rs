//! Decides whether a Job may use its run key now. The key names the log, so at most one Job of a Skill uses it at a time.
//!
//! Two workers of one log do no harm, because the log cannot fork ([the event log](../../../docs/explanation/event-log.md)). But they
//! would stop each other again and again.

use super::fetch::FetchedJob;
use super::plan::Wait;
use crate::caches::Caches;
use crate::owned;
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::pod;
use bloomery_crds::v1alpha1::{Attempt, Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::SignedDuration;
use kube::core::ResourceExt;

/// The interval for checking again whether a key is in use. The end of the other Job does not wake this one.
const IN_USE_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// Returns the wait of a Job that starts its first attempt, if it may not use its run key now. A Job whose first pod exists already uses it.
pub(super) fn wait(caches: &Caches, fetched: &FetchedJob) -> Option<Wait> {
    let FetchedJob { job, namespace, status, pods, .. } = fetched;
    if !pods.is_empty() || status.attempt.as_ref().is_some_and(|attempt| is_attempt_of(attempt, job)) {
        return None;
    }
    let Some(key) = &job.spec.run_key else { return restored_wait(job) };
    let others = caches.jobs.select(namespace, |other| other.0.as_ref().is_ok_and(|other| holds_key_of(other, job)));
    let other = others.first().map(|other| format!("the Job {}", other.name_any()));
    let pod = || caches.pods.select(namespace, |pod| holds_key(pod, key, job)).first().map(|pod| pod_text(pod));
    let holder = other.or_else(pod)?;
    let message = format!("the run key {key} is in use by {holder}: this Job starts by itself once it is free");
    Some(Wait::new(Reason::RunKeyInUse, message).retry_after(IN_USE_RETRY_INTERVAL))
}

/// Returns whether a status was written for this Job, and not for the Job in a backup: a restore may write the old status. The name of a pod
/// contains the beginning of the UID.
fn is_attempt_of(attempt: &Attempt, job: &Job) -> bool {
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    attempt.pod == names::worker_pod(&job.name_any(), attempt.number, uid)
}

/// The wait of a Job that was restored from a backup without a run key. Its UID is new, so it would run from its beginning and repeat its effects.
fn restored_wait(job: &Job) -> Option<Wait> {
    let restore = job.labels().get(names::LABEL_RESTORED)?;
    // A Job with an attempt cannot get a key any more.
    let has_old_status = job.status.as_ref().is_some_and(|status| status.attempt.is_some());
    let set =
        if has_old_status { "Create it again without its status, and with spec.runKey" } else { "Set spec.runKey" };
    let message = format!(
        "the restore {restore} created this Job, and it has no run key, so it would run again from its beginning. {set}: the UID of \
         the Job in the backup continues that run, and any other value runs the Job again"
    );
    Some(Wait::new(Reason::RestoredWithoutRunKey, message))
}

/// Returns whether another Job uses the key of `job`, or will use it first: it has started, or it is older.
fn holds_key_of(other: &Job, job: &Job) -> bool {
    let is_other = other.metadata.uid != job.metadata.uid;
    let is_unfinished = !other.status.as_ref().is_some_and(JobStatus::is_terminal);
    let attempt = other.status.as_ref().and_then(|status| status.attempt.as_ref());
    let has_started = attempt.is_some_and(|attempt| is_attempt_of(attempt, other));
    let age = |job: &Job| (job.metadata.creation_timestamp.clone(), job.metadata.uid.clone());
    is_other
        && is_unfinished
        && other.spec.skill == job.spec.skill
        && other.run_key() == job.run_key()
        && (has_started || age(other) < age(job))
}

/// Returns whether a pod of another Job still runs with the key. That Job was deleted, or has ended.
fn holds_key(pod: &Pod, key: &str, job: &Job) -> bool {
    let labels = pod.labels();
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let has_key = match labels.get(names::LABEL_RUN_KEY) {
        Some(named) => named == key,
        None => owned::is_owned_by(&pod.metadata, key),
    };
    has_key
        && labels.get(names::LABEL_SKILL) == Some(&job.spec.skill)
        && !owned::is_owned_by(&pod.metadata, uid)
        && !pod::has_ended(pod)
}

fn pod_text(pod: &Pod) -> String {
    format!("the pod {}, whose Job has ended or was deleted", pod.name_any())
}

#[cfg(test)]
mod tests;
