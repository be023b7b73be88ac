use crate::event::Answer;
use crate::fixture::checks::*;
use crate::fixture::staged::*;
use crate::fixture::*;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{FinalizationCode, Stage, SuggestedAction};
use serde_json::json;

#[test]
fn a_form_error_costs_no_attempt_and_no_tool_call() {
    let world =
        ended(run(), vec![says("done"), says("```json\n{\"order_id\": \"A-17\"}\n```"), good_answer()], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    let finalization = world.conversation.finalization.projection();
    assert_eq!((finalization.form_errors, finalization.attempts.len(), finalization.passed), (2, 1, true));
}

#[test]
fn an_answer_after_a_failed_attempt_needs_new_evidence() {
    let bad = || says("no block");
    let world = ended(run(), vec![bad(), bad(), bad(), bad()], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::GateFailed);
    assert!(world.conversation.outcome().unwrap().message.contains("without new evidence"));
    assert_eq!(world.conversation.finalization.attempts().len(), 1);
    assert!(!world.conversation.result().unwrap().verified);
}

#[test]
fn evidence_is_a_call_that_was_not_made_before() {
    let bad = || says("no block");
    let look = || asks(&[("verify_identity", order())]);
    let repeated = ended(run(), vec![look(), bad(), bad(), bad(), look(), good_answer()], ALL_WELL);
    assert_eq!(code(&repeated), OutcomeCode::GateFailed);
    let new = vec![look(), bad(), bad(), bad(), asks(&[("check_eligibility", order())]), good_answer()];
    assert_eq!(code(&ended(run(), new, ALL_WELL)), OutcomeCode::Succeeded);
}

#[test]
fn three_failed_attempts_escalate_the_job() {
    let bad = || says("```json\n{\"order_id\": \"A-17\", \"status\": \"\"}\n```");
    let look = |id: &str| asks(&[("verify_identity", json!({"order_id": id}))]);
    let world = ended(run(), vec![bad(), bad(), bad(), look("1"), bad(), look("2"), bad(), look("3")], ALL_WELL);
    assert_eq!(code(&world), OutcomeCode::GateFailed);
    let finalization = world.conversation.finalization.projection();
    assert_eq!(finalization.attempts.len(), 3);
    assert_eq!(finalization.attempts[0].reasons[0].code, FinalizationCode::MissingRequiredField);
    assert_eq!(finalization.attempts[0].missing_fields, ["status"]);
}

#[test]
fn without_a_contract_prose_is_the_answer() {
    let mut without_contract = run();
    without_contract.skill.output_contract = None;
    let world = ended(without_contract, vec![says("All is well.")], ALL_WELL);
    assert_eq!(world.conversation.result().unwrap().text, "All is well.");
    assert_eq!(code(&world), OutcomeCode::Succeeded);
}

#[test]
fn an_empty_or_cut_off_answer_is_a_form_error() {
    let mut without_contract = run();
    without_contract.skill.output_contract = None;
    let cut = Answer { cut: true, ..says("All is") };
    let world = ended(without_contract, vec![says(" "), cut, says("All is well.")], ALL_WELL);
    assert_eq!(world.conversation.finalization.form_errors(), 2);
    assert_eq!(world.conversation.result().unwrap().text, "All is well.");
}

#[test]
fn a_refund_that_was_asked_for_and_not_made_does_not_pass() {
    let world = staged_world(cs_tier_1(), vec![looked_up(), answer("Refunded.")], &[]);
    let status = status(&world);
    let attempt = &status.gates.finalization.attempts[0];
    assert_eq!((attempt.passed, attempt.reasons[0].code), (false, FinalizationCode::GoalNotMet));
    assert!(attempt.reasons[0].detail.contains("process_refund"), "{attempt:?}");
    assert_eq!(status.usage.llm_calls.finalization, 0, "no model is asked about it");
}

#[test]
fn a_ruling_that_cannot_be_read_is_asked_for_once_more_and_is_then_a_failed_attempt() {
    let answers = vec![looked_up(), refunds(5.0), answer("Done.")];
    let corrected = staged_world(
        cs_tier_1(),
        answers,
        &[(Stage::Finalization, &["fine", r#"{"passed": true, "score": 1}"#]), (Stage::Polish, &["Done."])],
    );
    assert_eq!((code(&corrected), status(&corrected).gates.finalization.attempts.len()), (OutcomeCode::Succeeded, 1));
    let unreadable = staged_world(
        cs_tier_1(),
        gate_retries(),
        &[(Stage::Finalization, &["fine", "fine", "fine", "fine", "fine", "fine"])],
    );
    let attempts = status(&unreadable).gates.finalization.attempts;
    assert_eq!((code(&unreadable), attempts.len()), (OutcomeCode::GateFailed, 3));
    assert_eq!(attempts[0].suggested_action, Some(SuggestedAction::ToolCall));
}
