//! Jobs that end because a budget is spent. Each budget has its outcome code and its message.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{Job, JobStatus, Limits, LogPosition};
use bloomery_e2e::harness::{JobHandle, Turn, call, conversation, eventually, refund_of, story};
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// Waits until the Job ends with `code` and a message that has all of `parts`. Checks that kstatus sees it as stalled.
async fn stalled(job: &JobHandle<'_>, code: OutcomeCode, parts: &[&str]) -> JobStatus {
    let status = job.ended(code).await;
    let message = status.outcome.as_ref().map(|outcome| outcome.message.clone()).unwrap_or_default();
    for part in parts {
        assert!(message.contains(part), "`{part}` should be said in: {message}");
    }
    let conditions = &status.conditions;
    let condition = conditions::find(conditions, ConditionType::Stalled).expect("a Job that failed is stalled");
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "Failed"), "{conditions:#?}");
    assert!(condition.message.contains(&message), "the outcome should be said in: {}", condition.message);
    let ready = conditions::find(conditions, ConditionType::Ready).expect("a Job is ready or not");
    assert_eq!(ready.status, "False", "{conditions:#?}");
    assert!(conditions::find(conditions, ConditionType::Reconciling).is_none(), "{conditions:#?}");
    status
}

#[tokio::test]
async fn a_job_ends_at_its_limit_of_steps() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("short").limits(Limits { steps: Some(2), ..Limits::default() }).await;
        let status = stalled(&job, OutcomeCode::StepLimit, &["answered 2 times", "limits.steps"]).await;
        assert_eq!(status.usage.map(|usage| usage.llm_calls.plan), Some(2));
        let LogPosition { events, .. } = status.log.expect("a Job that ran has a log");
        assert!(events > 0);
        assert_eq!(shop.ledger.summary().await.effects, 0, "the refund came after the limit");
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_job_ends_at_its_limit_of_tool_calls() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("short").limits(Limits { tool_calls: Some(2), ..Limits::default() }).await;
        let status = stalled(&job, OutcomeCode::ToolCallLimit, &["2 tool calls", "limits.toolCalls"]).await;
        let gate = status.gates.expect("the status has the outcomes of the gates").pre_tool;
        assert_eq!((gate.allowed, gate.denied), (2, 1));
        assert_eq!(status.usage.map(|usage| (usage.tool_calls, usage.llm_calls.plan)), Some((2, 3)));
        assert_eq!(shop.ledger.summary().await.effects, 0, "the refund was one too many");
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_job_ends_at_its_limit_of_tokens() {
    let costly_turn = call("check_eligibility", json!({"order_id": "A-17"})).with_usage(49_000, 500);
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", [costly_turn, Turn::answer("A-17")])]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("costly").limits(Limits { tokens: Some(50_000), ..Limits::default() }).await;
        let parts = ["49500 tokens are spent", "50000 of limits.tokens"];
        let status = stalled(&job, OutcomeCode::TokenLimit, &parts).await;
        let usage = status.usage.expect("a Job has spent something");
        assert_eq!((usage.input_tokens, usage.output_tokens), (49_000, 500));
        assert_eq!(usage.llm_calls.plan, 1, "no request follows that could exceed the limit");
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_job_ends_at_its_limit_of_duration() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(2, "for ever")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let duration = Some(std::time::Duration::from_secs(5).into());
        let job = tenant.job("slow").limits(Limits { duration, ..Limits::default() }).await;
        let status = stalled(&job, OutcomeCode::DurationLimit, &["5 s of work", "limits.duration"]).await;
        assert_eq!(
            status.attempt.map(|attempt| attempt.number),
            Some(1),
            "the worker ends the Job itself, in its first pod"
        );
        assert_eq!(shop.ledger.summary().await.effects, 0, "the refund came after the limit");
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_limit_that_is_lowered_reaches_the_running_worker() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(1, "lowering")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("lowered").await;
        shop.model.until_held("lowering").await;
        let lowered = Patch::Merge(json!({"spec": {"limits": {"steps": 2}}}));
        tenant.api::<Job>().patch("lowered", &PatchParams::default(), &lowered).await.expect("limits can be lowered");
        let raised = Patch::Merge(json!({"spec": {"limits": {"steps": 3}}}));
        let raised = tenant.api::<Job>().patch("lowered", &PatchParams::default(), &raised).await;
        assert!(raised.is_err(), "limits cannot be raised");
        // The worker is in its second request to the model, and gets the limits with its next report.
        eventually("the worker to receive the limits", async || {
            let log = job.logs(1).await;
            if log.contains("the limits of the Job were received") { Ok(()) } else { Err(log) }
        })
        .await;
        shop.model.release("lowering").await;
        let status = stalled(&job, OutcomeCode::StepLimit, &["answered 2 times", "limits.steps"]).await;
        assert_eq!(status.attempt.map(|attempt| attempt.number), Some(1), "it is the attempt that was running");
        assert!(job.all_logs(1).await.contains("limits.lowered"));
        assert_eq!(shop.ledger.summary().await.effects, 0, "the refund came after the limit");
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_job_whose_model_repeats_one_failing_call_is_stuck() {
    let again = || call("process_refund", json!({"order_id": "B-2", "amount": 1.0}));
    let turns = [
        again(),
        again().after_result("the return window is over"),
        again().after_result("failed 2 times"),
        Turn::answer("B-2"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("B-2", turns)]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("stuck").goal("Refund order B-2").await;
        let status = stalled(&job, OutcomeCode::Stuck, &["process_refund", "kept failing"]).await;
        assert_eq!(status.usage.map(|usage| (usage.tool_calls, usage.llm_calls.plan)), Some((3, 3)));
        assert_eq!(shop.ledger.summary().await.effects, 0);
        shop.model.assert_no_violations().await;
    })
    .await;
}
