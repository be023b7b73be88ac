//! Jobs that people cancel, namespaces that they suspend, and Jobs that are deleted after their retention.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{ApprovalVerdict, JobStatus};
use bloomery_e2e::harness::{JobHandle, Shop, Tenant, call, cluster, conversation, machine, refund_of, story};
use serde_json::json;

use crate::memory;

fn message(status: &JobStatus) -> String {
    status.outcome.as_ref().map(|outcome| outcome.message.clone()).unwrap_or_default()
}

/// Returns whether kstatus reports a Job as Current. A cancelled Job is Current, because a person wanted this end.
fn is_ready(status: &JobStatus) -> bool {
    conditions::is_true(&status.conditions, ConditionType::Ready)
        && conditions::find(&status.conditions, ConditionType::Reconciling).is_none()
}

#[tokio::test]
async fn a_job_cancelled_during_a_call_reports_that_its_result_is_unknown() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("HOLD-7")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("Refund order HOLD-7").await;
        shop.ledger.until_refunded("HOLD-7").await;
        job.cancel().await;
        let status = job.ended(OutcomeCode::Cancelled).await;
        assert!(is_ready(&status), "{:?}", status.conditions);
        let message = message(&status);
        assert!(message.contains("process_refund") && message.contains("find out whether it happened"), "{message}");
        assert_eq!(status.attempt.map(|attempt| attempt.number), Some(1));
        job.pods_have_ended().await;
        let log = job.logs(1).await;
        let at = |event: &str| log.find(event).unwrap_or_else(|| panic!("{event} should be in:\n{log}"));
        assert!(at("directive.received") < at("tool.indeterminate"), "{log}");
        assert!(at("tool.indeterminate") < at("finished"), "{log}");
        shop.assert_refunded_once("HOLD-7").await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_job_whose_skill_is_deleted_during_a_call_reports_the_call() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("HOLD-8")]).await;
        let skill = tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("Refund order HOLD-8").await;
        shop.ledger.until_refunded("HOLD-8").await;
        skill.delete().await;
        let status = job.ended(OutcomeCode::SkillDeleted).await;
        let message = message(&status);
        // The Skill's server is deleted too. Whether the worker sees that first or loses its call, the message names the Skill.
        assert!(message.contains("the Skill was deleted") && message.contains("process_refund"), "{message}");
        job.pods_have_ended().await;
        let log = job.logs(1).await;
        assert!(log.contains("tool.indeterminate"), "{log}");
        shop.assert_refunded_once("HOLD-8").await;
    })
    .await;
}

#[tokio::test]
async fn a_job_cancelled_while_its_model_thinks_sends_no_more_requests() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(3, "thinking")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").await;
        shop.model.until_held("thinking").await;
        job.cancel().await;
        let status = job.ended(OutcomeCode::Cancelled).await;
        assert_eq!(message(&status), "The Job was cancelled.");
        shop.model.release("thinking").await;
        job.pods_have_ended().await;
        assert_eq!(job.pods().await.len(), 1, "no attempt follows");
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn cancelling_a_job_that_waits_for_approval_withdraws_the_approval() {
    story(async |tenant| {
        let order = "A-443";
        let refund = call("process_refund", json!({"order_id": order, "amount": 901.9}));
        let shop = tenant.shop(&[conversation(order, [refund])]).await;
        tenant
            .skill("cs-tier-1")
            .with(|spec| {
                let held = json!({"toolId": "process_refund", "action": "require_approval", "approver": "supervisor"});
                spec.policy = Some(serde_json::from_value(json!({"approvals": [held]})).expect("a policy"));
            })
            .await;
        let job = tenant.job("large-refund").goal(&format!("Refund order {order}")).await;
        job.until_phase(Phase::AwaitingApproval).await;
        let approval = tenant.approval_for(&job, "supervisor").await;
        job.pods_have_ended().await;
        job.cancel().await;
        let status = job.ended(OutcomeCode::Cancelled).await;
        assert_eq!((message(&status).as_str(), status.waiting_for), ("The Job was cancelled.", None));
        let withdrawn = tenant.until_counted(&approval).await;
        let decision = withdrawn.spec.decision.clone().expect("the operator has written a decision");
        assert_eq!(
            (decision.verdict, decision.reason.as_deref()),
            (ApprovalVerdict::Expired, Some("the Job was cancelled"))
        );
        tenant.grant_approval("jane@acme.io", &["supervisor"]).await;
        let refused = tenant.person("jane@acme.io").await.decide(&withdrawn, "Approve", "").await;
        assert!(refused.is_err_and(|why| why.contains("a decision is never changed")));
        assert_eq!(shop.ledger.summary().await.effects, 0);
        assert_eq!(job.pods().await.len(), 1, "no attempt follows");
    })
    .await;
}

#[tokio::test]
async fn a_job_that_waits_for_its_skill_is_cancelled() {
    story(async |tenant| {
        let job = tenant.job("refund").await;
        job.until_reason("SkillNotFound", &[]).await;
        job.cancel().await;
        let status = job.ended(OutcomeCode::Cancelled).await;
        assert!(status.attempt.is_none() && is_ready(&status));
    })
    .await;
}

/// Starts a Job, and suspends the namespace while the model works on the last answer.
async fn suspended(tenant: &Tenant) -> (Shop, JobHandle<'_>) {
    let shop = tenant.shop(&[refund_of("A-17").hold(3, "thinking")]).await;
    tenant.skill("cs-tier-1").await;
    let job = tenant.job("refund").await;
    shop.model.until_held("thinking").await;
    tenant.suspend(true).await;
    job.until_reason("Suspended", &[&tenant.namespace, "bloomery.dev/suspend"]).await;
    (shop, job)
}

#[tokio::test]
async fn a_suspended_namespace_runs_nothing_and_its_jobs_resume_afterwards() {
    story(async |tenant| {
        let (shop, job) = suspended(tenant).await;
        let status = job.until_phase(Phase::Queued).await;
        assert_eq!(status.attempt.map(|attempt| attempt.number), Some(1));
        job.pods_have_ended().await;
        let late = tenant.job("late").await;
        late.until_reason("Suspended", &[&tenant.namespace]).await;
        assert_eq!((job.pods().await.len(), late.pods().await.len()), (1, 0));
        // A suspended Job can still be cancelled.
        late.cancel().await;
        late.ended(OutcomeCode::Cancelled).await;

        shop.model.release("thinking").await;
        tenant.suspend(false).await;
        let status = job.succeeded().await;
        assert_eq!(status.attempt.map(|attempt| attempt.number), Some(2));
        shop.assert_refunded_once("A-17").await;
        let asked = shop.model.asked_by(&job.uid).await;
        for turn in 0..3 {
            assert_eq!(asked.by_position.get(&turn), Some(&1), "turn {turn} was answered and logged before: {asked:?}");
        }
        assert!(job.logs(1).await.contains("directive.received"));
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn an_ended_job_is_deleted_after_its_ttl_and_its_log_is_kept() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17"), refund_of("A-18")]).await;
        tenant.skill("cs-tier-1").await;
        let kept = tenant.job("kept").goal("Refund order A-18").lasting(86_400).await;
        let brief = tenant.job("refund").lasting(0).await;
        brief.gone().await;
        kept.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        if cluster::is_local_or_skips("the volume") {
            let skill_dir = machine::memory(tenant).await.join("cs-tier-1");
            assert!(memory::jobs(&skill_dir).contains(&brief.uid), "its log stays");
        }
    })
    .await;
}
