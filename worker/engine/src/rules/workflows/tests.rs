//! The order and the completion of workflows (`docs/explanation/engine.md`, section 3).

use super::*;
use crate::event::CallId;
use crate::record::Record;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

const TOOLS: [&str; 4] = ["verify_identity", "check_eligibility", "process_refund", "track_order"];

fn workflow(name: &str, steps: &[&str], required: Option<bool>, intents: &[&str]) -> Workflow {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Workflow { name: name.to_owned(), steps: owned(steps), required, intents: owned(intents), ..Workflow::default() }
}

impl WorkflowTracker {
    /// Records a completed call without arguments.
    fn complete_call(&mut self, tool: &str, seq: u64) {
        let (record, id) = (Record::default(), CallId::new(seq, 0));
        let call = CompletedCall { tool, seq, arguments: None, result: None, facts: record.for_call(&id) };
        assert_eq!(self.record_completed(&call), [""; 0]);
    }
}

/// Returns the required workflow of a refund.
fn refund(intents: &[&str]) -> WorkflowTracker {
    let steps = ["verify_identity", "check_eligibility", "process_refund"];
    WorkflowTracker::new(&[workflow("Refund Processing", &steps, Some(true), intents)], TOOLS)
}

/// Returns a required workflow with a step that is not a tool.
fn with_a_step_that_is_no_tool() -> WorkflowTracker {
    let steps = ["verify_identity", "confirm with the customer", "process_refund"];
    WorkflowTracker::new(&[workflow("refund", &steps, Some(true), &[])], TOOLS)
}

fn steps<'a>(missing: &[MissingStep<'a>]) -> Vec<&'a str> {
    missing.iter().map(|missing| missing.step).collect()
}

#[test]
fn workflows_become_sub_goals_with_their_dependencies() {
    let sub_goal = |n: u32, intent: &str, depends_on: &[&str]| {
        json!({
            "id": format!("sg_Refund Processing_{n}"), "intent": intent, "depends_on": depends_on, "status": "todo",
            "from_workflow": "Refund Processing", "workflow_required": true,
        })
    };
    assert_eq!(
        serde_json::to_value(refund(&[]).sub_goals()).unwrap(),
        json!([
            sub_goal(1, "verify_identity", &[]),
            sub_goal(2, "check_eligibility", &["sg_Refund Processing_1"]),
            sub_goal(3, "process_refund", &["sg_Refund Processing_2"]),
        ])
    );
}

#[test]
fn an_optional_workflow_has_no_order_and_need_not_be_complete() {
    let mut progress =
        WorkflowTracker::new(&[workflow("refund", &["verify_identity", "process_refund"], None, &["refund"])], TOOLS);
    assert!(!progress.sub_goals().first().unwrap().workflow_required);
    progress.record_started("process_refund", false);
    assert_eq!(progress.missing_before("process_refund"), []);
    assert_eq!(progress.incomplete(Some("refund")), []);
    progress.complete_call("process_refund", 9);
    assert_eq!(progress.sub_goals().last().unwrap().status, StepStatus::Done { evidence: 9 });
}

#[test]
fn a_step_needs_every_earlier_step_completed() {
    let mut progress = refund(&["refund"]);
    assert_eq!(progress.missing_before("verify_identity"), []);
    let expected = MissingStep { workflow: "Refund Processing", step: "verify_identity" };
    assert_eq!(progress.missing_before("process_refund"), [expected]);
    progress.record_started("verify_identity", true);
    assert_eq!(steps(&progress.missing_before("check_eligibility")), ["verify_identity"]);
    progress.complete_call("verify_identity", 5);
    assert_eq!(progress.missing_before("check_eligibility"), []);
    assert_eq!(steps(&progress.missing_before("process_refund")), ["check_eligibility"]);
    progress.complete_call("check_eligibility", 8);
    assert_eq!(progress.missing_before("process_refund"), []);
    assert_eq!(progress.missing_before("track_order"), []);
}

#[test]
fn the_order_of_a_required_workflow_holds_for_every_intent() {
    assert_eq!(refund(&["refund"]).missing_before("process_refund").len(), 1);
    assert_eq!(refund(&[]).missing_before("process_refund").len(), 1);
}

