//! The tests that the requirement documents name ("seed 002"), on their complete Skill, [`seed::skill`].

use crate::event::Answer;
use crate::fixture::checks::*;
use crate::fixture::seed;
use crate::fixture::staged::*;
use crate::fixture::*;
use crate::history::Turn;
use crate::next::next;
use crate::people::HumanRequest;
use crate::step::Step;
use crate::tool::ListedTool;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{FinalizationCode, GateReason, SkillSpec, Stage, Verdict};
use rstest::rstest;
use serde_json::json;

/// The text after the list of `never` rules. A test inserts a rule before it.
const END_OF_NEVER: &str = "    always:\n";

/// The text after the list of `always` rules.
const END_OF_ALWAYS: &str = "\n  workflows:";

/// Returns the tools of the server: the declared tool, the other steps of the workflow, and tools that the Skill does not name.
fn listed() -> Vec<ListedTool> {
    let tool = |name: &str, input_schema| ListedTool { name: name.into(), input_schema, ..ListedTool::default() };
    let of_order = json!({
        "type": "object", "required": ["order_id"], "additionalProperties": false,
        "properties": {"order_id": {"type": "string"}},
    });
    let of_money = json!({
        "type": "object", "required": ["order_id", "amount"], "additionalProperties": false,
        "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
    });
    let others = ["verify_identity", "check_eligibility", "track_order", "note", "deleteFile"];
    let others = others.into_iter().map(|name| tool(name, of_order.clone()));
    others.chain([tool("process_refund", of_money)]).collect()
}

