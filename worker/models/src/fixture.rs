//! Fixtures for the tests of the model clients: a server whose replies each test scripts, endpoints, and requests.
//!
//! The scripted model of `testkit` does not fit, because these replies include arbitrary bytes and broken connections.

use super::retry_policy::RetryPolicy;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bloomery_crds::Digest;
use bloomery_crds::run::ModelEndpoint;
use bloomery_crds::v1alpha1::{ModelProvider, Stage};
use bloomery_engine::history::{ModelMessage, Turn};
use bloomery_engine::stage_prompt::AnswerSchema;
use bloomery_engine::step::ModelRequest;
use bloomery_engine::tool::{CatalogueTool, ToolSource};
use bloomery_http::Backoff;
use bloomery_testkit::local_server;
use bloomery_testkit::tls;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The reply of the server to one request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// A response with a status, headers and a body.
    Response(u16, Vec<(&'static str, String)>, String),
    /// A response whose connection breaks within the body.
    Cut,
    /// No response.
    Hang,
}

/// Returns a response without headers.
pub(crate) fn response(status: u16, body: impl Into<String>) -> Reply {
    Reply::Response(status, Vec::new(), body.into())
}

/// Returns a chat completion.
pub(crate) fn completion(content: &str) -> Reply {
    let message = json!({"role": "assistant", "content": content});
    response(200, json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string())
}

/// A server that sends scripted replies and records its requests. It repeats the last reply.
#[derive(Clone, Default)]
pub(crate) struct Server {
    script: Arc<Mutex<VecDeque<Reply>>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// The headers and the body of a request.
pub(crate) type ReceivedRequest = (HeaderMap, Vec<u8>);

impl Server {
    fn new(script: impl IntoIterator<Item = Reply>) -> (Self, Router) {
        let server = Self { script: Arc::new(Mutex::new(script.into_iter().collect())), ..Self::default() };
        let router = Router::new().fallback(serve).with_state(server.clone());
        (server, router)
    }

    /// Starts a server. Returns it and its base URL.
    pub(crate) async fn start(script: impl IntoIterator<Item = Reply>) -> (Self, String) {
        let (server, router) = Self::new(script);
        (server, format!("{}/v1/", local_server::serve(router).await))
    }

    /// Starts a server with TLS as `localhost`. Returns it, its base URL, and the certificate of its CA.
    pub(crate) async fn start_tls(script: impl IntoIterator<Item = Reply>) -> (Self, String, String) {
        let (server, router) = Self::new(script);
        let (port, ca) = tls::serve(router).await;
        (server, format!("https://localhost:{port}/v1"), ca)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    assert!(["/v1/chat/completions", "/v1/messages"].contains(&path.as_str()), "{path}");
    let headers = request.headers().clone();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    server.requests.lock().unwrap().push((headers, body.to_vec()));
    let reply = {
        let mut script = server.script.lock().unwrap();
        let reply = script.pop_front().expect("a reply");
        if script.is_empty() {
            script.push_back(reply.clone());
        }
        reply
    };
    match reply {
        Reply::Response(status, headers, body) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Reply::Cut => {
            let begin = stream::once(async { Ok("{\"choices\":[{\"mess") });
            // The yield makes the server send the beginning before the connection breaks.
            let cut = stream::once(async {
                tokio::task::yield_now().await;
                Err(io::Error::other("cut"))
            });
            Body::from_stream(begin.chain(cut)).into_response()
        }
        Reply::Hang => std::future::pending().await,
    }
}

/// Returns the endpoint of an OpenAI Model `default`.
pub(crate) fn endpoint(base_url: &str) -> ModelEndpoint {
    ModelEndpoint {
        name: "default".into(),
        provider: ModelProvider::Openai,
        model: "gpt-5".into(),
        base_url: base_url.into(),
        timeout_seconds: 30,
        context_window: 128_000,
        max_output_tokens: None,
        api_key: None,
        ca: None,
        proxy: None,
        fallback: Vec::new(),
    }
}

/// Returns a policy that retries for `total`, with delays of milliseconds.
pub(crate) fn retry_policy(total: Duration) -> RetryPolicy {
    let delays = || Backoff::new(Duration::from_millis(1), Duration::from_millis(2));
    RetryPolicy {
        total,
        short_delays: delays(),
        long_delays: delays(),
        secret_delays: delays(),
        awaits_corrected_key: true,
    }
}

/// Returns a request of the main loop.
pub(crate) fn request(turns: &[Turn]) -> ModelRequest<'_> {
    ModelRequest {
        stage: Stage::Plan,
        model: "default",
        system: "Be kind.".into(),
        turns: turns.into(),
        turns_version: 0,
        tools: &[],
        temperature: None,
        answer_schema: None,
        reserve: 0,
    }
}

/// Returns the schema of an answer.
pub(crate) fn answer_schema() -> AnswerSchema {
    AnswerSchema {
        name: "ruling",
        schema: json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
    }
}

/// Returns a tool whose name needs an alias.
pub(crate) fn tool() -> CatalogueTool {
    CatalogueTool {
        name: "orders/get".into(),
        alias: "orders_get".into(),
        description: "Reads an order".into(),
        input_schema: json!({"type": "object", "properties": {"id": {"type": "string"}}}),
        output_schema: None,
        digest: Digest::of_bytes(b"x"),
        source: ToolSource::Server,
        read_only: true,
        idempotent: true,
        visible: true,
    }
}

/// Returns an earlier answer of the Model `name`.
pub(crate) fn earlier_answer(provider: ModelProvider, name: &str, message: &Value) -> Turn {
    Turn::Assistant(ModelMessage { message: message.to_string(), provider, model: Some(name.to_owned()) })
}

/// Returns the endpoint of an Anthropic Model `claude`.
pub(crate) fn claude(base_url: &str) -> ModelEndpoint {
    ModelEndpoint {
        name: "claude".into(),
        provider: ModelProvider::Anthropic,
        model: "claude-sonnet-5".into(),
        ..endpoint(base_url)
    }
}

/// Returns the body of a stream with these events. An event of Anthropic also has a name.
pub(crate) fn events(data: &[Value]) -> String {
    let event = |data: &Value| match data["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    };
    data.iter().map(event).collect()
}

/// Returns a stream of events as a response.
pub(crate) fn event_stream(body: impl Into<String>) -> Reply {
    Reply::Response(200, vec![("content-type", "text/event-stream; charset=utf-8".into())], body.into())
}
