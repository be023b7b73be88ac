//! The stages of a conversation, from the intent to the polish.

use bloomery_crds::v1alpha1::{Limits, ModelProvider};
use serde_json::json;

use super::GOAL;
use crate::script::{Conversation, conversation, refund_of};
use crate::skills::{refunds, tier_one};
use crate::suite::Case;

/// The model verifies, checks, refunds and answers.
pub fn a_refund_passes_every_gate() -> Case {
    Case::new(refunds(), GOAL, refund_of("A-17"))
}

/// The Job goes through all stages: intent, workflow, the gate of each call, the judgement of the answer, and polish.
pub fn all_six_stages_of_cs_tier_1() -> Case {
    Case::new(tier_one(), GOAL, with_tier_one_stages(refund_of("A-17")))
}

/// The same with Anthropic's protocol, which requires that the client returns thoughts unchanged.
pub fn all_six_stages_with_anthropic() -> Case {
    let conversation = with_tier_one_stages(refund_of("A-17").thinking("Who is it, first of all?"));
    Case::new(tier_one(), GOAL, conversation).with_provider(ModelProvider::Anthropic)
}

fn with_tier_one_stages(conversation: Conversation) -> Conversation {
    conversation
        .intent("intent_refund", json!({"order_id": "A-17"}))
        .expect_system("Never be dismissive to frustrated customers")
        .ruling(json!({"passed": true, "score": 0.9, "reasons": []}))
        .polished("Good news: order A-17 is refunded!")
        .expect_schemas()
}

/// A goal outside the Skill's intents ends the Job after one request to the model and without a tool call.
pub fn a_goal_out_of_domain_is_redirected() -> Case {
    Case::new(tier_one(), "What will the weather be?", conversation("weather", []).out_of_domain())
}

/// The limit on steps is too low for the goal.
pub fn a_job_ends_at_its_steps() -> Case {
    let mut case = Case::new(refunds(), GOAL, refund_of("A-17"));
    case.limits = Some(Limits { steps: Some(2), ..Limits::default() });
    case
}
