//! The six stages of a conversation (design.md, section 4) with the Skill `cs-tier-1`, each with its outcome in the status.

use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::OutOfDomainAction;
use bloomery_e2e::harness::{Conversation, call, conversation, refund_of, say, story};
use serde_json::json;

/// Returns the turns of an agent that looks up where an order of the series `C` is.
fn tracking_of(order: &str) -> Conversation {
    let fields = json!({"order_id": order, "status": "in transit", "next_steps": ["Wait two more days."]});
    let answer = format!("Order {order} is in transit.\n```json\n{fields}\n```");
    let turns = [call("track_order", json!({"order_id": order})), say(&answer).after_result("in_transit")];
    conversation(order, turns).intent("intent_track", json!({"order_id": order}))
}

#[tokio::test]
async fn cs_tier_1_passes_all_six_stages() {
    let refund = refund_of("A-17")
        .intent("intent_refund", json!({"order_id": "A-17"}))
        .expect_system("Never be dismissive to frustrated customers")
        .ruling(json!({"passed": true, "score": 0.9, "reasons": []}))
        .polished("Good news: order A-17 is refunded!");
    story(async |tenant| {
        let shop = tenant.shop(&[refund]).await;
        tenant.skill("cs-tier-1").tier_one().await;
        let job = tenant.job("refund").goal("Refund order A-17, it arrived broken").await;
        let status = job.succeeded().await;

        let gates = status.gates.expect("the status has the outcomes of the gates");
        let intent = gates.intent.expect("the intent is in status");
        assert_eq!((intent.id.as_deref(), intent.out_of_domain), (Some("intent_refund"), false));
        assert_eq!(json!(intent.entities), json!({"order_id": "A-17"}));
        assert_eq!((gates.pre_tool.allowed, gates.pre_tool.denied, gates.pre_tool.held), (3, 0, 0));
        let [attempt] = gates.finalization.attempts.as_slice() else { panic!("{:?}", gates.finalization) };
        assert_eq!((attempt.passed, attempt.score, gates.finalization.skipped), (true, Some(0.9), false));
        let [workflow] = status.workflows.as_slice() else { panic!("{:?}", status.workflows) };
        assert_eq!(workflow.name, "Refund Processing");
        assert_eq!(workflow.done, ["verify_identity", "check_eligibility", "process_refund"]);
        assert!(workflow.required && workflow.open.is_empty(), "{workflow:?}");

        let result = status.result.expect("a Job that succeeded has a result");
        assert_eq!(result.text, "Good news: order A-17 is refunded!");
        assert!(result.polished && result.verified, "{result:?}");
        let calls = status.usage.expect("a Job has spent something").llm_calls;
        assert_eq!((calls.intent, calls.plan, calls.finalization, calls.polish), (1, 4, 1, 1));
        shop.assert_refunded_once("A-17").await;
        let log = job.logs(1).await;
        for event in ["intent.detected", "intent_refund", "passed, score 0.9", "reply.polished"] {
            assert!(log.contains(event), "kubectl logs should show `{event}`:\n{log}");
        }
    })
    .await;
}

#[tokio::test]
async fn cs_tier_1_tracks_an_order_without_a_refund_and_succeeds() {
    story(async |tenant| {
        let shop = tenant.shop(&[tracking_of("C-2")]).await;
        tenant.skill("cs-tier-1").tier_one().await;
        let status = tenant.job("track").goal("Where is my order C-2?").await.succeeded().await;
        let intent = status.gates.and_then(|gates| gates.intent).and_then(|intent| intent.id);
        assert_eq!(intent.as_deref(), Some("intent_track"));
        let [workflow] = status.workflows.as_slice() else { panic!("{:?}", status.workflows) };
        assert_eq!(workflow.open.len(), 3, "the customer asked for no refund: {workflow:?}");
        assert_eq!(shop.ledger.summary().await.effects, 0);
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_polished_answer_without_a_number_of_the_original_is_discarded() {
    let refund = refund_of("A-17").polished("Your order is refunded.");
    story(async |tenant| {
        let shop = tenant.shop(&[refund]).await;
        tenant.skill("cs-tier-1").tier_one().await;
        let status = tenant.job("refund").await.succeeded().await;
        let result = status.result.expect("a Job that succeeded has a result");
        assert_eq!((result.text.as_str(), result.polished), ("Order A-17 is refunded.", false));
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn a_goal_out_of_domain_ends_as_the_skill_declares_without_a_tool_call() {
    use OutOfDomainAction::{Escalate, Redirect, Refuse};
    let actions = [("redirect", Redirect), ("refuse", Refuse), ("escalate", Escalate)];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("weather", []).out_of_domain()]).await;
        for (name, action) in actions {
            tenant
                .skill(name)
                .tier_one()
                .with(|spec| {
                    let intents = spec.intents.as_mut().and_then(|intents| intents.out_of_domain.as_mut());
                    intents.expect("the Skill says what happens").action = action;
                })
                .await;
        }
        for (name, action) in actions {
            let job = tenant.job(name).for_skill(name).goal("What will the weather be?").await;
            let status = job.ended(OutcomeCode::OutOfDomain).await;
            let outcome = status.outcome.clone().expect("the Job has ended");
            assert_eq!(outcome.action, Some(action));
            assert!(outcome.message.contains("I can only help with orders and refunds"), "{}", outcome.message);
            let gates = status.gates.expect("the status has the outcomes of the gates");
            assert!(gates.intent.is_some_and(|intent| intent.out_of_domain && intent.id.is_none()));
            let usage = status.usage.expect("a Job has spent something");
            assert_eq!((usage.llm_calls.intent, usage.llm_calls.plan, usage.tool_calls), (1, 0, 0));
        }
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn an_unreadable_intent_is_requested_once_more_and_then_escalated() {
    let mended = refund_of("A-17")
        .stage("intent", json!({"say": "A refund, I think."}))
        .intent("intent_refund", json!({"order_id": "A-17"}));
    let unreadable = conversation("A-18", [])
        .stage("intent", json!({"say": "A refund, I think."}))
        .stage("intent", json!({"json": {"intent": "intent_refnud"}}));
    story(async |tenant| {
        let shop = tenant.shop(&[mended, unreadable]).await;
        tenant.skill("cs-tier-1").tier_one().await;
        let status = tenant.job("mended").await.succeeded().await;
        assert_eq!(status.usage.map(|usage| usage.llm_calls.intent), Some(2));
        let status = tenant.job("unreadable").goal("Refund order A-18").await.ended(OutcomeCode::UserNeeded).await;
        assert_eq!(status.usage.map(|usage| (usage.llm_calls.intent, usage.llm_calls.plan)), Some((2, 0)));
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}