#[test]
fn a_job_that_only_tracks_an_order_need_not_complete_the_refund() {
    for mut progress in [refund(&[]), refund(&["refund"])] {
        progress.record_started("verify_identity", true);
        progress.complete_call("verify_identity", 5);
        progress.record_started("track_order", false);
        progress.complete_call("track_order", 8);
        assert_eq!(progress.incomplete(Some("track_order")), []);
        assert_eq!(progress.incomplete(None), []);
    }
}

#[test]
fn the_workflow_of_the_detected_intent_must_be_complete() {
    let progress = refund(&["refund"]);
    let all = ["verify_identity", "check_eligibility", "process_refund"];
    assert_eq!(steps(&progress.incomplete(Some("refund"))), all);
}

#[test]
fn without_intents_a_started_step_with_effect_demands_the_other_steps() {
    let mut progress =
        WorkflowTracker::new(&[workflow("refund", &["process_refund", "track_order"], Some(true), &[])], TOOLS);
    progress.record_started("track_order", true);
    assert_eq!(progress.incomplete(None), []);
    progress.record_started("process_refund", false);
    progress.complete_call("process_refund", 7);
    assert_eq!(steps(&progress.incomplete(Some("anything"))), ["track_order"]);
}

#[test]
fn a_workflow_with_intents_demands_nothing_for_another_intent() {
    let mut progress = refund(&["refund"]);
    progress.record_started("process_refund", false);
    assert_eq!(progress.incomplete(Some("other")), []);
}

#[test]
fn a_step_that_is_not_a_tool_is_closed_with_evidence() {
    let mut progress = with_a_step_that_is_no_tool();
    progress.complete_call("verify_identity", 5);
    assert_eq!(steps(&progress.missing_before("process_refund")), ["confirm with the customer"]);
    let fault = progress.check_done("confirm with the customer", 6).unwrap_err();
    assert_eq!(fault, Refusal::NoEvidence { evidence: 6 });
    progress.complete_call("track_order", 6);
    let id = progress.check_done("confirm with the customer", 6).unwrap();
    assert_eq!(id, "sg_refund_2");
    progress.close(&id, StepStatus::Done { evidence: 6 });
    assert_eq!(progress.missing_before("process_refund"), []);
}

/// A required workflow whose step in words needs the answer of a person about the same order.
fn with_evidence() -> WorkflowTracker {
    let condition = "args.order_id == steps.verify_identity.args.order_id && result == 'yes'";
    let workflow = Workflow {
        expect: serde_json::from_value(json!([
            {"step": "confirm with the customer", "evidence": {"tool": "track_*"}, "condition": condition, "reason": "Confirm this order"},
        ]))
        .unwrap(),
        ..workflow("refund", &["verify_identity", "confirm with the customer", "process_refund"], Some(true), &[])
    };
    let mut progress = WorkflowTracker::new(&[workflow], TOOLS);
    assert_eq!(complete(&mut progress, "verify_identity", 5, "A-17", "ok"), [""; 0]);
    progress
}

/// Records a completed call about an order.
fn complete(progress: &mut WorkflowTracker, tool: &str, seq: u64, order: &str, result: &str) -> Vec<String> {
    let (record, id, arguments) = (Record::default(), CallId::new(seq, 0), json!({ "order_id": order }));
    let facts = record.for_call(&id);
    progress.record_completed(&CompletedCall { tool, seq, arguments: Some(&arguments), result: Some(result), facts })
}

#[test]
fn a_step_for_another_subject_opens_the_steps_after_it() {
    let condition =
        json!({"step": "process_refund", "condition": "args.order_id == steps.verify_identity.args.order_id"});
    let steps_of_refund = ["verify_identity", "check_eligibility", "process_refund"];
    let workflow = Workflow {
        expect: serde_json::from_value(json!([condition])).unwrap(),
        ..workflow("refund", &steps_of_refund, Some(true), &[])
    };
    let mut progress = WorkflowTracker::new(&[workflow], TOOLS);
    for (seq, tool) in [(1, "verify_identity"), (2, "check_eligibility"), (3, "verify_identity")] {
        assert_eq!(complete(&mut progress, tool, seq, "A-17", "yes"), [""; 0]);
    }
    assert_eq!(progress.missing_before("process_refund"), [], "the same order again");
    assert_eq!(complete(&mut progress, "verify_identity", 4, "B-1", "yes"), [""; 0]);
    assert_eq!(steps(&progress.missing_before("process_refund")), ["check_eligibility"]);
}

