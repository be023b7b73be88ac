//! Gates that hold or deny a call or return an answer to the model, and how the status shows it.

use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{FinalizationCode, GateReason, Verdict};
use bloomery_e2e::harness::{Turn, call, conversation, fails, refund_of, story};
use serde_json::json;

#[tokio::test]
async fn a_call_that_a_person_has_to_approve_ends_the_pod_and_waits() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-243"), refund_of("A-1")]).await;
        tenant.skill("cs-tier-1").tier_one().await;
        let job = tenant.job("large-refund").goal("Refund order A-243").await;
        let status = job.until_phase(Phase::AwaitingApproval).await;
        let call = status.waiting_for.and_then(|waiting| waiting.call).expect("the status has the call");
        assert_eq!(
            (call.tool.as_str(), call.approvers.as_slice()),
            ("process_refund", ["supervisor".to_owned()].as_slice()),
            "the approver of the rule of approvals also satisfies the tool's own policy"
        );
        assert!(call.reason.contains("amount > 500"), "{}", call.reason);
        let gate = status.gates.expect("the status has the outcomes of the gates").pre_tool;
        assert_eq!((gate.allowed, gate.denied, gate.held), (2, 0, 1));
        job.pods_have_ended().await;

        // Meanwhile another Job of the Skill runs to its end. The waiting Job does not change.
        tenant.job("cheap").goal("Refund order A-1").await.succeeded().await;
        let status = job.until("the status", |_| true).await;
        assert_eq!(status.phase, Some(Phase::AwaitingApproval));
        assert_eq!(
            status.attempt.map(|attempt| attempt.number),
            Some(1),
            "no attempt starts while the Job waits for people"
        );
        assert!(job.pods().await.len() <= 1);
        shop.assert_refunded_once("A-1").await;
        assert_eq!(shop.ledger.summary().await.effects, 1, "a held call is not made");
        job.delete().await;
        job.gone().await;
    })
    .await;
}

#[tokio::test]
async fn a_guardrail_denies_a_call_and_the_model_goes_on() {
    let turns = [
        call("track_order", json!({"order_id": "A-17"})),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("Never use track_order"),
        Turn::answer("A-17").after_result("eligible"),
    ];
    let conversation = conversation("A-17", turns).intent("intent_track", json!({"order_id": "A-17"}));
    story(async |tenant| {
        let shop = tenant.shop(&[conversation]).await;
        tenant
            .skill("cs-tier-1")
            .tier_one()
            .with(|spec| {
                let policy = spec.policy.as_mut().and_then(|policy| policy.guardrails.as_mut());
                policy.expect("the Skill has guardrails").never.push("Never use track_order".to_owned());
                spec.policy.as_mut().expect("the Skill has a policy").workflows.clear();
            })
            .await;
        let gate = tenant
            .job("denied")
            .await
            .succeeded()
            .await
            .gates
            .expect("the status has the outcomes of the gates")
            .pre_tool;
        let first = gate.last.first().expect("a ruling");
        assert_eq!((first.verdict, first.rule), (Verdict::Deny, Some(GateReason::Guardrail)), "{gate:#?}");
        assert!(first.reason.as_deref().unwrap_or_default().contains("Never use track_order"), "{first:?}");
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_fails_three_times_is_escalated() {
    let draft = || Turn::answer("A-17");
    let turns = [
        draft(),
        call("track_order", json!({"order_id": "A-17"})).after_feedback("refund"),
        draft(),
        call("check_eligibility", json!({"order_id": "A-17"})),
        draft(),
    ];
    let mut conversation = conversation("A-17", turns);
    for _ in 0..3 {
        conversation = conversation.ruling(fails("GOAL_NOT_MET", "no refund was made", "TOOL_CALL"));
    }
    story(async |tenant| {
        let shop = tenant.shop(&[conversation]).await;
        tenant.skill("cs-tier-1").await;
        let status = tenant.job("failing").await.ended(OutcomeCode::GateFailed).await;
        let gate = status.gates.expect("the status has the outcomes of the gates").finalization;
        assert_eq!((gate.attempts.len(), gate.form_errors, gate.passed), (3, 0, false));
        for attempt in &gate.attempts {
            assert_eq!(attempt.reasons[0].code, FinalizationCode::GoalNotMet, "{attempt:?}");
        }
        let draft = status.result.expect("the result has the draft");
        assert!(!draft.verified && !draft.polished, "{draft:?}");
        let calls = status.usage.expect("a Job has spent something").llm_calls;
        assert_eq!((calls.finalization, calls.polish), (3, 0));
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_disabled_gate_is_skipped_and_the_status_shows_it() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant
            .skill("cs-tier-1")
            .tier_one()
            .with(|spec| {
                let gate = spec.engine.as_mut().and_then(|engine| engine.finalization_gate.as_mut());
                gate.expect("the Skill has a gate").enabled = Some(false);
            })
            .await;
        let status = tenant.job("ungated").await.succeeded().await;
        let gate = status.gates.expect("the status has the outcomes of the gates").finalization;
        assert!(
            gate.skipped && gate.attempts.iter().all(|attempt| attempt.score.is_none()),
            "no model rules: {gate:?}"
        );
        assert_eq!(status.usage.map(|usage| usage.llm_calls.finalization), Some(0));
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}
