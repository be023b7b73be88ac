use crate::fixture::checks::*;
use crate::fixture::staged::*;
use crate::fixture::*;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::Stage;
use rstest::rstest;
use serde_json::json;

#[test]
fn a_workflow_that_does_not_name_the_intent_need_not_be_complete() {
    let answers = vec![asks(&[("verify_identity", order())]), answer("It is on its way.")];
    let world =
        staged_world(cs_tier_1(), answers, &[(Stage::Intent, &[TRACK]), (Stage::Polish, &["It is on its way."])]);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(status(&world).workflows[0].open, ["check_eligibility", "process_refund"]);
}

#[rstest]
#[case::redirect("redirect", Phase::Refused)]
#[case::refuse("refuse", Phase::Refused)]
#[case::escalate("escalate", Phase::Escalated)]
fn a_goal_out_of_domain_ends_as_the_skill_says(#[case] action: &str, #[case] phase: Phase) {
    let mut skill = cs_tier_1();
    skill.intents.as_mut().unwrap().out_of_domain =
        serde_json::from_value(json!({"action": action, "message": "I can only help with orders and refunds"}))
            .unwrap();
    let elsewhere = r#"{"intent": null}"#;
    let world = staged_world(skill, vec![], &[(Stage::Intent, &[elsewhere])]);
    let outcome = world.conversation.outcome().unwrap();
    assert_eq!((outcome.code, outcome.phase()), (OutcomeCode::OutOfDomain, phase));
    assert_eq!(outcome.message, "I can only help with orders and refunds");
    assert_eq!(world.asked, 0);
}

#[test]
fn an_intent_that_cannot_be_read_is_asked_for_once_more_and_then_left_to_a_person() {
    let corrected = staged_world(
        cs_tier_1(),
        vec![looked_up(), refunds(5.0), answer("Done.")],
        &[(Stage::Intent, &["I think so", REFUND])],
    );
    assert_eq!(code(&corrected), OutcomeCode::Succeeded);
    let unreadable =
        staged_world(cs_tier_1(), vec![], &[(Stage::Intent, &["I think so", r#"{"intent": "intent_sing"}"#])]);
    assert_eq!((code(&unreadable), status(&unreadable).usage.llm_calls.intent), (OutcomeCode::UserNeeded, 2));
    assert_eq!(unreadable.asked, 0, "never a guess");
}

#[test]
fn a_required_entity_that_the_goal_does_not_name_needs_a_person() {
    let nameless = r#"{"intent": "intent_refund", "entities": {}}"#;
    let world = staged_world(cs_tier_1(), vec![], &[(Stage::Intent, &[nameless])]);
    let outcome = world.conversation.outcome().unwrap();
    assert_eq!(outcome.code, OutcomeCode::UserNeeded);
    assert!(outcome.message.contains("order_id"), "{}", outcome.message);
}
