//! What only a person can say, where nobody is there to be asked.

use serde_json::json;

use super::GOAL;
use crate::harness::{Turn, call, conversation, fails, refunds, tier_one};
use crate::suite::Case;

/// Asking is not offered, and who asks all the same is told so.
pub fn a_question_that_nobody_hears_is_denied() -> Case {
    let turns = [
        call("ask_user", json!({"text": "Is it broken?", "choices": ["yes", "no"]})).not_offered(&["ask_user"]),
        call("check_eligibility", json!({"order_id": "A-17"})).after_result("there is no tool"),
        Turn::answer("A-17").after_result("eligible"),
    ];
    Case::of(refunds(), GOAL, conversation("A-17", turns))
}

/// The goal does not say what its intent requires.
pub fn a_goal_that_leaves_out_what_is_required_ends() -> Case {
    let conversation = conversation("money back", []).intent("intent_refund", json!({}));
    Case::of(tier_one(), "I want my money back", conversation)
}

/// The gate finds that the answer depends on what only a person knows: the draft is handed over.
pub fn an_answer_that_a_person_has_to_complete_is_handed_over() -> Case {
    let turns = [call("check_eligibility", json!({"order_id": "A-17"})), Turn::answer("A-17").after_result("eligible")];
    let ruling = fails("GOAL_NOT_MET", "which of two parcels arrived broken", "CLARIFY_USER");
    Case::of(refunds(), GOAL, conversation("A-17", turns).ruling(ruling))
}
