use super::*;
use crate::stage_prompt::data;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

fn skill() -> SkillSpec {
    serde_json::from_value(json!({
        "problem": {"statement": "Help customers track orders and process refunds"},
        "intents": {
            "supported": [
                {
                    "id": "intent_refund", "description": "Customer wants refund",
                    "examples": ["I want my money back", "Refund please"],
                    "entities": [
                        {"name": "order_id", "type": "string", "required": true},
                        {"name": "amount", "type": "number"},
                        {"name": "parcels", "type": "integer"},
                        {"name": "broken", "type": "boolean", "required": true},
                    ],
                },
                {"id": "intent_track"},
            ],
            "outOfDomain": {"action": "redirect", "message": "I can only help with orders and refunds"},
        },
    }))
    .unwrap()
}

fn intents() -> Intents {
    skill().intents.unwrap()
}

#[test]
fn the_whole_prompt() {
    let prompt = prompt(&skill(), &data("goal", "Refund order A-17"));
    insta::assert_snapshot!(format!("{}\n=====\n{}", prompt.system, prompt.user));
}

#[rstest]
#[case::with_entities("{\"intent\": \"intent_refund\", \"entities\": {\"order_id\": \"A-17\", \"amount\": 12.5, \"parcels\": 2, \"broken\": true}}", json!({"id": "intent_refund", "entities": {"order_id": "A-17", "amount": 12.5, "parcels": 2, "broken": true}, "outOfDomain": false}))]
#[case::fenced("```json\n{\"intent\": \"intent_track\", \"entities\": {}}\n```", json!({"id": "intent_track", "outOfDomain": false}))]
#[case::without_entities("{\"intent\": \"intent_track\"}", json!({"id": "intent_track", "outOfDomain": false}))]
#[case::null_and_blank_are_not_named("{\"intent\": \"intent_refund\", \"entities\": {\"order_id\": \" \", \"amount\": null}}", json!({"id": "intent_refund", "outOfDomain": false}))]
#[case::a_whole_number_is_a_number("{\"intent\": \"intent_refund\", \"entities\": {\"amount\": 5}}", json!({"id": "intent_refund", "entities": {"amount": 5}, "outOfDomain": false}))]
#[case::out_of_domain("{\"intent\": null}", json!({"outOfDomain": true}))]
fn an_answer_is_read(#[case] answer: &str, #[case] detected: Value) {
    assert_eq!(serde_json::to_value(read(answer, &intents()).unwrap()).unwrap(), detected);
}

/// The schema for providers requires every entity, and null for an entity without a value.
#[test]
fn the_schema_has_every_entity_and_its_answers_are_read() {
    let schema = prompt(&skill(), "Refund order A-17").answer_schema.unwrap().schema;
    let nullable = |kind: &str| json!({"type": [kind, "null"]});
    let entities = json!({"amount": nullable("number"), "broken": nullable("boolean"), "order_id": nullable("string"), "parcels": nullable("integer")});
    assert_eq!(schema["properties"]["entities"]["properties"], entities);
    let ids = json!({"type": ["string", "null"], "enum": ["intent_refund", "intent_track", null]});
    assert_eq!(schema["properties"]["intent"], ids);
    for object in [&schema, &schema["properties"]["entities"]] {
        let fields: Vec<&String> = object["properties"].as_object().unwrap().keys().collect();
        assert_eq!((&object["required"], &object["additionalProperties"]), (&json!(fields), &json!(false)));
    }
    let nothing = json!({"amount": null, "broken": null, "order_id": null, "parcels": null});
    for id in [json!("intent_track"), json!(null)] {
        let answer = json!({"intent": id, "entities": nothing});
        assert!(jsonschema::is_valid(&schema, &answer));
        assert_eq!(read(&answer.to_string(), &intents()).unwrap().out_of_domain, id.is_null());
    }
}

#[test]
fn an_entity_of_two_types_may_be_of_either() {
    let mut skill = skill();
    let track = &mut skill.intents.as_mut().unwrap().supported[1];
    track.entities = serde_json::from_value(json!([{"name": "order_id", "type": "integer"}])).unwrap();
    let schema = prompt(&skill, "x").answer_schema.unwrap().schema;
    let entity = &schema["properties"]["entities"]["properties"]["order_id"];
    assert_eq!(entity, &json!({"type": ["integer", "string", "null"]}));
}

