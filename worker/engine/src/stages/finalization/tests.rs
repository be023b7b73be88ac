use crate::event::{Answer, Event, FinalizationRuling};
use crate::fixture::attended::said_by_users;
use crate::fixture::checks::*;
use crate::fixture::staged::*;
use crate::fixture::*;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{FinalizationAttempt, FinalizationCode, FinalizationReason, Stage, SuggestedAction};
use rstest::rstest;
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

#[rstest]
#[case::no_field("{\"order_id\": \"A-17\"}", true)]
#[case::null("{\"order_id\": \"A-17\", \"status\": null}", true)]
#[case::an_empty_text("{\"order_id\": \"A-17\", \"status\": \" \"}", true)]
#[case::an_empty_list("{\"order_id\": \"A-17\", \"status\": []}", true)]
#[case::an_empty_object("{\"order_id\": \"A-17\", \"status\": {}}", true)]
#[case::a_text("{\"order_id\": \"A-17\", \"status\": \"done\"}", false)]
#[case::zero("{\"order_id\": \"A-17\", \"status\": 0}", false)]
#[case::no("{\"order_id\": \"A-17\", \"status\": false}", false)]
#[case::a_list("{\"order_id\": \"A-17\", \"status\": [null]}", false)]
#[case::an_object("{\"order_id\": \"A-17\", \"status\": {\"code\": \"\"}}", false)]
fn a_required_field_without_a_value_is_missing(#[case] fields: &str, #[case] is_missing: bool) {
    let draft = says(&format!("Done.\n```json\n{fields}\n```"));
    let world = ended(run(), vec![draft, good_answer()], ALL_WELL);
    let finalization = world.conversation.finalization.projection();
    assert_eq!((finalization.form_errors, finalization.attempts.len()), (u32::from(is_missing), 1), "{finalization:?}");
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

/// A ruling of the judging model that fails a draft for this reason.
macro_rules! failed {
    ($code:literal) => {
        concat!(
            r#"{"passed": false, "reasons": [{"code": ""#,
            $code,
            r#"", "detail": "x"}], "suggested_action": "TOOL_CALL"}"#
        )
    };
}

const PASSED: &str = r#"{"passed": true, "reasons": []}"#;

/// A ruling that fails a draft for its tone, and for more than its wording.
const TONE_AND_GOAL: &str = r#"{"passed": false, "reasons": [{"code": "TONE_MISMATCH", "detail": "x"}, {"code": "GOAL_NOT_MET", "detail": "y"}], "suggested_action": "REWRITE"}"#;

/// A ruling that fails a draft because it lacks a field.
const LACKS_FIELD: &str = r#"{"passed": false, "reasons": [{"code": "OUTPUT_INCOMPLETE", "detail": "x"}], "missing_fields": ["status"], "suggested_action": "REWRITE"}"#;

/// The draft that each of these Jobs gives first.
const FIRST: &str = "Refunded 49.9 EUR, see https://shop.example/r/7.";

/// The outcome and the attempts of a Job that answers again without a new call, after the ruling on its first draft.
#[rstest]
#[case::reworded(failed!("TONE_MISMATCH"), &["We have refunded 49.9 EUR, dear customer: https://shop.example/r/7"], OutcomeCode::Succeeded, 2)]
#[case::completed(failed!("OUTPUT_INCOMPLETE"), &["Refunded 49.9 EUR in 3 days, see https://shop.example/r/7."], OutcomeCode::Succeeded, 2)]
#[case::another_number(failed!("TONE_MISMATCH"), &["Refunded 59.9 EUR, see https://shop.example/r/7."; 2], OutcomeCode::GateFailed, 3)]
#[case::a_new_number(failed!("TONE_MISMATCH"), &["Refunded 49.9 EUR in 3 days, see https://shop.example/r/7."; 2], OutcomeCode::GateFailed, 3)]
#[case::a_lost_url(failed!("OUTPUT_INCOMPLETE"), &["Refunded 49.9 EUR."; 2], OutcomeCode::GateFailed, 3)]
#[case::kept_at_last(failed!("TONE_MISMATCH"), &["Refunded.", "We refunded 49.9 EUR: https://shop.example/r/7"], OutcomeCode::Succeeded, 3)]
#[case::more_than_its_wording(failed!("GOAL_NOT_MET"), &[FIRST], OutcomeCode::GateFailed, 1)]
#[case::more_than_its_tone(TONE_AND_GOAL, &[FIRST], OutcomeCode::GateFailed, 1)]
#[case::incomplete_without_a_field(LACKS_FIELD, &[FIRST], OutcomeCode::GateFailed, 1)]
fn an_answer_that_fails_only_for_its_wording_is_rewritten_without_a_new_call(
    #[case] ruling: &'static str,
    #[case] rewritten: &[&str],
    #[case] expected: OutcomeCode,
    #[case] attempts: usize,
) {
    let drafts = [FIRST].iter().chain(rewritten).map(|text| answer(text));
    let answers = [looked_up(), refunds(49.9)].into_iter().chain(drafts).collect();
    let world = staged_world(cs_tier_1(), answers, &[(Stage::Finalization, &[ruling, PASSED])]);
    let finalization = status(&world).gates.finalization;
    assert_eq!((code(&world), finalization.attempts.len()), (expected, attempts), "{finalization:?}");
    assert_eq!(finalization.passed, expected == OutcomeCode::Succeeded);
    assert_eq!(world.effects.len(), 1, "no call is made for the wording");
}

/// The judging model's ruling on missing fields gets the reason `MISSING_REQUIRED_FIELD` too. A log of another version may lack it.
#[rstest]
#[case::complete(&[], true)]
#[case::without_a_field(&["status"], false)]
fn a_recorded_ruling_with_missing_fields_needs_evidence(#[case] missing: &[&str], #[case] is_reworded: bool) {
    let mut world = staged(cs_tier_1(), vec![looked_up(), refunds(49.9), answer(FIRST)], &[]);
    world.play_until(|conversation| conversation.finalization.judgement().text().is_some());
    let attempt = FinalizationAttempt {
        reasons: vec![FinalizationReason { code: FinalizationCode::OutputIncomplete, detail: "x".into() }],
        missing_fields: missing.iter().map(|name| (*name).to_owned()).collect(),
        suggested_action: Some(SuggestedAction::Rewrite),
        ..FinalizationAttempt::default()
    };
    world.record(Event::GateRuled { ruling: FinalizationRuling::Attempt(attempt) });
    let finalization = &world.conversation.finalization;
    assert_eq!((finalization.reworded().is_some(), finalization.needs_evidence()), (is_reworded, !is_reworded));
}

/// A field keeps its value, and new evidence permits another answer.
#[rstest]
#[case::another_field_value(None, OutcomeCode::GateFailed)]
#[case::after_new_evidence(Some(asks(&[("note", order())])), OutcomeCode::Succeeded)]
fn a_rewritten_answer_keeps_its_fields_unless_there_is_new_evidence(
    #[case] call: Option<Answer>,
    #[case] expected: OutcomeCode,
) {
    let changed =
        || says("We did.\n```json\n{\"order_id\": \"A-17\", \"status\": \"done\", \"next_steps\": \"wait\"}\n```");
    let answers = [looked_up(), refunds(5.0), answer("We did.")].into_iter().chain(call).chain([changed(), changed()]);
    let rulings = [failed!("TONE_MISMATCH"), PASSED];
    let world = staged_world(cs_tier_1(), answers.collect(), &[(Stage::Finalization, &rulings)]);
    let attempts = status(&world).gates.finalization.attempts;
    assert_eq!(code(&world), expected, "{attempts:?}");
    if expected == OutcomeCode::GateFailed {
        let detail = &attempts[1].reasons[0].detail;
        assert_eq!(detail, "it changes the content of the earlier answer: the fields of the JSON block differ");
    }
}

#[test]
fn a_worker_lost_at_any_event_of_a_rewriting_leads_to_the_same_end() {
    let answers = vec![looked_up(), refunds(49.9), answer("Refunded 49.9 EUR."), answer("We have refunded 49.9 EUR.")];
    let whole = staged_world(cs_tier_1(), answers, &[(Stage::Finalization, &[failed!("TONE_MISMATCH"), PASSED])]);
    let feedback = said_by_users(&whole.conversation)[1];
    assert!(
        feedback.contains("Only its wording has to change") && feedback.contains("without another tool call"),
        "{feedback}"
    );
    for cut in 1..=whole.log.len() {
        let mut resumed = whole.resumed_from(cut);
        assert!(whole.conversation.turns().starts_with(resumed.conversation.turns()), "after {cut} events");
        resumed.play_out();
        let lost = ["model.requested", "tool.started"].contains(&whole.names()[cut - 1]);
        let same = status(&resumed).gates == status(&whole).gates && status(&resumed).result == status(&whole).result;
        assert!(lost || same, "after {cut} events");
    }
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
