//! Reads what the scheduler needs of Jobs.

use super::values::QueuedJob;
use crate::caches::Guarded;
use crate::job::fetch::FetchedJob;
use crate::status::checked_status;
use bloomery_crds::v1alpha1::{Job, Skill};
use kube::core::ResourceExt;

/// The Job as the scheduler knows it.
pub(super) fn queued_job(job: &Job) -> QueuedJob {
    QueuedJob {
        namespace: job.namespace().unwrap_or_default(),
        skill: job.spec.skill.clone(),
        name: job.name_any(),
        uid: job.uid().unwrap_or_default(),
        has_started: job.status.as_ref().is_some_and(|status| status.attempt.is_some()),
        is_child: job.spec.parent.is_some(),
        created: job.metadata.creation_timestamp.as_ref().map(|created| created.0),
    }
}

/// Returns whether the operator has not checked the latest spec of a Skill yet.
pub(super) fn is_unchecked(skill: &Guarded<Skill>) -> bool {
    skill.0.as_ref().is_ok_and(|skill| checked_status(skill).is_none())
}

/// Returns whether a Job that never started waits until its Skill is checked.
pub(super) fn waits_for_check(fetched: &FetchedJob) -> bool {
    fetched.status.skill_revision.is_none() && fetched.skill.as_deref().is_some_and(is_unchecked)
}
