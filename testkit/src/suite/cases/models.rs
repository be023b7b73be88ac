//! Models that fail, and requests with fewer tools or without schemas.

use bloomery_crds::v1alpha1::{ModelProvider, ModelSpec};
use serde_json::json;

use super::GOAL;
use crate::json::typed;
use crate::script::{Turn, call, conversation, raw_call, refund_of, say};
use crate::skills::{refunds, tier_one};
use crate::suite::{Case, model};

/// A provider refuses every turn. The fallback of another provider continues the conversation.
pub fn a_model_that_fails_is_replaced_by_its_fallback() -> Case {
    let refuses = conversation("A-17", [say("").fault(json!({"status": 400, "times": "always"}))]).for_model("broken");
    let broken =
        ModelSpec { model: "broken".to_owned(), fallback: vec!["other".to_owned()], ..model(ModelProvider::Openai) };
    let mut case = Case::new(refunds(), GOAL, refuses);
    case.conversations.push(refund_of("A-17").for_model("scripted"));
    case.models = vec![("default", broken), ("other", model(ModelProvider::Anthropic))];
    case
}

/// The worker retries after a rate limit, a stream that is cut off and an error within a stream. It repeats no tool call.
pub fn a_model_that_is_busy_is_asked_again() -> Case {
    let conversation = refund_of("A-17")
        .fault(0, json!({"status": 429, "retryAfter": 1}))
        .fault(2, json!({"cut": "reset"}))
        .fault(3, json!({"errorInside": 529}));
    Case::new(refunds(), GOAL, conversation)
}

/// There are more tools than the Skill allows in a prompt. The model first selects some, and is then offered only these.
pub fn tools_are_selected_where_there_are_many() -> Case {
    let turns = [
        call("check_eligibility", json!({"order_id": "A-17"})).offered(&["check_eligibility"]).not_offered(&[
            "verify_identity",
            "track_order",
            "process_refund",
        ]),
        Turn::answer("A-17, which is eligible,").after_result("eligible"),
    ];
    let selection = json!({"json": {"tools": ["check_eligibility"]}});
    Case::new(refunds(), GOAL, conversation("A-17", turns).stage("selection", selection))
        .with_skill(|spec| spec.engine = Some(typed(json!({"toolSelection": {"max": 3}}))))
}

/// The model's server does not support schemas for answers, so the prompt asks for JSON.
pub fn a_model_that_knows_no_schemas_is_asked_in_words() -> Case {
    let conversation = refund_of("A-17")
        .intent("intent_refund", json!({"order_id": "A-17"}))
        .ruling(json!({"passed": true, "score": 0.9, "reasons": []}))
        .with_unknown_fields(&["response_format"]);
    Case::new(tier_one(), GOAL, conversation)
}

/// The client accepts unknown fields and events, comments and CRLF line endings in a stream.
pub fn a_model_that_writes_as_few_do_is_understood() -> Case {
    Case::new(refunds(), GOAL, refund_of("A-17").unusual()).with_provider(ModelProvider::Anthropic)
}

/// The worker does not send arguments that have a duplicate key, are invalid JSON, are not an object, or have unknown
/// fields. The model receives the reason.
pub fn arguments_that_cannot_be_used_are_told() -> Case {
    let turns = [
        raw_call("process_refund", r#"{"order_id": "A-17", "amount": 1, "amount": 49.9}"#),
        raw_call("process_refund", r#"{"order_id": "A-17", "amount": "#)
            .after_result("the key \"amount\" appears twice"),
        raw_call("process_refund", r#"["A-17", 49.9]"#).after_result("the arguments cannot be used"),
        raw_call("process_refund", r#"{"order_id": "A-17", "amount": 1, "force": true}"#)
            .after_result("the arguments are not a JSON object"),
        call("process_refund", json!({"order_id": "A-17", "amount": 49.9})).after_result("force"),
        Turn::answer("A-17").after_result("refunded"),
    ];
    Case::new(refunds(), GOAL, conversation("A-17", turns))
}
