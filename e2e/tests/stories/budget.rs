//! The cost of the operator and of a worker: writes, Events and memory.

use std::time::Duration;

use bloomery_e2e::harness::audit::{self, AuditedRequest};
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{
    Tenant, Turn, call, cluster, conversation, figure, operator, refund_of, story, supervised,
};
use serde_json::json;

use crate::deciding::{large_refund, parked_approval, supervisor};

/// The maximum number of the operator's writes for a new Skill, its first probe and its network policies (design.md, section 7).
const MAX_SKILL_WRITES: usize = 16;
/// The maximum number of the operator's writes for the memory: the claim, its state and the size of the directory.
const MAX_MEMORY_WRITES: usize = 3;
/// The maximum number of the operator's writes for a Job that takes one attempt and less than 10 s.
const MAX_JOB_WRITES: usize = 6;
/// The maximum number of the operator's additional writes for a Job that parks and resumes.
const MAX_PARK_AND_RESUME_WRITES: usize = 6;
/// After this time without a write, all expected writes are done.
const SETTLE_TIME: Duration = Duration::from_secs(3);
/// The maximum number of Events of a Job.
const MAX_JOB_EVENTS: usize = 3;
/// The time for which an unchanged cluster must see no write.
const QUIET: Duration = Duration::from_mins(1);
/// The limit of the memory that the operator allocates. The resident pages of its program are not counted: the kernel can drop them, and an
/// unoptimized program has more of them than the whole operator of a release.
const OPERATOR_KIB: u64 = 20 * 1024;
/// The limit of the peak of a worker's resident memory.
const WORKER_KIB: u64 = 26 * 1024;

#[tokio::test]
async fn a_skill_and_a_job_cause_few_writes_and_then_none() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("the audit log") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17").hold(3, "measured")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let mut of_skill = audit::until_quiet(&tenant.namespace, SETTLE_TIME, QUIET).await;
        of_skill.retain(|write| write.resource != "persistentvolumeclaims");
        let events_before = audit::operator_events(&tenant.namespace);

        let job = tenant.job("refund").await;
        shop.model.until_held("measured").await;
        let worker = Process::find(&job.pod(1).await, "bloomery-worker").await.peak_kib();
        shop.model.release("measured").await;
        let status = job.succeeded().await;
        shop.assert_refunded_once("A-17").await;

        let writes = audit::until_quiet(&tenant.namespace, QUIET, QUIET * 3).await;
        let (of_job, others): (Vec<AuditedRequest>, Vec<AuditedRequest>) = writes.into_iter().partition(is_of_a_job);
        let of_memory = others.len() - of_skill.len();
        let events = audit::operator_events(&tenant.namespace) - events_before;
        let operator =
            Process::find(&operator::ready_pod(&tenant.cluster).await, operator::PROGRAM).await.anonymous_kib();
        figure("writes of the operator for a Skill until it is ready (at most 16)", of_skill.len());
        figure("writes of the operator for the memory (at most 3)", of_memory);
        figure("writes of the operator for a Job of one attempt (at most 6)", of_job.len());
        figure("Events for a Job (at most 3)", events);
        figure("working time of the Job in seconds", status.usage.map_or(0, |usage| usage.seconds));
        figure("peak memory of the worker (at most 26 MiB)", format!("{:.1} MiB", mib(worker)));
        figure(
            "memory of the operator without its program, after all stories before this one (at most 20 MiB)",
            format!("{:.1} MiB", mib(operator)),
        );
        assert!(of_skill.len() <= MAX_SKILL_WRITES, "writes for the Skill: {}", audit::list(&of_skill));
        assert!(of_memory <= MAX_MEMORY_WRITES, "writes for the Skill and the memory: {}", audit::list(&others));
        assert!(of_job.len() <= MAX_JOB_WRITES, "writes for the Job: {}", audit::list(&of_job));
        assert!(events <= MAX_JOB_EVENTS, "{events} Events");
        assert!(worker <= WORKER_KIB, "the worker took {worker} KiB");
        assert!(operator <= OPERATOR_KIB, "the operator allocates {operator} KiB");
    })
    .await;
}

/// Waits until the expected writes are done, and returns the number of all writes in the tenant so far.
async fn settled_writes(tenant: &Tenant) -> usize {
    audit::until_quiet(&tenant.namespace, SETTLE_TIME, QUIET).await.len()
}

#[tokio::test]
async fn a_job_that_parks_and_resumes_causes_few_writes() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("the audit log") {
            return;
        }
        let hold = |turn: Turn, name: &str| turn.fault(json!({ "hold": name }));
        let asks = [
            hold(call("ask_user", json!({"text": "Which order?"})), "asking"),
            hold(Turn::answer("A-17").after_result("A-17"), "answered"),
        ];
        let large = large_refund("A-443").hold(1, "holding").hold(2, "decided");
        let shop = tenant.shop(&[conversation("my money", asks), large]).await;
        tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
        let jane = supervisor(tenant, "jane@acme.io").await;

        let job = tenant.job("asks").goal("I want my money back").await;
        shop.model.until_held("asking").await;
        let before = settled_writes(tenant).await;
        shop.model.release("asking").await;
        job.until_questions(1).await;
        job.pods_have_ended().await;
        job.reply(Some("q-1"), "A-17").await;
        shop.model.until_held("answered").await;
        let by_reply = settled_writes(tenant).await - before;
        shop.model.release("answered").await;
        job.succeeded().await;

        let job = tenant.job("large-refund").goal("Refund order A-443").await;
        shop.model.until_held("holding").await;
        let before = settled_writes(tenant).await;
        shop.model.release("holding").await;
        let approval = parked_approval(tenant, &job).await;
        jane.decide(&approval, "Approve", "").await.expect("the decision is accepted");
        shop.model.until_held("decided").await;
        let by_decision = settled_writes(tenant).await - before;
        shop.model.release("decided").await;
        job.succeeded().await;
        shop.assert_refunded_once("A-443").await;

        figure("writes of the operator to park, and to resume with a reply (at most 6)", by_reply);
        figure("writes of the operator to park, and to resume with a decision (at most 6)", by_decision);
        let all = audit::list(&audit::operator_writes(&tenant.namespace));
        assert!(
            by_reply <= MAX_PARK_AND_RESUME_WRITES && by_decision <= MAX_PARK_AND_RESUME_WRITES,
            "{by_reply} and {by_decision}: {all}"
        );
    })
    .await;
}

fn is_of_a_job(asked: &AuditedRequest) -> bool {
    !asked.is_of_probe() && matches!(asked.resource.as_str(), "pods" | "skilljobs" | "skilljobs/status")
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
