//! What the tests of the model clients share: a server that does as it is told, and requests.

use super::patience::Patience;
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
use bloomery_testkit::tls::{self, TlsListener};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// What the server does with one request.
pub(crate) enum Act {
    Say(u16, Vec<(&'static str, String)>, String),
    Cut,
    Hang,
}

pub(crate) fn say(status: u16, body: impl Into<String>) -> Act {
    Act::Say(status, Vec::new(), body.into())
}

pub(crate) fn completion(content: &str) -> Act {
    let message = json!({"role": "assistant", "content": content});
    say(200, json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string())
}

/// A server that follows a script, whose last act it repeats, and remembers what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Server {
    script: Arc<Mutex<VecDeque<Act>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// What was asked: headers and body.
pub(crate) type Asked = (HeaderMap, Vec<u8>);

impl Server {
    pub(crate) async fn start(script: impl IntoIterator<Item = Act>) -> (Self, String) {
        let server = Self { script: Arc::new(Mutex::new(script.into_iter().collect())), ..Self::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, url)
    }

    /// The same over TLS, as `localhost`; with the certificate of the CA that signed its own.
    pub(crate) async fn start_tls(script: impl IntoIterator<Item = Act>) -> (Self, String, String) {
        let (acceptor, ca) = tls::localhost();
        let server = Self { script: Arc::new(Mutex::new(script.into_iter().collect())), ..Self::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/v1", listener.local_addr().unwrap().port());
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(TlsListener::new(listener, acceptor), router).await });
        (server, url, ca)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    assert!(["/v1/chat/completions", "/v1/messages"].contains(&path.as_str()), "{path}");
    let headers = request.headers().clone();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    server.asked.lock().unwrap().push((headers, body.to_vec()));
    let act = {
        let mut script = server.script.lock().unwrap();
        let act = script.pop_front().expect("an act");
        if script.is_empty() {
            script.push_back(match &act {
                Act::Say(status, headers, body) => Act::Say(*status, headers.clone(), body.clone()),
                Act::Cut => Act::Cut,
                Act::Hang => Act::Hang,
            });
        }
        act
    };
    match act {
        Act::Say(status, headers, body) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Act::Cut => {
            let begin = stream::once(async { Ok("{\"choices\":[{\"mess") });
            // What is there is sent when the rest is not.
            let cut = stream::once(async {
                tokio::task::yield_now().await;
                Err(io::Error::other("cut"))
            });
            Body::from_stream(begin.chain(cut)).into_response()
        }
        Act::Hang => std::future::pending().await,
    }
}

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

/// Waits that a test can wait for; `whole` is how long the client tries.
pub(crate) fn patience(whole: Duration) -> Patience {
    let pause = || Backoff::new(Duration::from_millis(1), Duration::from_millis(2));
    Patience { total: whole, short_delays: pause(), long_delays: pause(), secret_delays: pause() }
}

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

/// A form that an answer is to have.
pub(crate) fn form() -> AnswerSchema {
    AnswerSchema {
        name: "ruling",
        schema: json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
    }
}

/// A tool with a name that is an alias.
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

/// What the Model `name` said.
pub(crate) fn said(provider: ModelProvider, name: &str, message: &Value) -> Turn {
    Turn::Assistant(ModelMessage { message: message.to_string(), provider, model: Some(name.to_owned()) })
}

/// The endpoint of an Anthropic Model `claude`.
pub(crate) fn claude(base_url: &str) -> ModelEndpoint {
    ModelEndpoint {
        name: "claude".into(),
        provider: ModelProvider::Anthropic,
        model: "claude-sonnet-5".into(),
        ..endpoint(base_url)
    }
}

/// The data of events as a stream, each with the name that Anthropic gives it too.
pub(crate) fn events(data: &[Value]) -> String {
    let event = |data: &Value| match data["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    };
    data.iter().map(event).collect()
}

/// A stream of events as a response.
pub(crate) fn streams(body: impl Into<String>) -> Act {
    Act::Say(200, vec![("content-type", "text/event-stream; charset=utf-8".into())], body.into())
}
