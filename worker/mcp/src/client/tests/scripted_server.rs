//! A server that begins sessions as it should, and answers calls as it is told.

use super::{TOOLS, fixed};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What a request is answered with, given the request.
type Act = Box<dyn Fn(&Value) -> Response + Send + Sync>;

#[derive(Clone)]
pub(super) struct Rude {
    call: Arc<Act>,
    list: Arc<Act>,
    resume: Arc<Act>,
    seen: Arc<Mutex<Vec<Value>>>,
    replies: watch::Sender<Vec<Value>>,
}

impl Rude {
    /// A server that answers every call so.
    pub(super) fn calls(act: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        let nothing = || Arc::new(Box::new(|_: &Value| StatusCode::METHOD_NOT_ALLOWED.into_response()) as Act);
        Self {
            call: Arc::new(Box::new(act)),
            list: Arc::new(Box::new(|request| json(&answer(request, &json!({"tools": TOOLS.map(fixed)}))))),
            resume: nothing(),
            seen: Arc::default(),
            replies: watch::Sender::default(),
        }
    }

    /// A server that answers every request for a list so.
    pub(super) fn lists(act: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        Self::calls(|_| StatusCode::IM_A_TEAPOT.into_response()).listing(act)
    }

    /// The same, which answers every request for a list so.
    pub(super) fn listing(self, act: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        Self { list: Arc::new(Box::new(act)), ..self }
    }

    /// The same, which answers so whoever wants to resume a stream.
    pub(super) fn resumes(self, act: impl Fn(&Value) -> Response + Send + Sync + 'static) -> Self {
        Self { resume: Arc::new(Box::new(act)), ..self }
    }

    /// The same, which puts there what the client says to its own requests.
    pub(super) fn hears(self, replies: watch::Sender<Vec<Value>>) -> Self {
        Self { replies, ..self }
    }

    pub(super) async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.serve(listener)
    }

    pub(super) fn serve(&self, listener: TcpListener) -> String {
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    /// The last request of a method.
    pub(super) fn last(&self, method: &str) -> Value {
        self.seen.lock().unwrap().iter().rev().find(|message| message["method"] == method).cloned().unwrap()
    }

    /// How often a method was asked.
    pub(super) fn times(&self, method: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }
}

async fn serve(State(server): State<Rude>, request: Request) -> Response {
    let method = request.method().clone();
    let last = request.headers().get("last-event-id").map(|id| id.to_str().unwrap().to_owned());
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    if method != Method::POST {
        return (server.resume)(&json!({ "last": last }));
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    server.seen.lock().unwrap().push(message.clone());
    match message["method"].as_str() {
        Some("server/discover") => (StatusCode::BAD_REQUEST, "unknown method").into_response(),
        Some("initialize") => {
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "rude", "version": "1"}});
            ([("mcp-session-id", "s-1")], json(&answer(&message, &result))).into_response()
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

/// A JSON-RPC answer.
pub(super) fn answer(request: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// The answer of a tool that did what it should.
pub(super) fn done(request: &Value) -> Value {
    answer(request, &json!({"content": [{"type": "text", "text": "done"}]}))
}

pub(super) fn json(body: &Value) -> Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

pub(super) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A stream of events that ends.
pub(super) fn events(parts: impl IntoIterator<Item = String>) -> Response {
    let parts: Vec<_> = parts.into_iter().map(Ok).collect();
    event_stream(stream::iter(parts))
}

/// A stream of events that is cut off after them.
pub(super) fn cut_events(parts: impl IntoIterator<Item = String>) -> Response {
    let parts: Vec<_> = parts.into_iter().map(Ok).collect();
    // What is there is sent when the rest is not.
    let cut = stream::once(async {
        tokio::task::yield_now().await;
        Err(io::Error::other("cut"))
    });
    event_stream(stream::iter(parts).chain(cut))
}

pub(super) fn event_stream(parts: impl Stream<Item = io::Result<String>> + Send + 'static) -> Response {
    ([("content-type", "text/event-stream")], Body::from_stream(parts)).into_response()
}
