//! Tests of Anthropic's Messages protocol.

mod cache;
mod protocol;

use super::*;
use bloomery_crds::v1alpha1::Stage;

/// Returns a request with these messages after its goal.
fn body(history: &[Value]) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "Refund order A-17, it arrived broken"})];
    messages.extend_from_slice(history);
    let tools = ["verify_identity", "check_eligibility", "track_order"]
        .map(|name| json!({"name": name, "description": "A tool.", "input_schema": {"type": "object"}}));
    json!({
        "model": "claude-test", "max_tokens": 1024, "metadata": {"user_id": "job-1"},
        "system": "You are a Support Agent.", "messages": messages, "tools": tools,
    })
}

fn assistant_message(blocks: Value) -> Value {
    message("assistant", blocks)
}

fn message(role: &str, content: Value) -> Value {
    [("role".to_owned(), role.into()), ("content".to_owned(), content)].into_iter().collect()
}

fn tool_use(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn tool_result(id: &str, text: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": text})
}

fn user_message(results: Value) -> Value {
    message("user", results)
}

async fn send(model: &Running, body: &Value) -> reqwest::Response {
    send_as(model, body, "2023-06-01").await
}

async fn send_as(model: &Running, body: &Value, version: &str) -> reqwest::Response {
    let url = format!("{}/v1/messages", model.url());
    let client = crate::http::client().unwrap();
    client.post(url).header("anthropic-version", version).json(body).send().await.unwrap()
}

async fn ask(model: &Running, body: &Value) -> (u16, Value) {
    let answer = send(model, body).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn an_answer_has_the_form_of_anthropic() {
    let model = model(REFUND).await;
    let (status, answer) = ask(&model, &body(&[])).await;

    assert_eq!(status, 200);
    assert_eq!(
        answer,
        json!({
            "id": "msg_job-1-0",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": [{
                "type": "tool_use", "id": "call_0_0", "name": "verify_identity",
                "input": {"email": "a@example.com", "order_id": "A-17"},
            }],
            "stop_reason": "tool_use",
            "stop_sequence": null,
            "stop_details": null,
            "usage": {
                "input_tokens": 96,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 14,
                "output_tokens_details": {"thinking_tokens": 0},
                "service_tier": "standard",
            },
        })
    );
}

