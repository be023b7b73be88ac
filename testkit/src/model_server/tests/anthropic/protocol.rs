//! Tests of keys, versions, errors and refused requests.

use super::*;
use crate::model_server::violation::Rule;

const ANY: &str = "conversations: [{name: any, turns: [{say: a}, {say: b}, {say: c}]}]";

/// Sends a request that is refused. Returns the broken rule and the message.
async fn refused(body: &Value, version: &str) -> (Rule, String) {
    let model = model(ANY).await;
    let answer = send_as(&model, body, version).await;
    let status = answer.status();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!((status.as_u16(), &answer["type"]), (400, &json!("error")), "{answer}");
    assert_eq!(answer["error"]["type"], "invalid_request_error");
    let violations: Violations = control(&model, "violations").await;
    let [violation] = violations.violations.as_slice() else { panic!("{violations:?}") };
    assert_eq!(answer["error"]["message"], violation.message.as_str());
    (violation.rule, violation.message.clone())
}

fn call() -> Value {
    assistant_message(json!([tool_use("c1", "track_order")]))
}

#[rstest::rstest]
#[case::no_result(vec![call(), user_message(json!("well?"))], Rule::OneResultPerCall, "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: c1.")]
#[case::late_result(vec![call(), user_message(json!([{"type": "text", "text": "so"}, tool_result("c1", "ok")]))], Rule::OneResultPerCall, "immediately after: c1.")]
#[case::two_results(vec![call(), user_message(json!([tool_result("c1", "ok"), tool_result("c1", "ok")]))], Rule::OneResultPerCall, "Found multiple `tool_result` blocks with id: c1")]
#[case::no_call(vec![assistant_message(json!("Hm.")), user_message(json!([tool_result("c1", "ok")]))], Rule::ResultHasCall, "unexpected `tool_use_id` found in `tool_result` blocks: c1.")]
#[case::same_id(vec![call(), user_message(json!([tool_result("c1", "ok")])), call(), user_message(json!([tool_result("c1", "ok")]))], Rule::UniqueCallIds, "`tool_use` ids must be unique: c1")]
#[case::text_arguments(vec![assistant_message(json!([{"type": "tool_use", "id": "c1", "name": "t", "input": "{}"}])), user_message(json!([tool_result("c1", "ok")]))], Rule::MessageShape, "messages.1.content.0: input: Input should be a valid dictionary")]
#[case::call_name(vec![assistant_message(json!([tool_use("c1", "orders.refund")])), user_message(json!([tool_result("c1", "ok")]))], Rule::ToolNames, "messages.1.content.0: name: String should match")]
#[case::unknown_field_of_a_result(vec![call(), user_message(json!([{"type": "tool_result", "tool_use_id": "c1", "content": "ok", "name": "t"}]))], Rule::KnownFields, "messages.2.content.0.tool_result.name: Extra inputs are not permitted")]
#[case::result_of_the_model(vec![assistant_message(json!([tool_result("c1", "ok")])), user_message(json!("so?"))], Rule::MessageShape, "`tool_result` blocks can only be in `user` messages")]
#[case::prefill(vec![assistant_message(json!("The answer is"))], Rule::Roles, "does not support assistant message prefill")]
#[case::empty(vec![assistant_message(json!("")), user_message(json!("so?"))], Rule::MessageShape, "messages.1: all messages must have non-empty content")]
#[case::empty_text(vec![assistant_message(json!([{"type": "text", "text": ""}])), user_message(json!("so?"))], Rule::MessageShape, "messages.1.content.0: text content blocks must be non-empty")]
#[case::blank_text(vec![assistant_message(json!([{"type": "text", "text": " \n"}])), user_message(json!("so?"))], Rule::MessageShape, "text content blocks must contain non-whitespace text")]
#[case::role_of_openai(vec![json!({"role": "tool", "content": "ok"})], Rule::MessageShape, "messages.1.role: Input should be")]
#[case::calls_of_openai(vec![json!({"role": "assistant", "content": "a", "tool_calls": []}), user_message(json!("so?"))], Rule::KnownFields, "messages.1.tool_calls: Extra inputs are not permitted")]
#[case::unknown_block(vec![user_message(json!([{"type": "input_text", "text": "a"}]))], Rule::MessageShape, "Input tag 'input_text' found using 'type'")]
#[tokio::test]
async fn a_broken_history_is_a_violation(#[case] history: Vec<Value>, #[case] rule: Rule, #[case] why: &str) {
    let (broken, message) = refused(&body(&history), "2023-06-01").await;
    assert!(broken == rule && message.contains(why), "{broken:?}: {message}");
}

