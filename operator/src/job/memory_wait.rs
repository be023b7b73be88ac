//! Decides whether the memory of the Skill has room for a new Job (`memory.softLimit`).

use super::fetch::FetchedJob;
use super::plan::Wait;
use crate::caches::Caches;
use crate::memory_limit::{MAX_AGE, describe, size, soft_limit};
use crate::status::reason_of;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::v1alpha1::{Job, JobStatus, MemoryUsage};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The interval for checking again whether another Job has measured the memory.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// Returns the wait of a Job that starts its first attempt, if the directory of its Skill is larger than the soft limit.
///
/// If the measurement is old, files may have been removed since. Then one Job starts: the one that has waited longest.
pub(super) fn wait(caches: &Caches, fetched: &FetchedJob, now: Timestamp) -> Option<Wait> {
    let FetchedJob { job, namespace, status, pods, skill, .. } = fetched;
    if status.attempt.is_some() || !pods.is_empty() {
        return None;
    }
    let skill = skill.as_ref()?.0.as_ref().ok()?;
    let (usage, limit) = (skill.status.as_ref()?.memory.as_ref()?, soft_limit(skill)?);
    if usage.bytes <= limit {
        return None;
    }
    let is_before = |other: &Job| comes_before(other, job, usage);
    let left = MAX_AGE - now.duration_since(usage.measured.0);
    let is_old = left <= SignedDuration::ZERO;
    if is_old && caches.jobs.select(namespace, |other| other.0.as_ref().is_ok_and(is_before)).is_empty() {
        return None;
    }
    let message = format!(
        "the memory of the Skill {} has {}, which is more than its memory.softLimit of {}, so no new Job starts. Raise the limit, or free \
         memory: delete finished Jobs, whose old logs are pruned then, or remove files from the directory. Every {} minutes, one Job \
         starts and measures again",
        job.spec.skill,
        describe(usage),
        size(limit),
        MAX_AGE.as_mins(),
    );
    let retry = if is_old { RETRY_INTERVAL } else { left };
    Some(Wait::new(Reason::SoftLimitReached, message).retry_after(retry))
}

/// Returns whether another Job of the Skill measures the memory first: it has started since the last measurement and has not ended, or
/// it has waited for longer.
fn comes_before(other: &Job, job: &Job, usage: &MemoryUsage) -> bool {
    let is_other = other.metadata.uid != job.metadata.uid && other.spec.skill == job.spec.skill;
    let Some(status) = other.status.as_ref().filter(|status| is_other && !status.is_terminal()) else { return false };
    if status.attempt.is_some() {
        return status.start_time.as_ref().is_some_and(|started| started.0 > usage.measured.0);
    }
    let age = |job: &Job| (job.metadata.creation_timestamp.clone(), job.metadata.uid.clone());
    waits_for_memory(status) && age(other) < age(job)
}

fn waits_for_memory(status: &JobStatus) -> bool {
    reason_of(&status.conditions, ConditionType::Reconciling) == Some(Reason::SoftLimitReached)
}

#[cfg(test)]
mod tests;
