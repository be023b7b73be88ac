//! What the operator and a worker cost.

use std::time::Duration;

use bloomery_e2e::harness::audit::{self, Asked};
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{cluster, figure, operator, refund_of, story};

/// Own writes of a Skill, once, with the tenant's memory claim (design section 7).
const SKILL: usize = 16 + 1;
/// Own writes of a Job of one attempt under 10 s.
const JOB: usize = 6;
/// Events of a Job.
const EVENTS: usize = 3;
/// How long nothing is written where nothing changes.
const QUIET: Duration = Duration::from_mins(1);
const OPERATOR_KIB: u64 = 40 * 1024;
const WORKER_KIB: u64 = 24 * 1024;

#[tokio::test]
async fn a_skill_and_a_job_cost_few_writes_and_then_none() {
    story(async |tenant| {
        if !cluster::is_local_or_says("the audit log") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17").hold(3, "measured")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let events_before = audit::own_events(&tenant.namespace);

        let job = tenant.job("refund").await;
        shop.model.until_held("measured").await;
        let worker = Process::of(&job.pod(1).await, "bloomery-worker").await.peak_kib();
        shop.model.release("measured").await;
        let status = job.succeeded().await;
        shop.refunded_once("A-17").await;

        let writes = audit::until_quiet(&tenant.namespace, QUIET, QUIET * 3).await;
        let (of_job, of_skill): (Vec<Asked>, Vec<Asked>) = writes.into_iter().partition(is_of_a_job);
        let events = audit::own_events(&tenant.namespace) - events_before;
        let operator = Process::of(&operator::ready_pod(&tenant.cluster).await, operator::PROGRAM).await.resident_kib();
        figure("own writes for a Skill and the memory claim (at most 17)", of_skill.len());
        figure("own writes for a Job of one attempt (at most 6)", of_job.len());
        figure("Events for a Job (at most 3)", events);
        figure("seconds of a Job at work", status.usage.map_or(0, |usage| usage.seconds));
        figure("worker at its peak (at most 24 MiB)", format!("{:.1} MiB", mib(worker)));
        figure("operator, with all that ran before (at most 40 MiB)", format!("{:.1} MiB", mib(operator)));
        assert!(of_skill.len() <= SKILL, "writes for the Skill: {}", audit::list(&of_skill));
        assert!(of_job.len() <= JOB, "writes for the Job: {}", audit::list(&of_job));
        assert!(events <= EVENTS, "{events} Events");
        assert!(worker <= WORKER_KIB, "the worker took {worker} KiB");
        assert!(operator <= OPERATOR_KIB, "the operator takes {operator} KiB");
    })
    .await;
}

fn is_of_a_job(asked: &Asked) -> bool {
    matches!(asked.resource.as_str(), "pods" | "skilljobs" | "skilljobs/status")
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
