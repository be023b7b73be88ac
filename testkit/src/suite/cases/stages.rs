//! The stages of a conversation, from the intent to the polish.

use bloomery_crds::v1alpha1::{Limits, ModelProvider};
use serde_json::json;

use super::GOAL;
use crate::script::{Conversation, conversation, refund_of};
use crate::skills::{refunds, tier_one};
use crate::suite::Case;

/// Verify, check, refund, answer.
pub fn a_refund_passes_every_gate() -> Case {
    Case::of(refunds(), GOAL, refund_of("A-17"))
}

/// Detect the intent, bind the workflow, rule each call, judge the answer, polish it (002).
pub fn all_six_stages_of_cs_tier_1() -> Case {
    Case::of(tier_one(), GOAL, of_tier_one(refund_of("A-17")))
}

/// The same, in the words of another provider, with thoughts that it wants back to the letter.
pub fn all_six_stages_with_anthropic() -> Case {
    let conversation = of_tier_one(refund_of("A-17").thinking("Who is it, first of all?"));
    Case::of(tier_one(), GOAL, conversation).speaking(ModelProvider::Anthropic)
}

fn of_tier_one(conversation: Conversation) -> Conversation {
    conversation
        .intent("intent_refund", json!({"order_id": "A-17"}))
        .told("Never be dismissive to frustrated customers")
        .ruling(json!({"passed": true, "score": 0.9, "reasons": []}))
        .polished("Good news: order A-17 is refunded!")
        .structured()
}

/// What is none of the Skill's intents costs one request, and no tool.
pub fn a_goal_out_of_domain_is_redirected() -> Case {
    Case::of(tier_one(), "What will the weather be?", conversation("weather", []).out_of_domain())
}

/// A limit that is too low for the goal.
pub fn a_job_ends_at_its_steps() -> Case {
    let mut case = Case::of(refunds(), GOAL, refund_of("A-17"));
    case.limits = Some(Limits { steps: Some(2), ..Limits::default() });
    case
}
