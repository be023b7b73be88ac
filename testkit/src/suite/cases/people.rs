//! What only a person can say: the Job rests until it is said.

use bloomery_crds::v1alpha1::ApprovalVerdict;
use serde_json::json;

use super::GOAL;
use crate::script::{Conversation, Turn, call, conversation, fails, price, say};
use crate::skills::{refunds, supervised, tier_one};
use crate::suite::Case;

/// The model asks, and reads what is answered.
pub fn a_question_waits_for_its_answer() -> Case {
    let turns = [
        call("ask_user", json!({"text": "Is it broken?", "choices": ["yes", "no"]})).offered(&["ask_user"]),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("yes"),
        Turn::answer("A-17").after_result("eligible"),
    ];
    Case::of(refunds(), GOAL, conversation("A-17", turns)).answered(&["yes"])
}

/// An order whose refund is the supervisor's to decide on.
const DEAR: &str = "A-443";

/// Checks an order that is dear, refunds it, and answers when it has heard of what was decided.
fn dear(told: &str) -> Conversation {
    let turns = [
        call("check_eligibility", json!({"order_id": DEAR})),
        call("process_refund", json!({"order_id": DEAR, "amount": price(DEAR)})).after_result("true"),
        Turn::answer(DEAR).after_result(told),
    ];
    conversation(DEAR, turns)
}

/// The call is made once, in the attempt after the decision.
pub fn a_call_that_is_approved_is_made() -> Case {
    Case::of(supervised(), "Refund order A-443", dear("refunded")).decided(ApprovalVerdict::Approve, "it is in order")
}

/// The call is not made; why not is told to the model.
pub fn a_call_that_a_person_denies_is_told_and_the_model_goes_on() -> Case {
    let told = "denied it for supervisor: it arrived whole";
    Case::of(supervised(), "Refund order A-443", dear(told)).decided(ApprovalVerdict::Deny, "it arrived whole")
}

/// What is asked in one answer is put at once; it goes on when all of it is answered.
pub fn questions_are_put_together_and_so_are_answers() -> Case {
    let turns = [
        call("ask_user", json!({"text": "Is it broken?"})).and_call("ask_user", json!({"text": "Since when?"})),
        Turn::answer("A-17").after_result("yesterday"),
    ];
    Case::of(refunds(), GOAL, conversation("A-17", turns)).answered(&["yes", "yesterday"])
}

/// The goal does not say what its intent requires.
pub fn a_goal_that_leaves_out_what_is_required_is_completed() -> Case {
    let turns = [
        call("verify_identity", json!({"order_id": "A-17", "email": "customer-17@example.com"}))
            .after_feedback("order_id: A-17"),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("true"),
        call("process_refund", json!({"order_id": "A-17", "amount": 49.9})).after_result("true"),
        Turn::answer("A-17").after_result("refunded"),
    ];
    let conversation = conversation("money back", turns).intent("intent_refund", json!({}));
    Case::of(tier_one(), "I want my money back", conversation).answered(&["A-17"])
}

/// The gate finds that the answer depends on what only a person knows: it is given anew with that.
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
    Case::of(refunds(), GOAL, conversation("A-17", turns).ruling(ruling).ruling(passes)).answered(&["the second one"])
}
