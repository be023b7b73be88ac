//! Jobs that wait for people without a pod, and resume after a decision.
//!
//! No call runs unapproved or twice, and the status says why the Job waits or has ended.

use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{ApprovalVerdict, JobStatus, SkillSpec};
use bloomery_e2e::harness::machine::{self, Process, SmallMemory};
use bloomery_e2e::harness::{
    Conversation, JobHandle, Shop, SkillHandle, Tenant, Turn, cluster, eventually, operator, story, supervised,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;

use crate::deciding::{approve_as_supervisor, large_refund, large_refund_then, parked_approval, supervisor};
use crate::faults::WORKER;
use crate::memory;

const ORDER: &str = "A-443";

/// Creates a shop, a Skill whose supervisor approves large refunds, and a Job that makes one.
async fn start_refund<'t>(
    tenant: &'t Tenant,
    order: &str,
    conversation: Conversation,
) -> (Shop, SkillHandle<'t>, JobHandle<'t>) {
    let shop = tenant.shop(&[conversation]).await;
    let skill = tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
    let job = tenant.job("large-refund").goal(&format!("Refund order {order}")).await;
    (shop, skill, job)
}

/// Does the same as [`start_refund`], for stories that do not change the Skill.
async fn start_refund_job<'t>(tenant: &'t Tenant, order: &str, conversation: Conversation) -> (Shop, JobHandle<'t>) {
    let (shop, _, job) = start_refund(tenant, order, conversation).await;
    (shop, job)
}

fn message(status: &JobStatus) -> String {
    status.outcome.as_ref().map(|outcome| outcome.message.clone()).unwrap_or_default()
}

/// Checks that the worker requested no turn of the main loop twice.
pub(crate) async fn assert_asked_once(shop: &Shop, job: &JobHandle<'_>) {
    let asked = shop.model.asked_by(&job.uid).await;
    assert!(asked.by_position.values().all(|times| *times == 1), "{asked:?}");
}

#[tokio::test]
async fn deleting_a_skill_ends_its_waiting_job_and_withdraws_the_approval() {
    story(async |tenant| {
        let (shop, skill, job) = start_refund(tenant, ORDER, large_refund(ORDER)).await;
        let approval = parked_approval(tenant, &job).await;
        skill.delete().await;
        skill.gone().await;
        let status = job.ended(OutcomeCode::SkillDeleted).await;
        assert!(message(&status).contains("the Skill was deleted"), "{}", message(&status));
        let withdrawn = tenant.until_counted(&approval).await;
        let decision = withdrawn.spec.decision.clone().expect("the operator has written a decision");
        assert_eq!(decision.verdict, ApprovalVerdict::Expired);
        assert!(decision.reason.is_some_and(|reason| reason.contains("Job")), "the reason names the Job");
        let late = supervisor(tenant, "jane@acme.io").await.decide(&withdrawn, "Approve", "").await;
        assert!(late.is_err_and(|why| why.contains("a decision is never changed")));
        assert_eq!(shop.ledger.summary().await.effects, 0);
    })
    .await;
}

