//! How many Jobs are in each phase, for metrics.

use crate::caches::Guarded;
use crate::context::Context;
use bloomery_crds::v1alpha1::Job;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often Jobs are counted: metrics are scraped no more often.
const EVERY: Duration = Duration::from_secs(15);

/// Counts now and then. It ends only when it is dropped.
pub(super) async fn keep(context: &Context) {
    loop {
        let counts = by_phase(&context.caches.jobs.store().state());
        context.metrics.jobs_by_phase(counts);
        tokio::time::sleep(EVERY).await;
    }
}

fn by_phase(jobs: &[Arc<Guarded<Job>>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for job in jobs.iter().filter_map(|job| job.0.as_ref().ok()) {
        let phase = job.status.as_ref().and_then(|status| status.phase).unwrap_or_default();
        *counts.entry(phase.to_string()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{job, status};
    use bloomery_crds::outcome::Phase;
    use kube::core::DeserializeGuard;

    #[test]
    fn a_job_without_a_status_is_pending() {
        let running = Job { status: Some(status(1, Phase::Running)), ..job() };
        let jobs = [running.clone(), running, job()].map(|job| Arc::new(DeserializeGuard(Ok(job))));
        assert_eq!(by_phase(&jobs), BTreeMap::from([("Pending".into(), 1), ("Running".into(), 2)]));
    }
}