#[rstest::rstest]
#[case::no_max_tokens("max_tokens", Value::Null, Rule::RequiredFields, "max_tokens: Field required")]
#[case::max_tokens("max_tokens", json!("many"), Rule::RequiredFields, "max_tokens: Input should be a valid integer")]
#[case::format_of_openai("response_format", json!({"type": "json_object"}), Rule::KnownFields, "response_format: Extra inputs are not permitted")]
#[case::user_of_openai("user", json!("job-1"), Rule::KnownFields, "user: Extra inputs are not permitted")]
#[case::metadata("metadata", json!({"user_id": "job-1", "job": "a"}), Rule::KnownFields, "metadata.job: Extra inputs")]
#[case::no_system("system", Value::Null, Rule::SystemFirst, "does not begin with a system prompt")]
#[case::no_messages("messages", json!([]), Rule::MessageShape, "at least one message is required")]
#[case::budget("thinking", json!({"type": "enabled", "budget_tokens": 100}), Rule::MessageShape, "greater than or equal to 1024")]
#[case::no_budget_left("thinking", json!({"type": "enabled", "budget_tokens": 1024}), Rule::MessageShape, "`max_tokens` must be greater than `thinking.budget_tokens`")]
#[case::mode("thinking", json!({"type": "on"}), Rule::MessageShape, "thinking.type: Input should be")]
#[case::open_schema("output_config", json!({"format": {"type": "json_schema", "schema": {"type": "object"}}}), Rule::OutputSchema, "'additionalProperties' must be explicitly set to false")]
#[case::no_schema("output_config", json!({"format": {"type": "json_schema"}}), Rule::OutputSchema, "output_config.format.schema: Field required")]
#[case::named_schema("output_config", json!({"format": {"type": "json_schema", "name": "a", "schema": {}}}), Rule::KnownFields, "output_config.format.name: Extra inputs")]
#[case::old_name("output_format", json!({}), Rule::KnownFields, "output_format: Extra inputs are not permitted")]
#[case::tool("tools", json!([{"name": "a b", "input_schema": {"type": "object"}}]), Rule::ToolNames, "tools.0.custom.name: String should match pattern")]
#[case::tool_schema("tools", json!([{"name": "a", "parameters": {}, "input_schema": {"type": "object"}}]), Rule::KnownFields, "tools.0.custom.parameters: Extra inputs")]
#[case::no_tool_schema("tools", json!([{"name": "a"}]), Rule::RequiredFields, "tools.0.custom.input_schema: Field required")]
#[case::same_tool("tools", json!([{"name": "a", "input_schema": {"type": "object"}}, {"name": "a", "input_schema": {"type": "object"}}]), Rule::ToolNames, "Tool names must be unique")]
#[tokio::test]
async fn a_field_that_the_api_refuses_is_a_violation(
    #[case] field: &str,
    #[case] value: Value,
    #[case] rule: Rule,
    #[case] why: &str,
) {
    let mut body = body(&[]);
    body[field] = value;
    let (broken, message) = refused(&body, "2023-06-01").await;
    assert!(broken == rule && message.contains(why), "{broken:?}: {message}");
}

#[tokio::test]
async fn a_history_with_calls_requires_tools() {
    let mut body = body(&[call(), user_message(json!([tool_result("c1", "ok")]))]);
    body["tools"] = json!([]);
    let (rule, message) = refused(&body, "2023-06-01").await;
    assert!(rule == Rule::RequiredFields && message.contains("must define tools"), "{message}");
}

#[rstest::rstest]
#[case::old("2023-06-01", None)]
#[case::new("2026-10-21", Some("temperature: Extra inputs are not permitted"))]
#[case::other("2024-01-01", Some("anthropic-version: \"2024-01-01\" is not a valid version"))]
#[tokio::test]
async fn the_version_decides_which_fields_exist(#[case] version: &str, #[case] why: Option<&str>) {
    let mut body = body(&[]);
    body["temperature"] = json!(1.0);
    match why {
        Some(why) => assert!(refused(&body, version).await.1.contains(why)),
        None => assert_eq!(send_as(&model(ANY).await, &body, version).await.status(), 200),
    }
}

