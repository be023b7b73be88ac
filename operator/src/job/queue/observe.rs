//! Reads what the scheduler needs of Jobs.

use super::values::QueuedJob;
use bloomery_crds::v1alpha1::Job;
use kube::core::ResourceExt;

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
