//! Models that are in trouble, and those that are asked for less.

use bloomery_crds::v1alpha1::{ModelProvider, ModelSpec};
use serde_json::json;

use super::GOAL;
use crate::json::typed;
use crate::script::{Turn, call, conversation, raw_call, refund_of, say};
use crate::skills::{refunds, tier_one};
use crate::suite::{Case, model};

/// One provider refuses every turn; the other is told the conversation in its own form, and goes on.
pub fn a_model_that_fails_is_replaced_by_its_fallback() -> Case {
    let refuses = conversation("A-17", [say("").fault(json!({"status": 400, "times": "always"}))]).of_model("broken");
    let broken =
        ModelSpec { model: "broken".to_owned(), fallback: vec!["other".to_owned()], ..model(ModelProvider::Openai) };
    let mut case = Case::of(refunds(), GOAL, refuses);
    case.conversations.push(refund_of("A-17").of_model("scripted"));
    case.models = vec![("default", broken), ("other", model(ModelProvider::Anthropic))];
    case
}

/// Too many requests, a stream that is cut, an error inside of one: asked again, and nothing is done twice.
pub fn a_model_that_is_busy_is_asked_again() -> Case {
    let conversation = refund_of("A-17")
        .fault(0, json!({"status": 429, "retryAfter": 1}))
        .fault(2, json!({"cut": "reset"}))
        .fault(3, json!({"errorInside": 529}));
    Case::of(refunds(), GOAL, conversation)
}

/// More tools than the Skill wants in a prompt: the model is offered those that it chose.
pub fn tools_are_selected_where_there_are_many() -> Case {
    let turns = [
        call("check_eligibility", json!({"order_id": "A-17"})).offered(&["check_eligibility"]).not_offered(&[
            "verify_identity",
            "track_order",
            "process_refund",
        ]),
        Turn::answer("A-17, which is eligible,").after_result("eligible"),
    ];
    let chosen = json!({"json": {"tools": ["check_eligibility"]}});
    Case::of(refunds(), GOAL, conversation("A-17", turns).stage("selection", chosen))
        .with(|spec| spec.engine = Some(typed(json!({"toolSelection": {"max": 3}}))))
}

/// A server that knows no schemas of answers is asked for JSON in words.
pub fn a_model_that_knows_no_schemas_is_asked_in_words() -> Case {
    let conversation = refund_of("A-17")
        .intent("intent_refund", json!({"order_id": "A-17"}))
        .ruling(json!({"passed": true, "score": 0.9, "reasons": []}))
        .not_knowing(&["response_format"]);
    Case::of(tier_one(), GOAL, conversation)
}

/// Fields and events of a later version of its protocol, keep-alives, other line ends: what it says is what counts.
pub fn a_model_that_writes_as_few_do_is_understood() -> Case {
    Case::of(refunds(), GOAL, refund_of("A-17").unusual()).speaking(ModelProvider::Anthropic)
}

/// One key twice, no JSON, no object, fields that the tool does not have: nothing is called, and the model is told why.
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
    Case::of(refunds(), GOAL, conversation("A-17", turns))
}
