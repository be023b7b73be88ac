//! Metrics of Jobs: the number in each phase, and the time that they wait for people.

use crate::caches::Guarded;
use crate::context::Context;
use crate::metrics::Metrics;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{Job, JobStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The interval between two counts. Prometheus usually scrapes less often.
const COUNT_INTERVAL: Duration = Duration::from_secs(15);

/// Counts Jobs at an interval. The future ends only when it is dropped.
pub(super) async fn run(context: &Context) {
    loop {
        let jobs = context.caches.jobs.store().state();
        context.metrics.set_jobs_by_phase(count_by_phase(&jobs));
        context.metrics.set_longest_waits(longest_waits(&jobs, Timestamp::now()));
        tokio::time::sleep(COUNT_INTERVAL).await;
    }
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
    use crate::job::fixtures::{asked, at, job, status};

    #[test]
    fn a_job_without_a_status_is_pending() {
        let running = Job { status: Some(status(1, Phase::Running)), ..job() };
        let jobs = [running.clone(), running, job()].map(|job| Arc::new(Guarded(Ok(job))));
        assert_eq!(count_by_phase(&jobs), BTreeMap::from([("Pending".into(), 1), ("Running".into(), 2)]));
    }

    #[test]
    fn the_longest_wait_is_shown_and_each_wait_is_recorded_at_its_end() {
        let waits = |since| JobStatus { waiting_for: Some(asked(since)), ..status(1, Phase::AwaitingReply) };
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
