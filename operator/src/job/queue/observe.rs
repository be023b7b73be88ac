//! Reads what the scheduler needs of Jobs.

use super::values::QueuedJob;
use crate::caches::Guarded;
use crate::context::Context;
use crate::job::validate::checked_status;
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
        created: job.metadata.creation_timestamp.as_ref().map(|created| created.0),
    }
}

/// Returns whether the operator has not checked the latest spec of a Skill yet.
pub(super) fn is_unchecked(skill: &Guarded<Skill>) -> bool {
    skill.0.as_ref().is_ok_and(|skill| checked_status(skill).is_none())
}

/// Returns whether the Skill of a Job exists and is not checked yet.
pub(super) fn is_skill_unchecked(context: &Context, job: &Job) -> bool {
    let namespace = job.namespace().unwrap_or_default();
    context.caches.skills.get(&namespace, &job.spec.skill).is_some_and(|skill| is_unchecked(&skill))
}