#[test]
fn a_step_in_words_is_closed_only_by_the_evidence_that_it_names() {
    let mut progress = with_evidence();
    let step = "confirm with the customer";
    let wrong = |evidence| Refusal::WrongEvidence { step: step.into(), evidence, tools: "track_*".into() };
    assert_eq!(complete(&mut progress, "check_eligibility", 6, "A-17", "yes"), [""; 0]);
    assert_eq!(progress.check_done(step, 6), Err(wrong(6)), "a call of another tool");
    let unmet = "the step \"confirm with the customer\" of the workflow \"refund\" needs more: Confirm this order";
    assert_eq!(complete(&mut progress, "track_order", 7, "B-1", "yes"), [unmet]);
    assert_eq!(complete(&mut progress, "track_order", 8, "A-17", "no"), [unmet]);
    for evidence in [7, 8] {
        assert_eq!(progress.check_done(step, evidence), Err(wrong(evidence)));
    }
    assert_eq!(steps(&progress.missing_before("process_refund")), [step]);
    assert_eq!(complete(&mut progress, "track_order", 9, "A-17", "yes"), [""; 0]);
    let id = progress.check_done(step, 9).unwrap();
    progress.close(&id, StepStatus::Done { evidence: 9 });
    assert_eq!(progress.missing_before("process_refund"), []);
    assert_eq!(progress.closing_notes(), ["Only the result of track_* closes \"confirm with the customer\"."]);
}

#[test]
fn approvers_are_asked_only_about_a_step_that_can_be_closed() {
    let expect = json!([{"step": "the lead agrees", "approver": "lead"}, {"step": "the lead agrees", "approver": "legal", "reason": "Check the contract"}]);
    let workflow = Workflow {
        expect: serde_json::from_value(expect).unwrap(),
        ..workflow("refund", &["verify_identity", "the lead agrees"], Some(true), &[])
    };
    let mut progress = WorkflowTracker::new(&[workflow], TOOLS);
    let approvers = |progress: &WorkflowTracker, step: &str, evidence, not_applicable| -> Vec<String> {
        let asked = progress.closing_approvers(step, evidence, not_applicable);
        asked.into_iter().map(|asked| format!("{}: {}", asked.approver, asked.reason)).collect()
    };
    progress.complete_call("track_order", 4);
    assert_eq!(approvers(&progress, "the lead agrees", 4, false), [""; 0], "verify_identity must come first");
    progress.complete_call("verify_identity", 5);
    let both =
        ["lead: the step \"the lead agrees\" of the workflow \"refund\" needs approval", "legal: Check the contract"];
    assert_eq!(approvers(&progress, "the lead agrees", 4, false), both);
    assert_eq!(approvers(&progress, "sg_refund_2", 5, true), both);
    assert_eq!(approvers(&progress, "the lead agrees", 9, false), [""; 0], "no result");
    assert_eq!(approvers(&progress, "verify_identity", 4, false), [""; 0], "a tool");
}

#[rstest]
#[case::unknown("dance", Refusal::Unknown { step: "dance".into(), open: "sg_refund_1, sg_refund_2, sg_refund_3".into() })]
#[case::a_tool("verify_identity", Refusal::IsTool { step: "verify_identity".into() })]
#[case::a_tool_by_its_id("sg_refund_3", Refusal::IsTool { step: "process_refund".into() })]
#[case::not_in_turn("sg_refund_2", Refusal::OutOfOrder { missing: "verify_identity".into() })]
fn a_step_that_cannot_be_closed_is_refused_with_the_reason(#[case] step: &str, #[case] refusal: Refusal) {
    assert_eq!(with_a_step_that_is_no_tool().check_done(step, 5), Err(refusal));
}

#[test]
fn a_name_that_two_workflows_have_needs_the_id() {
    let talk = |name| workflow(name, &["talk"], Some(true), &[]);
    let mut progress = WorkflowTracker::new(&[talk("a"), talk("b")], []);
    progress.complete_call("track_order", 3);
    let ids = "sg_a_1, sg_b_1".to_owned();
    assert_eq!(progress.check_done("talk", 3), Err(Refusal::Ambiguous { step: "talk".into(), ids }));
    progress.close("sg_a_1", StepStatus::Done { evidence: 3 });
    assert_eq!(progress.check_done("talk", 3), Ok("sg_b_1".into()));
}