#[tokio::test]
async fn a_waiting_job_keeps_its_revision_when_its_skill_changes() {
    story(async |tenant| {
        let (shop, skill, job) = start_refund(tenant, ORDER, large_refund(ORDER)).await;
        let first = skill.ready().await.revision.expect("a Skill that is ready has a revision");
        let approval = parked_approval(tenant, &job).await;
        let restated = |spec: &mut SkillSpec| "Refund nothing".clone_into(&mut spec.problem.statement);
        tenant.skill_of("cs-tier-1", supervised()).with_orders().with(restated).await;
        skill.until("another revision", |status| status.revision.as_ref().is_some_and(|it| *it != first)).await;
        approve_as_supervisor(tenant, &approval).await;
        assert_eq!(job.succeeded().await.skill_revision, Some(first));
        shop.assert_refunded_once(ORDER).await;
        assert_asked_once(&shop, &job).await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_call_that_waits_is_denied_if_its_skill_blocks_the_tool_meanwhile() {
    story(async |tenant| {
        let (shop, skill, job) = start_refund(tenant, ORDER, large_refund(ORDER)).await;
        let first = skill.ready().await.revision;
        let approval = parked_approval(tenant, &job).await;
        tenant.skill_of("cs-tier-1", supervised()).with_orders().blocking("process_refund").await;
        skill.until("another revision", |status| status.revision != first).await;
        approve_as_supervisor(tenant, &approval).await;
        let status = job.succeeded().await;
        let denied = status.gates.map(|gates| gates.pre_tool.denied);
        assert_eq!((status.skill_revision, denied), (first, Some(1)));
        assert_eq!(shop.ledger.summary().await.effects, 0);
    })
    .await;
}

#[tokio::test]
async fn a_waiting_job_resumes_with_the_rotated_key_of_its_model() {
    story(async |tenant| {
        let (old, new) = ("the-first-key-of-the-model", "the-second-key-of-the-model");
        let ledger = tenant.ledger().await;
        let model = tenant.model_server_with_key(&[large_refund(ORDER)], old).await;
        let shop = Shop { ledger, model };
        tenant.secret("llm", "token", old).await;
        tenant.model("default").with_key_from("llm", "token").await;
        tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
        let job = tenant.job("large-refund").goal(&format!("Refund order {ORDER}")).await;
        let approval = parked_approval(tenant, &job).await;
        tenant.change_model_key(new).await;
        tenant.secret("llm", "token", new).await;
        approve_as_supervisor(tenant, &approval).await;
        job.succeeded().await;
        shop.assert_refunded_once(ORDER).await;
        let asked = shop.model.asked_by(&job.uid).await;
        assert_eq!((asked.requests, asked.by_position.get(&2)), (1, Some(&1)), "once, with the new key: {asked:?}");
    })
    .await;
}

/// Fills the memory while a Job waits, then approves its call, so that the Job resumes without free space.
async fn resuming_with_a_full_memory(tenant: &Tenant) -> (SmallMemory, Shop, JobHandle<'_>) {
    let memory = SmallMemory::create(tenant).await;
    let (shop, job) = start_refund_job(tenant, ORDER, large_refund(ORDER)).await;
    let approval = parked_approval(tenant, &job).await;
    memory.fill();
    approve_as_supervisor(tenant, &approval).await;
    (memory, shop, job)
}

#[tokio::test]
async fn a_full_memory_ends_a_resuming_job_before_it_sends_its_call() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("a file system to fill") {
            return;
        }
        let (_memory, shop, job) = resuming_with_a_full_memory(tenant).await;
        let status = job.ended(OutcomeCode::CrashLoop).await;
        assert!(message(&status).contains("No space left"), "{}", message(&status));
        assert_eq!(shop.ledger.summary().await.effects, 0, "a call that is not in the log is not sent");
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_job_resumes_once_its_full_memory_has_room_again() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("a file system to fill") {
            return;
        }
        let (memory, shop, job) = resuming_with_a_full_memory(tenant).await;
        job.until("an attempt that found the memory full", |status| {
            status.attempt.as_ref().is_some_and(|attempt| attempt.number > 2)
        })
        .await;
        memory.clear();
        job.succeeded().await;
        shop.assert_refunded_once(ORDER).await;
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_pod_lost_before_its_approved_call_starts_needs_no_second_approval() {
    story(async |tenant| {
        let (shop, job) = start_refund_job(tenant, ORDER, large_refund(ORDER)).await;
        let approval = parked_approval(tenant, &job).await;
        approve_as_supervisor(tenant, &approval).await;
        // The pod is deleted as soon as it exists, before its worker starts.
        let pod = job.pod(2).await.name_any();
        let at_once = DeleteParams::default().grace_period(0);
        tenant.api::<Pod>().delete(&pod, &at_once).await.expect("the pod is deleted");
        let status = job.succeeded().await;
        assert_eq!(status.attempt.map(|attempt| attempt.number), Some(3), "the first decision is still valid");
        assert_eq!(tenant.approvals_of(&job).await.len(), 1);
        shop.assert_refunded_once(ORDER).await;
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

/// Returns a conversation whose last turn expects `result` as the text of the refund's result.
fn refund_with_result(order: &str, result: &str) -> Conversation {
    large_refund_then(order, Turn::answer(order).after_result(result))
}

/// Kills the worker of the second attempt inside its call, and answers the question whether the call happened.
async fn kill_during_the_call_and_answer(job: &JobHandle<'_>, found: &str) {
    Process::find(&job.pod(2).await, WORKER).await.kill();
    let asked = job.until_questions(1).await;
    assert_eq!(asked[0].choices, ["happened", "did not happen", "stop"]);
    assert!(asked[0].text.contains("process_refund"), "{}", asked[0].text);
    job.reply(Some(&asked[0].id), found).await;
    let status = job.succeeded().await;
    assert_eq!(status.attempt.map(|attempt| attempt.number), Some(4));
}

#[tokio::test]
async fn a_worker_killed_before_it_sends_its_approved_call_asks_a_person() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("SIGKILL of a worker") {
            return;
        }
        let (shop, job) = start_refund_job(tenant, ORDER, refund_with_result(ORDER, "It did not happen, as")).await;
        let approval = parked_approval(tenant, &job).await;
        let skill_dir = machine::memory(tenant).await.join("cs-tier-1");
        let server = tenant.orders_of("cs-tier-1").await;
        server.freeze();
        approve_as_supervisor(tenant, &approval).await;
        eventually("the call to be started", async || {
            let last = memory::log(&skill_dir, &job.uid).pop().unwrap_or_default();
            if last.contains(r#""type":"tool.started""#) { Ok(()) } else { Err(last) }
        })
        .await;
        let killed = async {
            kill_during_the_call_and_answer(&job, "did not happen").await;
        };
        let thawed = async {
            job.until_questions(1).await;
            server.thaw();
        };
        tokio::join!(killed, thawed);
        assert_eq!(shop.ledger.summary().await.effects, 0, "it was never sent");
        assert_asked_once(&shop, &job).await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_worker_killed_before_the_answer_of_its_approved_call_asks_a_person() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("SIGKILL of a worker") {
            return;
        }
        let (shop, job) = start_refund_job(tenant, "HOLD-443", refund_with_result("HOLD-443", "It happened, as")).await;
        let approval = parked_approval(tenant, &job).await;
        approve_as_supervisor(tenant, &approval).await;
        shop.ledger.until_refunded("HOLD-443").await;
        kill_during_the_call_and_answer(&job, "happened").await;
        shop.assert_refunded_once("HOLD-443").await;
        assert_asked_once(&shop, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_report_that_is_lost_when_the_job_parks_is_sent_by_the_next_attempt() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("disconnecting a pod") {
            return;
        }
        let (shop, job) =
            start_refund_job(tenant, ORDER, refund_with_result(ORDER, "refunded").hold(1, "thinking")).await;
        shop.model.until_held("thinking").await;
        let pod = job.pod(1).await;
        Process::find(&pod, WORKER).await.cut_off_from(&operator::address(&tenant.cluster).await);
        shop.model.release("thinking").await;
        job.until("the worker to give up sending its report, and another attempt to begin", |status| {
            status.attempt.as_ref().is_some_and(|attempt| attempt.number == 2)
        })
        .await;
        let approval = tenant.approval_for(&job, "supervisor").await;
        job.until_reason("AwaitingApproval", &[&approval.name_any(), "supervisor"]).await;
        assert_eq!(shop.ledger.summary().await.effects, 0, "a held call is not made");
        assert_asked_once(&shop, &job).await;
        approve_as_supervisor(tenant, &approval).await;
        job.succeeded().await;
        shop.assert_refunded_once(ORDER).await;
        assert_asked_once(&shop, &job).await;
    })
    .await;
}