#[rstest]
#[case::prose("A refund.", "the answer has no ```json block")]
#[case::no_intent("{\"entities\": {}}", "the field \"intent\" is missing")]
#[case::an_unknown_intent(
    "{\"intent\": \"intent_refnud\"}",
    "there is no intent \"intent_refnud\", but intent_refund, intent_track and null; the nearest is \"intent_refund\""
)]
#[case::an_intent_of_another_case(
    "{\"intent\": \"INTENT_TRACK\"}",
    "there is no intent \"INTENT_TRACK\", but intent_refund, intent_track and null; the nearest is \"intent_track\""
)]
#[case::several_intents(
    "{\"intent\": [\"intent_refund\"]}",
    "the field \"intent\" is neither the id of an intent nor null"
)]
#[case::an_unknown_entity(
    "{\"intent\": \"intent_refund\", \"entities\": {\"order\": \"A-17\"}}",
    "the intent \"intent_refund\" has no entity \"order\": it has order_id, amount, parcels, broken"
)]
#[case::an_entity_of_another_intent(
    "{\"intent\": \"intent_track\", \"entities\": {\"order_id\": \"A-17\"}}",
    "the intent \"intent_track\" has no entity \"order_id\": it has none"
)]
#[case::a_number_in_quotes(
    "{\"intent\": \"intent_refund\", \"entities\": {\"amount\": \"12\"}}",
    "the entity \"amount\" is not of the type number"
)]
#[case::a_number_for_a_string(
    "{\"intent\": \"intent_refund\", \"entities\": {\"order_id\": 17}}",
    "the entity \"order_id\" is not of the type string"
)]
#[case::a_fraction_for_an_integer(
    "{\"intent\": \"intent_refund\", \"entities\": {\"parcels\": 1.5}}",
    "the entity \"parcels\" is not of the type integer"
)]
#[case::a_list(
    "{\"intent\": \"intent_refund\", \"entities\": {\"order_id\": [\"A-17\"]}}",
    "the entity \"order_id\" is not of the type string"
)]
#[case::entities_out_of_domain(
    "{\"intent\": null, \"entities\": {\"order_id\": \"A-17\"}}",
    "without an intent there are no entities"
)]
#[case::entities_in_a_list(
    "{\"intent\": \"intent_track\", \"entities\": []}",
    "the field \"entities\" is not an object"
)]
#[case::another_field(
    "{\"intent\": \"intent_track\", \"confidence\": 0.5}",
    "the field \"confidence\" is not asked for"
)]
#[case::a_duplicate_key(
    "{\"intent\": \"intent_track\", \"intent\": null}",
    "the answer cannot be read as JSON: the key \"intent\" appears twice in one object"
)]
fn an_ambiguous_answer_is_an_error(#[case] answer: &str, #[case] error: &str) {
    assert_eq!(read(answer, &intents()), Err(Error::from(error)));
}

#[test]
fn an_entity_is_bounded() {
    let answer = json!({"intent": "intent_refund", "entities": {"order_id": "x".repeat(2000)}}).to_string();
    assert!(read(&answer, &intents()).unwrap_err().to_string().contains("longer than 1024"));
}

#[rstest]
#[case::both("{\"intent\": \"intent_refund\"}", &["order_id", "broken"])]
#[case::one("{\"intent\": \"intent_refund\", \"entities\": {\"broken\": false}}", &["order_id"])]
#[case::blank("{\"intent\": \"intent_refund\", \"entities\": {\"broken\": false, \"order_id\": \"\"}}", &["order_id"])]
#[case::none("{\"intent\": \"intent_track\"}", &[])]
#[case::out_of_domain("{\"intent\": null}", &[])]
fn required_entities_that_the_goal_does_not_name_are_missing(#[case] answer: &str, #[case] names: &[&str]) {
    assert_eq!(missing_entities(&intents(), &read(answer, &intents()).unwrap()), names);
}

proptest! {
    #[test]
    fn no_answer_panics(answer in "(```json\n|\n```|[{}\\[\\]:,]|\"intent\"|\"entities\"|\"intent_refund\"|\"amount\"|null|true|-?[0-9]{1,3}|é){0,24}") {
        if let Ok(detected) = read(&answer, &intents()) {
            prop_assert_eq!(detected.id.is_none(), detected.out_of_domain);
        }
    }
}