fn world(skill: SkillSpec, answers: Vec<Answer>, stages: &[(Stage, &[&'static str])]) -> World {
    let mut world = staged(skill, answers, stages);
    world.listed = listed();
    world.play_out();
    world
}

fn sent(world: &World) -> Vec<&str> {
    world.effects.iter().map(|(tool, _)| tool.as_str()).collect()
}

#[rstest]
#[case::well_under(49.9)]
#[case::at_the_threshold(500.0)]
fn a_refund_up_to_500_needs_no_supervisor_and_succeeds(#[case] amount: f64) {
    let world = world(seed::skill(), vec![looked_up(), refunds(amount), answer("Your refund is on its way.")], &[]);
    let status = status(&world);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert_eq!(sent(&world), ["verify_identity", "check_eligibility", "process_refund"]);
    assert_eq!((status.gates.pre_tool.held, status.gates.pre_tool.denied), (0, 0));
    let calls = &status.usage.llm_calls;
    assert_eq!((calls.intent, calls.plan, calls.finalization, calls.polish), (1, 3, 1, 1));
    assert_eq!(status.workflows[0].done, ["verify_identity", "check_eligibility", "process_refund"]);
    let result = status.result.unwrap();
    assert_eq!(result.fields.keys().collect::<Vec<_>>(), ["next_steps", "order_id", "status"]);
    assert!(result.verified && result.polished);
    assert_history_is_well_formed(&world.conversation);
}

#[test]
fn a_refund_of_600_parks_for_the_supervisor() {
    let world = world(seed::skill(), vec![looked_up(), refunds(600.0), answer("Done.")], &[]);
    let status = status(&world);
    assert_eq!(status.phase, Phase::AwaitingApproval);
    assert_eq!(sent(&world), ["verify_identity", "check_eligibility"]);
    let held = status.waiting_for.unwrap().call.unwrap();
    assert_eq!((held.tool.as_str(), held.approvers), ("process_refund", vec!["supervisor".into()]));
    assert!(held.reason.contains("amount > 500"), "{}", held.reason);
    let last = status.gates.pre_tool.last.last().unwrap();
    assert_eq!((last.verdict, last.rule), (Verdict::Hold, Some(GateReason::Approval)));
    // A worker in another pod waits for the same approval.
    let mut resumed = world.resumed_from(world.log.len());
    let Step::AskPeople(asks) = next(&resumed.conversation) else { panic!("{:?}", resumed.names()) };
    let [HumanRequest::Approval(held)] = asks.as_slice() else { panic!("{asks:?}") };
    assert_eq!((held.tool, held.approvers.as_slice()), ("process_refund", ["supervisor"].as_slice()));
    assert_eq!((held.arguments, held.goal), (r#"{"amount":600.0,"order_id":"A-17"}"#, run().goal.as_str()));
    resumed.play_out();
    assert_eq!(resumed.effects.len() + resumed.asked as usize, 0);
}

/// The Skill's only intent is a refund. A Job that only tracks an order need not complete the workflow of a refund.
#[test]
fn tracking_an_order_needs_no_refund_and_succeeds() {
    let answers = vec![asks(&[("track_order", order())]), answer("It arrives tomorrow.")];
    let world = world(seed::skill(), answers, &[]);
    assert_eq!((code(&world), sent(&world)), (OutcomeCode::Succeeded, vec!["track_order"]));
    let status = status(&world);
    assert_eq!(status.workflows[0].open, ["verify_identity", "check_eligibility", "process_refund"]);
    assert_eq!(status.gates.finalization.attempts.len(), 1);
}

#[test]
fn an_answer_with_an_entered_but_unfinished_workflow_does_not_pass() {
    let world = world(seed::skill(), vec![looked_up(), answer("It arrives tomorrow.")], &[]);
    let attempt = &status(&world).gates.finalization.attempts[0];
    assert_eq!((attempt.passed, attempt.reasons[0].code), (false, FinalizationCode::GoalNotMet));
    assert!(attempt.reasons[0].detail.contains("process_refund"), "{attempt:?}");
}

#[test]
fn skill_guardrails_in_the_prompt() {
    let world = world(seed::skill(), vec![], &[]);
    // No rule is a whole pattern, so all of them stay text.
    let section = "# Skill guardrails\n\
        - Never share customer payment information\n\
        - Never process refunds over $500 without supervisor approval\n\
        - Never be dismissive to frustrated customers\n\
        - Always verify customer identity before account access\n\
        - Always confirm before making changes\n\n";
    let prompt = world.conversation.system().unwrap();
    assert!(prompt.contains(section), "{prompt}");
}

/// Rules that compile and rules that stay text, added to the Skill's own rules, which all stay text.
#[test]
fn compile_guardrails_correct_patterns_compile_and_others_stay_text() {
    let never = "      - \"Never use deleteFile\"\n      - \"amount > 400 needs approval\"\n      - \"Never be dismissive\"\n    always:\n";
    let always = "      - \"note requires approval\"\n      - \"Always verify identity first\"\n\n  workflows:";
    let skill = seed::edited(&[(END_OF_NEVER, never), (END_OF_ALWAYS, always)]);
    let ruled = |calls: &[(&str, serde_json::Value)]| {
        let world = world(skill.clone(), vec![looked_up(), asks(calls), answer("Done.")], &[]);
        let ruling = status(&world).gates.pre_tool.last.last().unwrap().clone();
        (ruling.verdict, ruling.rule, world)
    };
    let guardrail = Some(GateReason::Guardrail);
    let (verdict, layer, world) = ruled(&[("deleteFile", order())]);
    assert_eq!((verdict, layer), (Verdict::Deny, guardrail));
    let (verdict, layer, _) = ruled(&[("process_refund", json!({"order_id": "A-17", "amount": 401}))]);
    assert_eq!((verdict, layer), (Verdict::Hold, guardrail));
    let (verdict, layer, _) = ruled(&[("process_refund", json!({"order_id": "A-17", "amount": 400}))]);
    assert_eq!((verdict, layer), (Verdict::Allow, None));
    let (verdict, layer, _) = ruled(&[("note", order())]);
    assert_eq!((verdict, layer), (Verdict::Hold, guardrail));
    let prompt = world.conversation.system().unwrap();
    for text in
        ["Never be dismissive\n", "Always verify identity first\n", "Never share customer payment information\n"]
    {
        assert!(prompt.contains(text), "{text:?} in {prompt}");
    }
    for compiled in ["Never use deleteFile", "amount > 400", "note requires"] {
        assert!(!prompt.contains(compiled), "{compiled:?} in {prompt}");
    }
}

/// The edit that removes the condition on large amounts from the tool's own policy.
const NO_OWN_POLICY: (&str, &str) = ("requires_approval: conditional", "requires_approval: never");

/// The edit that moves the approval of large amounts to another tool.
const NO_OWN_APPROVAL: (&str, &str) = (
    "    - tool_id: process_refund\n      when: \"amount > 500\"",
    "    - tool_id: note\n      when: \"order_id == 'B-1'\"",
);

/// Each case enforces one rule alone: the other rules about large amounts are removed.
#[rstest]
#[case::policy_allowed_never(
    &[NO_OWN_POLICY, NO_OWN_APPROVAL, ("allowed: always ", "allowed: never ")], Verdict::Deny, GateReason::ToolPolicy
)]
#[case::policy_requires_approval(
    &[NO_OWN_APPROVAL, ("requires_approval: conditional", "requires_approval: always")], Verdict::Hold,
    GateReason::ToolPolicy
)]
#[case::policy_requires_approval_on_a_condition(&[NO_OWN_APPROVAL], Verdict::Hold, GateReason::ToolPolicy)]
#[case::compiled_guardrail_tool_deny(
    &[NO_OWN_POLICY, NO_OWN_APPROVAL, (END_OF_NEVER, "      - \"Never use process_refund\"\n    always:\n")], Verdict::Deny,
    GateReason::Guardrail
)]
#[case::compiled_guardrail_threshold(
    &[NO_OWN_POLICY, NO_OWN_APPROVAL, (END_OF_NEVER, "      - \"amount > 500\"\n    always:\n")], Verdict::Deny,
    GateReason::Guardrail
)]
#[case::compiled_guardrail_requires_approval(
    &[NO_OWN_POLICY, NO_OWN_APPROVAL, (END_OF_ALWAYS, "      - \"process_refund requires approval\"\n\n  workflows:")],
    Verdict::Hold, GateReason::Guardrail
)]
#[case::approval_threshold(&[NO_OWN_POLICY], Verdict::Hold, GateReason::Approval)]
fn pre_tool_gate_blocks_denied_tools_and_triggers_approvals(
    #[case] edits: &[(&str, &str)],
    #[case] verdict: Verdict,
    #[case] layer: GateReason,
) {
    let answers = vec![looked_up(), refunds(600.0), answer("It was not made.")];
    let world = world(seed::edited(edits), answers, &[]);
    let status = status(&world);
    let ruling = &status.gates.pre_tool.last.last().unwrap();
    assert_eq!((ruling.verdict, ruling.rule), (verdict, Some(layer)), "{ruling:?}");
    assert_eq!(sent(&world), ["verify_identity", "check_eligibility"]);
    assert_eq!(status.phase == Phase::AwaitingApproval, verdict == Verdict::Hold, "{:?}", status.phase);
}