#[test]
fn a_step_that_does_not_apply_completes_the_workflow_but_allows_no_later_step() {
    let mut progress = refund(&["refund"]);
    progress.complete_call("verify_identity", 5);
    progress.complete_call("track_order", 6);
    let other = progress.check_not_applicable("check_eligibility", 6).unwrap_err();
    assert_eq!(other, Refusal::NotFromEarlierStep { step: "check_eligibility".into(), evidence: 6 });
    let id = progress.check_not_applicable("check_eligibility", 5).unwrap();
    progress.close(&id, StepStatus::NotApplicable { evidence: 5 });
    assert_eq!(steps(&progress.missing_before("process_refund")), ["check_eligibility"]);
    let id = progress.check_not_applicable("process_refund", 5).unwrap();
    progress.close(&id, StepStatus::NotApplicable { evidence: 5 });
    assert_eq!(progress.incomplete(Some("refund")), []);
    assert_eq!(progress.sub_goals().last().unwrap().status, StepStatus::NotApplicable { evidence: 5 });
}

#[test]
fn the_first_step_always_applies() {
    let mut progress = refund(&["refund"]);
    progress.complete_call("track_order", 5);
    let refusal = progress.check_not_applicable("verify_identity", 5).unwrap_err();
    assert!(matches!(refusal, Refusal::NotFromEarlierStep { .. }));
}

#[test]
fn a_tool_that_is_two_steps_completes_one_step_per_call() {
    let steps = ["verify_identity", "process_refund", "verify_identity"];
    let mut progress = WorkflowTracker::new(&[workflow("w", &steps, Some(true), &[])], TOOLS);
    let done = |progress: &WorkflowTracker| {
        progress.sub_goals().iter().map(|goal| goal.status != StepStatus::Todo).collect::<Vec<_>>()
    };
    progress.complete_call("verify_identity", 1);
    progress.complete_call("verify_identity", 2);
    assert_eq!(done(&progress), [true, false, false]);
    progress.complete_call("process_refund", 3);
    assert_eq!(progress.missing_before("verify_identity"), []);
    progress.complete_call("verify_identity", 4);
    assert_eq!(done(&progress), [true, true, true]);
}

#[test]
fn a_step_that_is_open_again_is_not_demanded_again() {
    let mut progress = refund(&["refund"]);
    for (tool, seq) in [("verify_identity", 1), ("check_eligibility", 2), ("process_refund", 3)] {
        progress.complete_call(tool, seq);
    }
    progress.record_failed_read("verify_identity");
    assert_eq!(steps(&progress.missing_before("process_refund")), ["verify_identity"]);
    assert_eq!(progress.incomplete(Some("refund")), []);
    assert_eq!(progress.projection()[0].done.len(), 3);
    progress.complete_call("verify_identity", 9);
    assert_eq!(progress.missing_before("process_refund"), []);
}

#[test]
fn a_workflow_without_steps_demands_nothing() {
    let progress = WorkflowTracker::new(&[workflow("empty", &[], Some(true), &["refund"])], TOOLS);
    assert_eq!(progress.sub_goals(), []);
    assert_eq!(progress.incomplete(Some("refund")), []);
}

proptest! {
    /// For any order of calls that the gate allows, no step is done before an earlier one.
    #[test]
    fn no_step_is_done_before_an_earlier_one(calls in prop::collection::vec(prop::sample::select(TOOLS.to_vec()), 0..20)) {
        let mut progress = refund(&[]);
        for (seq, tool) in (1..).zip(calls) {
            if progress.missing_before(tool).is_empty() {
                progress.record_started(tool, false);
                progress.complete_call(tool, seq);
            }
            let done: Vec<bool> = progress.sub_goals().iter().map(|goal| goal.status != StepStatus::Todo).collect();
            prop_assert!(done.is_sorted_by(|before, after| before >= after), "{done:?}");
        }
    }

    #[test]
    fn no_text_panics(step in ".*", name in ".*", evidence in any::<u64>()) {
        let mut progress = WorkflowTracker::new(&[workflow(&name, &[&step, "x"], Some(true), &[])], [step.as_str()]);
        let _ = progress.check_done(&name, evidence);
        let _ = progress.check_not_applicable(&step, evidence);
        progress.close(&step, StepStatus::NotApplicable { evidence });
        progress.complete_call(&step, evidence);
    }
}