#[tokio::test]
async fn a_request_without_a_version_is_refused() {
    let model = model(ANY).await;
    let url = format!("{}/v1/messages", model.url());
    let answer = crate::http::client().unwrap().post(url).json(&body(&[])).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["error"]["message"], "anthropic-version: header is required");
}

#[tokio::test]
async fn consecutive_messages_of_one_role_are_one_turn() {
    let model = model(ANY).await;
    let history = [
        assistant_message(json!([tool_use("c1", "track_order"), tool_use("c2", "track_order")])),
        user_message(json!([tool_result("c2", "ok")])),
        user_message(json!([tool_result("c1", "ok"), {"type": "text", "text": "and?"}])),
    ];
    assert_eq!(ask(&model, &body(&history)).await.0, 200);
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_either_header_is_accepted() {
    let key = Key::Value("right".to_owned());
    let server = ModelServer::new(Script::from_yaml(ANY).unwrap()).with_key(key);
    let model = server.start(([127, 0, 0, 1], 0).into()).await.unwrap();
    let sent = async |headers: &[(&str, &str)]| {
        let url = format!("{}/v1/messages", model.url());
        let request = crate::http::client().unwrap().post(url).header("anthropic-version", "2023-06-01");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = request.json(&body(&[])).send().await.unwrap();
        (answer.status().as_u16(), answer.headers()["request-id"].clone(), answer.json::<Value>().await.unwrap())
    };
    let (status, id, answer) = sent(&[("x-api-key", "wrong"), ("authorization", "Bearer right")]).await;
    assert_eq!((status, id.to_str().unwrap()), (401, "req_0"));
    let error = json!({"type": "authentication_error", "message": "invalid x-api-key"});
    assert_eq!(answer, json!({"type": "error", "error": error, "request_id": null}));
    assert_eq!(sent(&[("x-api-key", "right")]).await.0, 200);
    assert_eq!(sent(&[("authorization", "Bearer right")]).await.0, 200);
}

#[tokio::test]
async fn the_models_are_listed_in_the_form_of_anthropic() {
    let model = model("models: [large, small]\nconversations: [{name: any, turns: [{say: a}]}]").await;
    let url = format!("{}/v1/models", model.url());
    let request = crate::http::client().unwrap().get(url).header("anthropic-version", "2023-06-01");
    let list: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&list["first_id"], &list["last_id"], &list["has_more"]),
        (&json!("large"), &json!("small"), &json!(false))
    );

    let (status, answer) = ask(&model, &body(&[])).await;
    assert_eq!((status, &answer["error"]["type"]), (404, &json!("not_found_error")));
}

#[rstest::rstest]
#[case(400, "invalid_request_error")]
#[case(403, "permission_error")]
#[case(413, "request_too_large")]
#[case(429, "rate_limit_error")]
#[case(500, "api_error")]
#[case(504, "timeout_error")]
#[case(529, "overloaded_error")]
#[tokio::test]
async fn errors_have_the_types_of_anthropic(#[case] status: u16, #[case] kind: &str) {
    let script = format!("conversations: [{{name: c, turns: [{{say: a, faults: [{{status: {status}}}]}}]}}]");
    let model = model(&script).await;
    let (code, answer) = ask(&model, &body(&[])).await;
    assert_eq!((code, &answer["type"], &answer["error"]["type"]), (status, &json!("error"), &json!(kind)));
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_an_error_in_both_protocols() {
    let model = model("conversations: [{name: c, turns: [{say: a, faults: [{tooLong: true}]}]}]").await;
    let (status, answer) = ask(&model, &body(&[])).await;
    assert_eq!((status, &answer["error"]["type"]), (400, &json!("invalid_request_error")));
    assert_eq!(answer["error"]["message"], "prompt is too long: 210000 tokens > 200000 maximum");
    let mut other = super::super::request(&[]);
    other["user"] = json!("job-2");
    let (status, answer) = super::super::ask(&model, &other).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("context_length_exceeded")));
}
