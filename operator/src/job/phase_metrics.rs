//! Metrics of Jobs, Skills and Models that the leader computes, and the time that Jobs wait for people.

use super::queue::{Queue, QueueLength};
use crate::caches::Guarded;
use crate::context::Context;
use crate::metrics::{Counts, Metrics, QueuedJobs, SkillKey};
use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{Job, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The interval between two counts. Prometheus usually scrapes less often.
const COUNT_INTERVAL: Duration = Duration::from_secs(15);

/// Counts objects at an interval. The future ends only when it is dropped, and then removes the gauges.
pub(super) async fn run(context: &Context, queue: &Queue) {
    let _clear = ClearCounts(&context.metrics);
    loop {
        let jobs = context.caches.jobs.store().state();
        let skills = context.caches.skills.store().state();
        let models = context.caches.models.store().state();
        context.metrics.set_counts(&Counts {
            jobs: count_by_phase(&jobs),
            waiting_jobs: count_waiting(&jobs),
            queued_jobs: queue.lengths().into_iter().map(queued_jobs).collect(),
            longest_waits: longest_waits(&jobs, Timestamp::now()),
            skills: count_by_ready(
                skills
                    .iter()
                    .filter_map(|skill| skill.0.as_ref().ok())
                    .map(|skill| skill.status.as_ref().map_or(&[][..], |status| &status.conditions)),
            ),
            models: count_by_ready(
                models
                    .iter()
                    .filter_map(|model| model.0.as_ref().ok())
                    .map(|model| model.status.as_ref().map_or(&[][..], |status| &status.conditions)),
            ),
        });
        tokio::time::sleep(COUNT_INTERVAL).await;
    }
}

fn queued_jobs(length: QueueLength) -> QueuedJobs {
    let QueueLength { namespace, skill, waiting, waits_for, position } = length;
    QueuedJobs { skill_key: SkillKey { namespace, skill }, waits_for, count: waiting, position }
}

/// Removes the gauges when this replica stops leading, because it no longer updates them.
struct ClearCounts<'a>(&'a Metrics);

impl Drop for ClearCounts<'_> {
    fn drop(&mut self) {
        self.0.clear_counts();
    }
}

/// Counts objects by the status of their condition `Ready`.
fn count_by_ready<'a>(objects: impl Iterator<Item = &'a [Condition]>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for conditions in objects {
        let ready = conditions::find(conditions, ConditionType::Ready).map_or("Unknown", |ready| &ready.status);
        *counts.entry(ready.to_owned()).or_default() += 1;
    }
    counts
}