#[tokio::test]
async fn one_script_answers_both_protocols() {
    let model = model(REFUND).await;
    let history = [
        assistant_message(json!([tool_use("c1", "verify_identity")])),
        user_message(json!([tool_result("c1", "verified"), {"type": "text", "text": "and?"}])),
    ];
    let (_, answer) = ask(&model, &body(&history)).await;

    assert_eq!(answer["content"][0], json!({"type": "text", "text": "Looking."}));
    assert_eq!(answer["content"][1]["id"], "call_1_0");
    // Arguments that are not JSON cannot be an object, so they are sent as a string.
    assert_eq!(answer["content"][2]["input"], r#"{"order_id": "#);

    let history = [
        history[0].clone(),
        history[1].clone(),
        assistant_message(json!([tool_use("c2", "check_eligibility")])),
        user_message(json!([tool_result("c2", "eligible")])),
    ];
    let (_, last) = ask(&model, &body(&history)).await;
    assert_eq!(last["content"][0]["text"], "Done.\n```json\n{\"order_id\": \"A-17\"}\n```\n");
    assert_eq!((&last["stop_reason"], &last["usage"]["input_tokens"]), (&json!("end_turn"), &json!(1200)));

    let mut other = super::request(&[]);
    other["user"] = json!("job-2");
    assert_eq!(super::ask(&model, &other).await.0, 200);
    let requests: Requests = control(&model, "requests").await;
    assert_eq!((requests.total, requests.users["job-1"].positions, requests.users["job-2"].answered), (3, 2, 1));
}

#[tokio::test]
async fn the_system_prompt_identifies_the_other_stages() {
    let model = model(REFUND).await;
    let mut request = body(&[]);
    request["system"] = json!([{"type": "text", "text": "You are a finalization gate. Rule on it."}]);
    request["tools"] = json!([]);
    let (_, answer) = ask(&model, &request).await;
    let ruling: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(ruling["passed"], true);
    let requests: Requests = control(&model, "requests").await;
    assert_eq!(requests.users["job-1"].by_stage, [(Stage::Finalization, 1)].into());
}

#[tokio::test]
async fn a_duplicate_key_in_arguments_is_sent_unchanged() {
    let calls = r#"{calls: [{name: track_order, rawArguments: '{"a": 1, "a": 2}'}]}"#;
    let model = model(&format!("conversations: [{{name: c, turns: [{calls}]}}]")).await;
    let text = send(&model, &body(&[])).await.text().await.unwrap();
    assert!(text.contains(r#""input":{"a": 1, "a": 2}"#), "{text}");
}

#[rstest::rstest]
#[case::length("length", "max_tokens", "length")]
#[case::refusal("refusal", "refusal", "stop")]
#[case::window("contextWindow", "model_context_window_exceeded", "length")]
#[tokio::test]
async fn an_answer_can_end_early(#[case] stop: &str, #[case] anthropic: &str, #[case] openai: &str) {
    let model = model(&format!("conversations: [{{name: c, turns: [{{say: No., stop: {stop}}}]}}]")).await;
    let (_, answer) = ask(&model, &body(&[])).await;
    assert_eq!(answer["stop_reason"], anthropic);
    assert_eq!(answer["stop_details"].is_object(), stop == "refusal");

    let mut other = super::request(&[]);
    other["user"] = json!("job-2");
    let (_, answer) = super::ask(&model, &other).await;
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], openai);
    let field = if stop == "refusal" { "refusal" } else { "content" };
    assert_eq!(choice["message"][field], "No.");
}

const SCRIPT_WITH_THOUGHTS: &str = r"
conversations:
  - name: c
    turns:
      - {thinking: A broken one. Hm., redactedThinking: EmwKAhgB, calls: [{name: track_order}]}
      - {say: done}
";

#[tokio::test]
async fn the_next_request_must_return_thoughts_unchanged() {
    let model = model(SCRIPT_WITH_THOUGHTS).await;
    let (_, answer) = ask(&model, &body(&[])).await;
    let content = answer["content"].as_array().unwrap().clone();
    assert_eq!((&content[0]["thinking"], &content[1]["data"]), (&json!("A broken one. Hm."), &json!("EmwKAhgB")));
    let next = |content: &[Value]| {
        body(&[assistant_message(json!(content)), user_message(json!([tool_result("call_0_0", "ok")]))])
    };

    let mut altered = content.clone();
    altered[0]["thinking"] = json!("A broken one.");
    let mut wrongly_signed = content.clone();
    wrongly_signed[0]["signature"] = json!("ErUBCkYIAx");
    let mut other_data = content.clone();
    other_data[1]["data"] = json!("other");
    let cases = [
        (altered, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (wrongly_signed, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (other_data, "messages.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot"),
        (content[2..].to_vec(), "messages.1: `thinking` or `redacted_thinking` blocks in the latest assistant message"),
    ];
    for (content, why) in cases {
        let (status, refused) = ask(&model, &next(&content)).await;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(why), "{refused}");
    }
    assert_eq!(ask(&model, &next(&content)).await.0, 200);
}

#[tokio::test]
async fn thoughts_are_shown_as_the_request_asks() {
    let model = model(SCRIPT_WITH_THOUGHTS).await;
    let mut omitted = body(&[]);
    omitted["thinking"] = json!({"type": "adaptive", "display": "omitted"});
    let (_, answer) = ask(&model, &omitted).await;
    let signature = answer["content"][0]["signature"].as_str().unwrap().to_owned();
    assert_eq!((&answer["content"][0]["thinking"], signature.is_empty()), (&json!(""), false));
    let mut next =
        body(&[assistant_message(answer["content"].clone()), user_message(json!([tool_result("call_0_0", "ok")]))]);
    next["thinking"] = omitted["thinking"].clone();
    assert_eq!(ask(&model, &next).await.0, 200);

    let mut off = body(&[]);
    off["thinking"] = json!({"type": "disabled"});
    off["metadata"]["user_id"] = json!("job-2");
    assert_eq!(ask(&model, &off).await.1["content"][0]["type"], "tool_use");
    // OpenAI's protocol shows no thoughts.
    let mut other = super::request(&[]);
    other["user"] = json!("job-3");
    let (_, answer) = super::ask(&model, &other).await;
    assert_eq!(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 4);
    assert!(!answer.to_string().contains("broken one"), "{answer}");
}
