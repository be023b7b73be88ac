//! A server of the older era whose answers each test scripts. It begins sessions correctly. The server of `testkit` does not fit,
//! because these answers break the protocol.

use super::{TOOLS, tool_at_start};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use bloomery_testkit::local_server;
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Returns the response to a request.
type Respond = Box<dyn Fn(&Value) -> Response + Send + Sync>;

/// The server. Clones share their record of requests.
#[derive(Clone)]
pub(super) struct ScriptedServer {
    call: Arc<Respond>,
    list: Arc<Respond>,
    resume: Arc<Respond>,
    has_sessions: bool,
    has_one_session: bool,
    discovery: Option<Value>,
    refusal: Option<(&'static str, u16)>,
    seen: Arc<Mutex<Vec<Value>>>,
    replies: watch::Sender<Vec<Value>>,
}

impl ScriptedServer {
    /// Creates a server that answers every call with `respond`.
    pub(super) fn answering_calls(respond: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        let nothing = || Arc::new(Box::new(|_: &Value| StatusCode::METHOD_NOT_ALLOWED.into_response()) as Respond);
        Self {
            call: Arc::new(Box::new(respond)),
            list: Arc::new(Box::new(|request| json(&answer(request, &json!({"tools": TOOLS.map(tool_at_start)}))))),
            resume: nothing(),
            has_sessions: true,
            has_one_session: false,
            discovery: None,
            refusal: None,
            seen: Arc::default(),
            replies: watch::Sender::default(),
        }
    }

    /// Creates a server that answers every request for a list with `respond`.
    pub(super) fn answering_lists(respond: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        Self::answering_calls(|_| StatusCode::IM_A_TEAPOT.into_response()).with_list(respond)
    }

    /// Answers every request for a list with `respond`.
    pub(super) fn with_list(self, respond: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        Self { list: Arc::new(Box::new(respond)), ..self }
    }

    /// Answers every request to resume a stream with `respond`.
    pub(super) fn with_resume(self, respond: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        Self { resume: Arc::new(Box::new(respond)), ..self }
    }

    /// Answers `server/discover` with a result.
    pub(super) fn with_discovery(self, result: Value) -> Self {
        Self { discovery: Some(result), ..self }
    }

    /// Refuses every request of a method with an HTTP status.
    pub(super) fn with_refusal(self, method: &'static str, status: u16) -> Self {
        Self { refusal: Some((method, status)), ..self }
    }

    /// Refuses every session except the first.
    pub(super) fn with_one_session(self) -> Self {
        Self { has_one_session: true, ..self }
    }

    /// Gives sessions no id, as a server that keeps no state for them.
    pub(super) fn without_sessions(self) -> Self {
        Self { has_sessions: false, ..self }
    }

    /// Records the client's replies to requests of the server in `replies`.
    pub(super) fn with_replies(self, replies: watch::Sender<Vec<Value>>) -> Self {
        Self { replies, ..self }
    }

    /// Starts the server, and returns its URL.
    pub(super) async fn start(&self) -> String {
        format!("{}/mcp", local_server::serve(self.router()).await)
    }

    /// Starts the server on `listener`.
    pub(super) fn start_on(&self, listener: TcpListener) {
        local_server::serve_on(listener, self.router());
    }

    /// Returns the router of the server.
    pub(super) fn router(&self) -> Router {
        Router::new().fallback(serve).with_state(self.clone())
    }

    /// Returns the last request with the given method.
    pub(super) fn last_request(&self, method: &str) -> Value {
        self.seen.lock().unwrap().iter().rev().find(|message| message["method"] == method).cloned().unwrap()
    }

    /// Returns the number of requests with the given method.
    pub(super) fn count(&self, method: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }
}

async fn serve(State(server): State<ScriptedServer>, request: Request) -> Response {
    let method = request.method().clone();
    let last = request.headers().get("last-event-id").map(|id| id.to_str().unwrap().to_owned());
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    if method != Method::POST {
        return (server.resume)(&json!({ "last": last }));
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    server.seen.lock().unwrap().push(message.clone());
    match message["method"].as_str() {
        Some(method) if server.refusal.is_some_and(|(refused, _)| refused == method) => {
            StatusCode::from_u16(server.refusal.unwrap().1).unwrap().into_response()
        }
        Some("server/discover") if server.discovery.is_some() => json(&answer(&message, &server.discovery.unwrap())),
        Some("server/discover") => (StatusCode::BAD_REQUEST, "unknown method").into_response(),
        Some("initialize") if server.has_one_session && server.count("initialize") > 1 => {
            StatusCode::NOT_FOUND.into_response()
        }
        Some("initialize") => {
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"}});
            let answer = json(&answer(&message, &result));
            if server.has_sessions { ([("mcp-session-id", "s-1")], answer).into_response() } else { answer }
        }
        Some("tools/call") => (server.call)(&message),
        Some("tools/list") => (server.list)(&message),
        Some(_) => StatusCode::ACCEPTED.into_response(),
        None => {
            server.replies.send_modify(|replies| replies.push(message));
            StatusCode::ACCEPTED.into_response()
        }
    }
}

/// Returns a JSON-RPC answer.
pub(super) fn answer(request: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// Returns the answer of a tool that succeeded.
pub(super) fn done(request: &Value) -> Value {
    answer(request, &json!({"content": [{"type": "text", "text": "done"}]}))
}

pub(super) fn json(body: &Value) -> Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

pub(super) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Returns a stream of events that ends.
pub(super) fn events(parts: impl IntoIterator<Item = String>) -> Response {
    let parts: Vec<_> = parts.into_iter().map(Ok).collect();
    event_stream(stream::iter(parts))
}

/// Returns a stream of events whose connection breaks after the last event.
pub(super) fn cut_events(parts: impl IntoIterator<Item = String>) -> Response {
    let parts: Vec<_> = parts.into_iter().map(Ok).collect();
    // The yield makes the server send the events before the connection breaks.
    let cut = stream::once(async {
        tokio::task::yield_now().await;
        Err(io::Error::other("cut"))
    });
    event_stream(stream::iter(parts).chain(cut))
}

pub(super) fn event_stream(parts: impl Stream<Item = io::Result<String>> + Send + 'static) -> Response {
    ([("content-type", "text/event-stream")], Body::from_stream(parts)).into_response()
}
