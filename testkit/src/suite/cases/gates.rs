//! Calls and answers that a gate stops.

use serde_json::json;

use super::GOAL;
use crate::json::typed;
use crate::script::{Turn, call, conversation, fails, refund_of, say};
use crate::skills::{refunds, tier_one};
use crate::suite::Case;

/// A blocked tool is not offered. The model receives the reason for which a call is denied, and continues.
pub fn what_is_denied_is_told_and_the_model_goes_on() -> Case {
    let turns = [
        call("track_order", json!({"order_id": "A-17"})).not_offered(&["track_order"]),
        call("verify_identity", json!({"order_id": 17, "email": "customer-17@example.com"})).after_result("Denied"),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("Denied"),
        Turn::answer("A-17").after_result("eligible"),
    ];
    Case::new(refunds(), GOAL, conversation("A-17", turns))
        .with_skill(|spec| spec.policy = Some(typed(json!({"tools": {"blocked": ["track_order"]}}))))
}

/// The tool's own policy and a rule of `approvals` hold a call. Only the approver of the rule is asked, who does not decide.
pub fn a_call_that_is_held_waits() -> Case {
    Case::new(tier_one(), "Refund order A-243", refund_of("A-243"))
}

/// The gate rejects each answer that lacks a required field. After the last attempt, the Job is escalated to a person.
pub fn an_answer_without_its_fields_is_handed_over() -> Case {
    let incomplete =
        || say("Order A-17 is refunded.\n```json\n{\"order_id\": \"A-17\", \"status\": \"refunded\"}\n```");
    Case::new(refunds(), GOAL, conversation("A-17", [incomplete(), incomplete(), incomplete(), incomplete()]))
}

/// The model receives the gate's objection, calls a tool and answers a second time.
pub fn an_answer_that_failed_comes_back_with_evidence() -> Case {
    let turns = [
        Turn::answer("A-17"),
        call("check_eligibility", json!({"order_id": "A-17"})).after_feedback("nothing was looked up"),
        Turn::answer("A-17, which is eligible,"),
    ];
    let failed = fails("GOAL_NOT_MET", "nothing was looked up", "TOOL_CALL");
    Case::new(refunds(), GOAL, conversation("A-17", turns).ruling(failed))
}

/// The agent knows what its answer is judged by. After an objection to its tone, it answers a second time without a tool call.
pub fn an_answer_that_failed_for_its_wording_is_rewritten() -> Case {
    let fields = json!({"order_id": "A-17", "status": "refunded", "next_steps": ["Wait for the money."]});
    let says = |prose: &str| say(&format!("{prose}\n```json\n{fields}\n```"));
    let turns = [
        says("A-17: 49.90 refunded."),
        says("We have refunded 49.90 for your order A-17.").after_feedback("too curt. Only its wording has to change"),
    ];
    let failed = fails("TONE_MISMATCH", "too curt", "REWRITE");
    Case::new(refunds(), GOAL, conversation("A-17", turns).expect_system("The customer is addressed").ruling(failed))
        .with_skill(|spec| {
            spec.acceptance_criteria = vec!["The customer is addressed".to_owned()];
        })
}

/// A call of a workflow's step is denied until the steps before it are done.
pub fn a_workflow_binds_the_order_of_its_steps() -> Case {
    let refund = || call("process_refund", json!({"order_id": "A-17", "amount": 49.9}));
    let turns = [
        refund(),
        call("verify_identity", json!({"order_id": "A-17", "email": "customer-17@example.com"}))
            .and_call("check_eligibility", json!({"order_id": "A-17"}))
            .after_result("Denied"),
        refund(),
        Turn::answer("A-17").after_result("refunded"),
    ];
    Case::new(tier_one(), GOAL, conversation("A-17", turns))
}
