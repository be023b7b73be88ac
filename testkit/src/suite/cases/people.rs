//! Questions and approvals, for which a Job waits.

use bloomery_crds::v1alpha1::ApprovalVerdict;
use serde_json::json;

use super::GOAL;
use crate::script::{Conversation, Turn, call, conversation, fails, price, say};
use crate::skills::{refunds, supervised, tier_one};
use crate::suite::Case;

/// The model asks a question and receives the answer.
pub fn a_question_waits_for_its_answer() -> Case {
    let turns = [
        call("ask_user", json!({"text": "Is it broken?", "choices": ["yes", "no"]})).offered(&["ask_user"]),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("yes"),
        Turn::answer("A-17").after_result("eligible"),
    ];
    Case::new(refunds(), GOAL, conversation("A-17", turns)).with_replies(&["yes"])
}

/// An order whose price requires an approval.
const EXPENSIVE_ORDER: &str = "A-443";

/// Checks and refunds the expensive order, and answers once the result of the refund contains `part`.
fn refund_with_approval(part: &str) -> Conversation {
    let turns = [
        call("check_eligibility", json!({"order_id": EXPENSIVE_ORDER})),
        call("process_refund", json!({"order_id": EXPENSIVE_ORDER, "amount": price(EXPENSIVE_ORDER)}))
            .after_result("true"),
        Turn::answer(EXPENSIVE_ORDER).after_result(part),
    ];
    conversation(EXPENSIVE_ORDER, turns)
}

/// The call is made once, in the attempt after the approval.
pub fn a_call_that_is_approved_is_made() -> Case {
    Case::new(supervised(), "Refund order A-443", refund_with_approval("refunded"))
        .with_decision(ApprovalVerdict::Approve, "it is in order")
}

/// The call is not made, and the model receives the reason.
pub fn a_call_that_a_person_denies_is_told_and_the_model_goes_on() -> Case {
    let reason = "denied it for supervisor: it arrived whole";
    Case::new(supervised(), "Refund order A-443", refund_with_approval(reason))
        .with_decision(ApprovalVerdict::Deny, "it arrived whole")
}

/// The questions of one answer of the model are asked together. The Job continues once all have a reply.
pub fn questions_are_put_together_and_so_are_answers() -> Case {
    let turns = [
        call("ask_user", json!({"text": "Is it broken?"})).and_call("ask_user", json!({"text": "Since when?"})),
        Turn::answer("A-17").after_result("yesterday"),
    ];
    Case::new(refunds(), GOAL, conversation("A-17", turns)).with_replies(&["yes", "yesterday"])
}

/// The goal lacks an entity that its intent requires, so the worker asks for it.
pub fn a_goal_that_leaves_out_what_is_required_is_completed() -> Case {
    let turns = [
        call("verify_identity", json!({"order_id": "A-17", "email": "customer-17@example.com"}))
            .after_feedback("order_id: A-17"),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("true"),
        call("process_refund", json!({"order_id": "A-17", "amount": 49.9})).after_result("true"),
        Turn::answer("A-17").after_result("refunded"),
    ];
    let conversation = conversation("money back", turns).intent("intent_refund", json!({}));
    Case::new(tier_one(), "I want my money back", conversation).with_replies(&["A-17"])
}

/// The finalization gate finds that only a person can complete the answer. The model receives the person's reply and
/// answers again.
pub fn an_answer_that_a_person_has_to_complete_is_given_anew() -> Case {
    let fields = json!({"order_id": "A-17", "status": "refunded", "next_steps": ["Keep the first one."]});
    let turns = [
        call("check_eligibility", json!({"order_id": "A-17"})),
        Turn::answer("A-17").after_result("eligible"),
        say(&format!("The second parcel of order A-17 is refunded.\n```json\n{fields}\n```"))
            .after_feedback("the second one"),
    ];
    let ruling = fails("GOAL_NOT_MET", "which of two parcels arrived broken", "CLARIFY_USER");
    let passes = json!({"passed": true, "score": 1.0, "reasons": []});
    Case::new(refunds(), GOAL, conversation("A-17", turns).ruling(ruling).ruling(passes))
        .with_replies(&["the second one"])
}
