//! Handles the surveys of workers: records the size of a Skill's directory, and answers which logs no Job needs.

use crate::caches::{Caches, Guarded};
use crate::context::Context;
use crate::memory_limit::soft_limit;
use bloomery_crds::report::{MAX_PRUNABLE, MemorySurvey, Report};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{DirectoryUsage, Job, JobStatus, MemoryUsage, Skill};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::ResourceExt;
use std::collections::BTreeSet;

/// The time after which a changed size is written. A size that reaches the soft limit, or falls below it, is written at once.
const WRITE_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// Writes the survey of a report into the status of the Job's Skill, if the size has changed. A failure is only logged: the next worker
/// measures again.
pub async fn record(context: &Context, job: &Job, report: &Report) {
    let Some(survey) = &report.memory else { return };
    let Some(cached) = context.caches.skills.get(&report.job.namespace, &job.spec.skill) else { return };
    let Ok(skill) = &cached.0 else { return };
    let now = Timestamp::now();
    let mut status = skill.status.clone().unwrap_or_default();
    if skill.metadata.deletion_timestamp.is_some() || !is_worth_a_write(status.memory.as_ref(), survey, skill, now) {
        return;
    }
    status.memory = Some(usage(survey, now));
    if let Err(error) = context.statuses.replace(skill, status).await {
        let skill = skill.name_any();
        tracing::info!(namespace = report.job.namespace, skill, %error, "the size of the Skill's memory is not recorded");
    }
}

fn is_worth_a_write(recorded: Option<&MemoryUsage>, survey: &MemorySurvey, skill: &Skill, now: Timestamp) -> bool {
    let Some(recorded) = recorded else { return true };
    let is_above = |bytes| soft_limit(skill).is_some_and(|limit| bytes > limit);
    let age = now.duration_since(recorded.measured.0);
    if is_above(recorded.bytes) != is_above(survey.bytes) {
        return true;
    }
    // Above the limit, the time of the measurement decides when the next Job starts.
    age >= WRITE_INTERVAL && (recorded.bytes != survey.bytes || is_above(survey.bytes))
}

fn usage(survey: &MemorySurvey, now: Timestamp) -> MemoryUsage {
    let directories = survey.directories.iter().take(MemoryUsage::MAX_DIRECTORIES).map(|directory| DirectoryUsage {
        name: bounded(&directory.name, DirectoryUsage::MAX_NAME_BYTES),
        bytes: directory.bytes,
    });
    MemoryUsage { bytes: survey.bytes, directories: directories.collect(), measured: Time(now) }
}

/// Returns the run keys of a survey whose logs no Job needs: no Job of the Skill has the key, and no unfinished one continues its run.
/// A Job that this version cannot read may need any of them.
pub fn unneeded_logs(caches: &Caches, job: &Job, report: &Report) -> Vec<String> {
    let Some(survey) = report.memory.as_ref().filter(|survey| !survey.prunable.is_empty()) else { return Vec::new() };
    let jobs = caches.jobs.select(&report.job.namespace, |_| true);
    let Some(needed) = needed_keys(jobs.iter().map(AsRef::as_ref), &job.spec.skill) else { return Vec::new() };
    survey.prunable.iter().take(MAX_PRUNABLE).filter(|key| !needed.contains(key.as_str())).cloned().collect()
}

/// Returns the run keys whose logs the Jobs of a Skill need; none if one of the Jobs cannot be read.
fn needed_keys<'a>(jobs: impl Iterator<Item = &'a Guarded<Job>>, skill: &str) -> Option<BTreeSet<String>> {
    let mut needed = BTreeSet::new();
    for job in jobs {
        let job = job.0.as_ref().ok()?;
        if job.spec.skill != skill {
            continue;
        }
        needed.extend(job.run_key().map(Into::into));
        let status = job.status.as_ref().filter(|status| !status.is_terminal());
        needed.extend(status.and_then(continued_key));
    }
    Some(needed)
}

/// Returns the run key of the Job that a started Job continues.
fn continued_key(status: &JobStatus) -> Option<String> {
    status.continued_run_key.clone().or_else(|| status.continued_uid.clone())
}

#[cfg(test)]
mod tests;