/// Counts the Jobs that have no running worker and have not ended, by the reason of their condition `Ready`.
fn count_waiting(jobs: &[Arc<Guarded<Job>>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for status in jobs.iter().filter_map(|job| job.0.as_ref().ok()?.status.as_ref()) {
        let waits = status.phase.is_none_or(|phase| {
            let waits_for_key = status.attempt.as_ref().is_some_and(|attempt| attempt.waiting_for_key.is_some());
            phase.is_waiting()
                || matches!(phase, Phase::Pending | Phase::Queued | Phase::Starting)
                || (phase == Phase::Running && waits_for_key)
        });
        if let Some(ready) = conditions::find(&status.conditions, ConditionType::Ready).filter(|_| waits) {
            *counts.entry(ready.reason.clone()).or_default() += 1;
        }
    }
    counts
}

fn count_by_phase(jobs: &[Arc<Guarded<Job>>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for job in jobs.iter().filter_map(|job| job.0.as_ref().ok()) {
        let phase = job.status.as_ref().and_then(|status| status.phase).unwrap_or_default();
        *counts.entry(phase.to_string()).or_default() += 1;
    }
    counts
}

/// For each phase in which Jobs wait for people: the seconds that the longest-waiting one has waited.
fn longest_waits(jobs: &[Arc<Guarded<Job>>], now: Timestamp) -> BTreeMap<String, i64> {
    let mut longest = BTreeMap::new();
    for status in jobs.iter().filter_map(|job| job.0.as_ref().ok()?.status.as_ref()) {
        if let Some((phase, waited)) = current_wait(status, now) {
            let longest_of_phase: &mut i64 = longest.entry(phase.to_string()).or_default();
            *longest_of_phase = waited.as_secs().max(*longest_of_phase);
        }
    }
    longest
}

/// Records the waiting time of a Job that has stopped waiting for people.
pub(super) fn observe_wait(metrics: &Metrics, before: &JobStatus, after: &JobStatus, now: Timestamp) {
    if let Some((phase, waited)) = current_wait(before, now)
        && after.phase != Some(phase)
    {
        metrics.observe_wait(&phase.to_string(), waited.as_secs_f64());
    }
}

/// The phase in which a Job waits for people, and its waiting time so far; none if it does not wait. Never negative,
/// even if the clock was set back.
fn current_wait(status: &JobStatus, now: Timestamp) -> Option<(Phase, SignedDuration)> {
    let phase = status.phase.filter(|phase| phase.awaits_people())?;
    let since = status.waiting_for.as_ref()?.since.as_ref()?;
    Some((phase, now.duration_since(since.0).max(SignedDuration::ZERO)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::Guarded;
    use crate::job::fixtures::api::FakeApi;
    use crate::job::fixtures::{asked, at, job, status};
    use bloomery_crds::v1alpha1::SecretKeyRef;

    #[tokio::test]
    async fn the_counts_are_shown_until_this_replica_stops_counting() {
        let (context, queue) = (FakeApi::default().operator().await, Queue::default());
        let has_counts = || context.metrics.to_text().contains("bloomery_jobs{");
        let mut counting = Box::pin(run(&context, &queue));
        assert!(!has_counts());
        assert!(futures::poll!(&mut counting).is_pending());
        assert!(has_counts());
        drop(counting);
        assert!(!has_counts());
    }

    #[test]
    fn a_job_without_a_status_is_pending() {
        let running = Job { status: Some(status(1, Phase::Running)), ..job() };
        let jobs = [running.clone(), running, job()].map(|job| Arc::new(Guarded(Ok(job))));
        assert_eq!(count_by_phase(&jobs), BTreeMap::from([("Pending".into(), 1), ("Running".into(), 2)]));
    }

    #[test]
    fn waiting_jobs_are_counted_by_reason_and_skills_by_readiness() {
        let condition = |reason: &str| {
            serde_json::from_value::<Condition>(serde_json::json!({
                "type": "Ready", "status": "False", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"
            }))
            .unwrap()
        };
        let with_reason = |phase, reason| {
            let conditions = vec![condition(reason)];
            Arc::new(Guarded(Ok(Job { status: Some(JobStatus { conditions, ..status(1, phase) }), ..job() })))
        };
        let mut without_key = JobStatus { conditions: vec![condition("SecretMissing")], ..status(1, Phase::Running) };
        let key = SecretKeyRef { name: "llm".into(), key: "token".into() };
        without_key.attempt.as_mut().unwrap().waiting_for_key = Some(key);
        let jobs = [
            with_reason(Phase::Pending, "SkillNotFound"),
            with_reason(Phase::Queued, "SkillNotFound"),
            with_reason(Phase::Running, "Running"),
            Arc::new(Guarded(Ok(Job { status: Some(without_key), ..job() }))),
            with_reason(Phase::Failed, "Stuck"),
        ];
        let counts = BTreeMap::from([("SecretMissing".into(), 1), ("SkillNotFound".into(), 2)]);
        assert_eq!(count_waiting(&jobs), counts);
        let conditions = [vec![condition("ModelNotReady")], Vec::new()];
        let counts = count_by_ready(conditions.iter().map(Vec::as_slice));
        assert_eq!(counts, BTreeMap::from([("False".into(), 1), ("Unknown".into(), 1)]));
    }

    #[test]
    fn the_longest_wait_is_shown_and_each_wait_is_recorded_at_its_end() {
        let waits = |since| JobStatus { waiting_for: Some(asked(since).into()), ..status(1, Phase::AwaitingReply) };
        let jobs = [10, 40, 20].map(|since| Job { status: Some(waits(since)), ..job() });
        let jobs = jobs.map(|job| Arc::new(Guarded(Ok(job))));
        assert_eq!(longest_waits(&jobs, at(100)), BTreeMap::from([("AwaitingReply".into(), 90)]));
        assert_eq!(longest_waits(&jobs, at(0)), BTreeMap::from([("AwaitingReply".into(), 0)]));
        let metrics = Metrics::new();
        observe_wait(&metrics, &waits(10), &waits(10), at(100));
        observe_wait(&metrics, &status(1, Phase::Running), &status(1, Phase::Queued), at(100));
        assert!(!metrics.to_text().contains("waited_seconds_sum{"));
        observe_wait(&metrics, &waits(10), &status(2, Phase::Starting), at(100));
        assert!(metrics.to_text().contains(r#"waited_seconds_sum{phase="AwaitingReply"} 90"#));
    }
}