#[rstest]
#[case::not_in_the_catalogue("delete_customer", GateReason::Catalogue)]
#[case::before_its_steps("process_refund", GateReason::Workflow)]
fn calls_that_the_skill_does_not_allow_are_denied(#[case] tool: &str, #[case] layer: GateReason) {
    let denied = asks(&[(tool, json!({"order_id": "A-17", "amount": 5}))]);
    let world = world(seed::skill(), vec![denied, answer("It was not made.")], &[]);
    let ruling = &world.conversation.shared.calls.rulings().last[0];
    assert_eq!((ruling.verdict, ruling.rule), (Verdict::Deny, Some(layer)));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 0));
}

#[test]
fn a_skill_with_guardrail_never_use_delete_file_has_the_tool_blocked_at_pre_tool() {
    let guarded = seed::edited(&[(END_OF_NEVER, "      - \"never use deleteFile\"\n    always:\n")]);
    let world = world(guarded, vec![asks(&[("deleteFile", order())]), answer("It was not made.")], &[]);
    let ruling = &world.conversation.shared.calls.rulings().last[0];
    assert_eq!((ruling.verdict, ruling.rule), (Verdict::Deny, Some(GateReason::Guardrail)));
    assert_eq!((code(&world), world.effects.len()), (OutcomeCode::Succeeded, 0));
    let has_rule = |turn: &Turn| matches!(turn, Turn::ToolResult { text, .. } if text.contains("never use deleteFile"));
    assert!(world.conversation.turns().iter().any(has_rule), "{:?}", world.conversation.turns());
}

#[test]
fn a_skill_with_finalization_gate_enabled_false_has_the_gate_skipped() {
    let skill = seed::edited(&[("enabled: true ", "enabled: false ")]);
    let world = world(skill, vec![looked_up(), refunds(5.0), answer("Done.")], &[(Stage::Polish, &["Done."])]);
    let status = status(&world);
    assert_eq!(code(&world), OutcomeCode::Succeeded);
    assert!(status.gates.finalization.skipped && status.usage.llm_calls.finalization == 0);
}

