//! Reads what the scheduler needs of Jobs and pods.

use super::values::QueuedJob;
use bloomery_crds::v1alpha1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt;

/// Returns whether the containers of a pod have ended, so that it has no place and does not count towards a quota.
pub(super) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The Job as the scheduler knows it.
pub(super) fn queued_job(job: &Job) -> QueuedJob {
    QueuedJob {
        namespace: job.namespace().unwrap_or_default(),
        skill: job.spec.skill.clone(),
        name: job.name_any(),
        uid: job.uid().unwrap_or_default(),
        has_started: job.status.as_ref().is_some_and(|status| status.attempt.is_some()),
        created: job.metadata.creation_timestamp.as_ref().map(|created| created.0),
    }
}
