//! Tests of answers that follow a JSON schema, and of servers that do not support schemas.

use super::*;
use crate::model_server::violation::Rule;

const ANY: &str = "conversations: [{name: any, turns: [{json: {order_id: A-17}, expect: {structured: true}}]}]";

fn format(strict: bool, schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": strict, "schema": schema}})
}

fn schema() -> Value {
    json!({
        "type": "object", "required": ["order_id"], "additionalProperties": false,
        "properties": {"order_id": {"type": "string"}},
    })
}

async fn ask_with_format(model: &Running, format: Value) -> (u16, Value) {
    let mut body = request(&[]);
    body["response_format"] = format;
    ask(model, &body).await
}

#[tokio::test]
async fn a_schema_is_accepted_and_the_answer_is_json() {
    let model = model(ANY).await;
    let (status, answer) = ask_with_format(&model, format(true, &schema())).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!(r#"{"order_id":"A-17"}"#)));
    // Without `strict`, properties may be optional.
    assert_eq!(
        ask_with_format(&model, format(false, &json!({"type": "object", "properties": {"a": {}}}))).await.0,
        200
    );
    let (status, answer) = ask(&model, &request(&[])).await;
    assert_eq!(status, 400);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("the request should ask for JSON that follows a schema"), "{message}");
}

#[rstest::rstest]
#[case::additional_properties(format(true, &json!({"type": "object", "properties": {"a": {}}, "required": ["a"]})), "In context=(), 'additionalProperties' is required to be supplied and to be false.")]
#[case::optional_property(format(true, &json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false})), "Missing 'a'.")]
#[case::nested(format(true, &json!({"type": "array", "items": {"type": "object", "properties": {}}})), "In context=('items'), 'additionalProperties'")]
#[case::name(json!({"type": "json_schema", "json_schema": {"schema": {}}}), "Invalid 'response_format.json_schema.name'")]
#[case::kind(json!({"type": "xml"}), "Invalid value for 'response_format.type'")]
#[case::no_json(json!({"type": "json_object"}), "'messages' must contain the word 'json'")]
#[tokio::test]
async fn a_schema_that_openai_refuses_is_a_violation(#[case] format: Value, #[case] why: &str) {
    let model = model(ANY).await;
    let (status, answer) = ask_with_format(&model, format).await;
    assert!(status == 400 && answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    let violations: Violations = control(&model, "violations").await;
    assert_eq!(violations.violations[0].rule, Rule::OutputSchema);
}

#[rstest::rstest]
#[case::unknown("response_style", json!({}), "Unrecognized request argument supplied: response_style")]
#[case::options("stream_options", json!({"include_usage": true}), "is only allowed when 'stream' is enabled")]
#[tokio::test]
async fn a_field_that_openai_refuses_is_a_violation(#[case] field: &str, #[case] value: Value, #[case] why: &str) {
    let model = model(ANY).await;
    let mut body = request(&[]);
    body[field] = value;
    let (status, answer) = ask(&model, &body).await;
    assert!(status == 400 && answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    let violations: Violations = control(&model, "violations").await;
    assert_eq!(violations.violations[0].rule, Rule::KnownFields);
}

#[tokio::test]
async fn an_unknown_field_is_refused_without_a_violation() {
    let model = model(
        r"
conversations:
  - name: simple
    unknownFields: [response_format, output_config.format]
    turns: [{say: plain, expect: {structured: false}}]
",
    )
    .await;
    let (status, answer) = ask_with_format(&model, format(true, &schema())).await;
    assert_eq!(status, 400);
    assert_eq!(answer["error"]["message"], "Unrecognized request argument supplied: response_format");
    assert_eq!(ask(&model, &request(&[])).await.0, 200);

    let url = format!("{}/v1/messages", model.url());
    let body = json!({
        "model": "m", "max_tokens": 1, "system": "s", "messages": [{"role": "user", "content": "hi"}],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema()}},
    });
    let client = crate::http::client().unwrap();
    let answer = client.post(url).header("anthropic-version", "2026-10-21").json(&body).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["error"]["message"], "output_config.format: Extra inputs are not permitted");
    assert_eq!(control::<Violations>(&model, "violations").await, Violations::default());
}