#[test]
fn the_finalization_gate_fails_three_times_and_escalates_with_the_draft() {
    let world = world(seed::skill(), gate_retries(), &[(Stage::Finalization, &[GOAL_UNMET; 3])]);
    let status = status(&world);
    assert_eq!((code(&world), status.phase), (OutcomeCode::GateFailed, Phase::Escalated));
    assert_eq!((status.gates.finalization.attempts.len(), status.usage.llm_calls.polish), (3, 0));
    let result = status.result.unwrap();
    assert_eq!((result.text.as_str(), result.verified, result.polished), ("Three.", false, false));
}

const PASSED: &str = r#"{"passed": true, "score": 0.9, "reasons": [], "missing_fields": []}"#;

/// The outcome of the Job and the number of attempts, for a sequence of answers of the judging model.
#[rstest]
#[case::passed(&[PASSED], OutcomeCode::Succeeded, 1)]
#[case::passed_with_a_remark_on_its_tone(
    &[r#"{"passed": true, "reasons": [{"code": "TONE_MISMATCH", "detail": "dry"}]}"#], OutcomeCode::Succeeded, 1
)]
#[case::passed_at_the_second_attempt(&[GOAL_UNMET, PASSED], OutcomeCode::Succeeded, 2)]
#[case::passed_at_the_third(&[GOAL_UNMET, GOAL_UNMET, PASSED], OutcomeCode::Succeeded, 3)]
#[case::passed_and_a_guardrail_is_violated(
    &[r#"{"passed": true, "reasons": [{"code": "GUARDRAIL_VIOLATED", "detail": "card number"}]}"#, PASSED],
    OutcomeCode::Succeeded, 2
)]
#[case::passed_and_fields_are_missing(
    &[r#"{"passed": true, "missing_fields": ["next_steps"]}"#, PASSED], OutcomeCode::Succeeded, 2
)]
#[case::too_curt_and_then_passed(
    &[r#"{"passed": false, "reasons": [{"code": "TONE_MISMATCH", "detail": "curt"}], "suggested_action": "REWRITE"}"#, PASSED],
    OutcomeCode::Succeeded, 2
)]
#[case::unreadable_and_then_passed(&["It passes.", PASSED], OutcomeCode::Succeeded, 1)]
#[case::unreadable_throughout(&["It passes."], OutcomeCode::GateFailed, 3)]
#[case::clarify_user(
    &[r#"{"passed": false, "reasons": [{"code": "OUTPUT_INCOMPLETE", "detail": "which order"}], "suggested_action": "CLARIFY_USER"}"#],
    OutcomeCode::UserNeeded, 1
)]
#[case::escalate(
    &[r#"{"passed": false, "reasons": [{"code": "TONE_MISMATCH", "detail": "rude"}], "suggested_action": "ESCALATE"}"#],
    OutcomeCode::GateFailed, 1
)]
fn finalization_gate_pass_and_fail_with_various_responses(
    #[case] rulings: &[&'static str],
    #[case] expected: OutcomeCode,
    #[case] attempts: usize,
) {
    let world = world(seed::skill(), gate_retries(), &[(Stage::Finalization, rulings), (Stage::Polish, &["Done."])]);
    let finalization = status(&world).gates.finalization;
    assert_eq!((code(&world), finalization.attempts.len()), (expected, attempts), "{finalization:?}");
    assert_eq!(finalization.passed, expected == OutcomeCode::Succeeded);
}

/// The fields of the output contract are checked without the judging model.
#[rstest]
#[case::no_block("Your refund is on its way.", FinalizationCode::OutputIncomplete)]
#[case::a_field_that_is_missing(
    "Done.\n```json\n{\"order_id\": \"A-17\", \"status\": \"refunded\"}\n```",
    FinalizationCode::MissingRequiredField
)]
#[case::a_field_that_is_empty(
    "Done.\n```json\n{\"order_id\": \"A-17\", \"status\": \"refunded\", \"next_steps\": \"\"}\n```",
    FinalizationCode::MissingRequiredField
)]
fn finalization_gate_fails_a_response_without_the_fields_of_the_contract(
    #[case] draft: &str,
    #[case] fault: FinalizationCode,
) {
    let world =
        world(seed::skill(), vec![looked_up(), refunds(5.0), says(draft), says(draft), says(draft), says(draft)], &[]);
    let status = status(&world);
    let finalization = status.gates.finalization;
    assert_eq!((finalization.form_errors, finalization.attempts.len(), finalization.passed), (2, 1, false));
    assert_eq!(finalization.attempts[0].reasons[0].code, fault);
    assert_eq!((code(&world), status.usage.llm_calls.finalization), (OutcomeCode::GateFailed, 0));
}
