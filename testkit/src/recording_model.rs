//! A model for OpenAI's protocol that answers one script, records whole requests, and can be busy or silent.
//!
//! [`crate::model_server`] is the model of realistic conversations: it checks requests strictly and serves several
//! scripts. This model is for tests that inspect the requests, or interrupt the worker at a given request.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::post};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// One answer of the script. The number of answers in the history of a request selects the next one.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Calls tools.
    Calls(Vec<(&'static str, Value)>),
    /// Answers with a text.
    Says(&'static str),
    /// Leaves the first request without an answer. The next request gets the next answer of the script.
    HangsOnce,
}

/// A running model and the requests that it received. Clones share its state.
#[derive(Debug, Clone)]
pub struct RecordingModel {
    script: Arc<Vec<Answer>>,
    has_hung: Arc<Mutex<bool>>,
    /// The number of requests that are refused first, with HTTP status 503 and `Retry-After: 1`.
    pub busy: Arc<Mutex<u32>>,
    requests: watch::Sender<Vec<Value>>,
    /// The request that is never answered, counted from 1.
    pub silent_at: Arc<Mutex<Option<usize>>>,
    /// The base URL, which ends with `/v1`.
    pub url: String,
}

impl RecordingModel {
    /// Starts the model on a free port.
    pub async fn start(script: impl IntoIterator<Item = Answer>) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let model = Self {
            script: Arc::new(script.into_iter().collect()),
            has_hung: Arc::default(),
            busy: Arc::default(),
            requests: watch::Sender::new(Vec::new()),
            silent_at: Arc::default(),
            url: format!("http://{}/v1", tcp.local_addr().unwrap()),
        };
        let router = Router::new().route("/v1/chat/completions", post(complete)).with_state(model.clone());
        tokio::spawn(async move { axum::serve(tcp, router).await });
        model
    }

    /// Returns the bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.borrow().clone()
    }

    /// Returns the number of requests so far.
    pub fn request_count(&self) -> usize {
        self.requests.borrow().len()
    }

    /// Waits until there were `count` requests.
    pub async fn until_requests(&self, count: usize) {
        self.requests.subscribe().wait_for(|requests| requests.len() >= count).await.unwrap();
    }
}

async fn complete(State(model): State<RecordingModel>, Json(request): Json<Value>) -> Response {
    let messages = request["messages"].as_array().unwrap().clone();
    assert_results_follow_calls(&messages);
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    model.requests.send_modify(|requests| requests.push(request));
    let silent_at = *model.silent_at.lock().unwrap();
    if silent_at == Some(model.request_count()) {
        return std::future::pending().await;
    }
    let is_busy = {
        let mut busy = model.busy.lock().unwrap();
        let is_busy = *busy > 0;
        *busy = busy.saturating_sub(1);
        is_busy
    };
    if is_busy {
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], "busy").into_response();
    }
    if let Some(text) = stage_answer(&messages) {
        return Json(text_completion(&text, turn)).into_response();
    }
    // The history has no message for a `HangsOnce`, so each earlier one moves the position in the script by one.
    let hangs = model.script.iter().take(turn + 1).filter(|answer| matches!(answer, Answer::HangsOnce)).count();
    let turn = turn + hangs;
    if matches!(model.script.get(turn.wrapping_sub(1)), Some(Answer::HangsOnce)) {
        let is_first = !std::mem::replace(&mut *model.has_hung.lock().unwrap(), true);
        if is_first {
            return std::future::pending().await;
        }
    }
    let completion = match &model.script[turn] {
        Answer::Calls(calls) => call_completion(calls, turn),
        Answer::Says(text) => text_completion(text, turn),
        Answer::HangsOnce => unreachable!("an answer follows"),
    };
    Json(completion).into_response()
}

fn call_completion(calls: &[(&'static str, Value)], turn: usize) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(i, (name, arguments))| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "id": format!("call-{turn}-{i}"), "type": "function", "function": function })
        })
        .collect();
    completion(&json!({ "role": "assistant", "content": null, "tool_calls": calls }), "tool_calls", turn)
}

fn text_completion(text: &str, turn: usize) -> Value {
    completion(&json!({ "role": "assistant", "content": text }), "stop", turn)
}

fn completion(message: &Value, finish: &str, turn: usize) -> Value {
    json!({
        "id": format!("answer-{turn}"), "object": "chat.completion",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 },
    })
}

/// Answers the stages around the main loop, which the system prompt identifies. Selection selects all tools. The
/// finalization gate fails drafts that contain "I think". Polish repeats the answer. Returns `None` for the main loop.
fn stage_answer(messages: &[Value]) -> Option<String> {
    let content = |message: Option<&Value>| message.and_then(|m| m["content"].as_str()).map(str::to_owned);
    let (system, user) = (content(messages.first())?, content(messages.last())?);
    if system.starts_with("You are a finalization gate") {
        let reason = json!({ "code": "GOAL_NOT_MET", "detail": "the draft only thinks so" });
        let fails = json!({ "passed": false, "reasons": [reason], "suggested_action": "TOOL_CALL" });
        let passes = json!({ "passed": true, "reasons": [], "suggested_action": null });
        return Some(if user.contains("I think") { fails } else { passes }.to_string());
    }
    if system.starts_with("You choose the tools") {
        let named = user.lines().filter_map(|line| line.strip_prefix("- ")?.split(':').next());
        return Some(json!({ "tools": named.collect::<Vec<_>>() }).to_string());
    }
    let answer = user.split_once(">\n")?.1.rsplit_once("\n</")?.0;
    system.starts_with("You are a reply formatter").then(|| answer.to_owned())
}

/// Asserts that each call of a tool has exactly one result, directly after the message with the call.
fn assert_results_follow_calls(messages: &[Value]) {
    let mut open: Vec<&Value> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let at = open.iter().position(|id| **id == message["tool_call_id"]).expect("a result without a call");
            open.remove(at);
            continue;
        }
        assert!(open.is_empty(), "calls without results: {open:?}");
        open = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]).collect();
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}
