//! Tests of the model over real HTTP, with requests as a worker sends them.

mod anthropic;
mod faults;
mod protocol;
mod scripts;
mod stages;
mod streams;
mod structured;

use serde_json::{Value, json};

use super::script::Script;
use super::*;
use crate::serving::Running;

/// A script that refunds an order in three turns.
const REFUND: &str = r#"
conversations:
  - name: refund
    match: {goal: A-17}
    turns:
      - calls: [{name: verify_identity, arguments: {order_id: A-17, email: a@example.com}}]
      - say: Looking.
        calls:
          - {name: check_eligibility, arguments: {order_id: A-17}}
          - {name: track_order, rawArguments: '{"order_id": '}
      - say: |
          Done.
          ```json
          {"order_id": "A-17"}
          ```
        usage: {promptTokens: 1200, completionTokens: 45}
"#;

async fn model(script: &str) -> Running {
    let server = ModelServer::new(Script::from_yaml(script).unwrap());
    server.start(([127, 0, 0, 1], 0).into()).await.unwrap()
}

/// Returns a request of the Job `job-1` with these messages after its goal.
fn request(history: &[Value]) -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": "You are a Support Agent."}),
        json!({"role": "user", "content": "Refund order A-17, it arrived broken"}),
    ];
    messages.extend_from_slice(history);
    let tools = ["verify_identity", "check_eligibility", "track_order"].map(tool);
    json!({"model": "gpt-test", "user": "job-1", "messages": messages, "tools": tools})
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

/// Returns an answer of the model with one call.
fn call(id: &str, name: &str) -> Value {
    json!({
        "role": "assistant", "content": null,
        "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}],
    })
}

/// Returns the message with the result of a call.
fn result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

async fn send(model: &Running, body: &Value) -> reqwest::Response {
    let url = format!("{}/v1/chat/completions", model.url());
    crate::http::client().unwrap().post(url).json(body).send().await.unwrap()
}

async fn ask(model: &Running, body: &Value) -> (u16, Value) {
    let answer = send(model, body).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn control<T: serde::de::DeserializeOwned>(model: &Running, path: &str) -> T {
    let url = format!("{}/control/{path}", model.url());
    crate::http::client().unwrap().get(url).send().await.unwrap().json().await.unwrap()
}

async fn release(model: &Running, hold: &str) -> Value {
    let url = format!("{}/control/release/{hold}", model.url());
    crate::http::client().unwrap().post(url).send().await.unwrap().json().await.unwrap()
}

/// Waits until this many requests wait at holds. Returns them.
async fn until_held(model: &Running, count: usize) -> Vec<Held> {
    loop {
        let answer: Value = control(model, "held").await;
        let held: Vec<Held> = serde_json::from_value(answer["held"].clone()).unwrap();
        if held.len() == count {
            return held;
        }
        tokio::task::yield_now().await;
    }
}
