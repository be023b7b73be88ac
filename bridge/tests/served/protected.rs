//! The bridge lets only workers with a token pass, and passes the requests of those on as they are.

use crate::bridge::{Bridge, Job, install_provider};
use crate::script::{ANSWER_DONE, server};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bloomery_crds::report::ServerToken;
use bloomery_crds::run::McpEndpoint;
use bloomery_mcp::{CallOutcome, Client, ServerTokens};
use bloomery_redact::Redactor;
use bloomery_token::{Claims, SigningKey, Subject};
use futures::StreamExt;
use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

/// Returns the arguments of a bridge that accepts the tokens of the keys 1 and 2.
fn access() -> [String; 3] {
    let [current, next] = [1, 2].map(|seed| format!("--token-key={}", key(seed).public()));
    [current, next, "--audience=acme/orders".to_owned()]
}

/// Returns a token of this key for the server of this Skill.
fn token(seed: u8, skill: &str) -> String {
    let subject = Subject { namespace: "acme", skill, job: Some("refund"), uid: "u-job" };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    key(seed).sign(&Claims::new(subject, now)).unwrap()
}

fn http_client() -> reqwest::Client {
    install_provider();
    reqwest::Client::new()
}

fn tokens(token: String) -> ServerTokens {
    let tokens = ServerTokens::new(Redactor::default());
    tokens.set(&ServerToken { token, valid_seconds: 540 });
    tokens
}

fn stdio_bridge() -> Bridge {
    Bridge::start(&access().each_ref().map(String::as_str), &server(ANSWER_DONE))
}

fn guard(port: u16, more: &[&str]) -> Bridge {
    let access = access();
    Bridge::guard(&access.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>(), port)
}

#[tokio::test]
async fn a_stdio_server_answers_only_workers_of_its_skill() {
    let bridge = stdio_bridge();
    for seed in [1, 2] {
        let job = Job::with_token(bridge.url(), &tokens(token(seed, "orders"))).await;
        assert_eq!(job.completed("act").await, "done");
    }
    let http = http_client();
    let list = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#;
    let post = || http.post(bridge.url()).header("content-type", "application/json").body(list);
    let answered = [
        post().send().await.unwrap(),
        post().bearer_auth("none").send().await.unwrap(),
        post().bearer_auth(token(1, "payments")).send().await.unwrap(),
        post().bearer_auth(token(3, "orders")).send().await.unwrap(),
        http.delete(bridge.url()).send().await.unwrap(),
    ];
    for response in answered {
        assert_eq!(response.status().as_u16(), 401);
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
    }
    // Another status shows that the token was accepted: the request is outside of a session.
    assert_eq!(post().bearer_auth(token(1, "orders")).send().await.unwrap().status().as_u16(), 400);
}

#[tokio::test]
async fn a_call_with_a_refused_token_has_failed_and_the_next_one_with_a_valid_token_is_made() {
    let bridge = stdio_bridge();
    let tokens = tokens(token(1, "orders"));
    let job = Job::with_token(bridge.url(), &tokens).await;
    tokens.set(&ServerToken { token: token(3, "orders"), valid_seconds: 540 });
    let (outcome, _) = job.call_within("act", "{}", Duration::from_secs(1)).await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.starts_with("The call was not sent to") && text.contains("its key is not one of"), "{text}");
    tokens.set(&ServerToken { token: token(2, "orders"), valid_seconds: 540 });
    assert_eq!(job.completed("act").await, "done");
}

#[tokio::test]
async fn a_list_without_a_valid_token_is_repeated_later() {
    install_provider();
    let bridge = stdio_bridge();
    let endpoint = McpEndpoint { url: bridge.url() };
    let client = Client::with_token(&endpoint, tokens(token(3, "orders")), Redactor::default()).unwrap();
    let error = client.list(Duration::from_mins(1)).await.unwrap_err();
    assert!(matches!(error, bloomery_mcp::Error::Unavailable { .. }), "{error}");
}

/// A server that shows the headers of a request, and streams its body in parts that the test sends.
struct Server {
    port: u16,
    parts: mpsc::UnboundedSender<&'static str>,
}

impl Server {
    async fn start(health: StatusCode) -> Self {
        let (parts, received) = mpsc::unbounded_channel::<&str>();
        let received = std::sync::Arc::new(tokio::sync::Mutex::new(Some(received)));
        let stream = move || {
            let received = received.clone();
            async move {
                let mut parts = received.lock().await.take().unwrap();
                let parts = futures::stream::poll_fn(move |context| parts.poll_recv(context));
                let body = Body::from_stream(parts.map(|part| Ok::<_, Infallible>(Bytes::from(part))));
                ([("content-type", "text/event-stream"), ("mcp-session-id", "7")], body).into_response()
            }
        };
        let router = Router::new()
            .route("/mcp", post(echo).get(stream))
            .route("/other", get(async || "other"))
            .route("/healthz", get(move || async move { health }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async { axum::serve(listener, router).await });
        Self { port, parts }
    }
}

async fn echo(headers: HeaderMap, request: Request) -> Response {
    let shown = |name: &str| headers.get(name).map_or("none", |value| value.to_str().unwrap()).to_owned();
    let shown = ["host", "authorization", "mcp-session-id", "accept"].map(shown).join(" ");
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    // The bridge removes this header, because only the bridge knows whether a request was delivered.
    ([("bloomery-not-delivered", "true")], format!("{shown} {}", String::from_utf8_lossy(&body))).into_response()
}

#[tokio::test]
async fn a_request_to_a_server_behind_the_bridge_needs_a_token_and_passes_unchanged() {
    let server = Server::start(StatusCode::OK).await;
    let bridge = guard(server.port, &[]);
    let http = http_client();
    let post =
        |url: String| http.post(url).header("mcp-session-id", "7").header("accept", "text/event-stream").body("{}");
    let refused = post(bridge.url()).send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["bloomery-not-delivered"]),
        (401, &"true".parse().unwrap())
    );
    let passed = post(bridge.url()).bearer_auth(token(1, "orders")).send().await.unwrap();
    assert!(!passed.headers().contains_key("bloomery-not-delivered"), "{:?}", passed.headers());
    let expected = format!("127.0.0.1:{} none 7 text/event-stream {{}}", server.port);
    assert_eq!(passed.text().await.unwrap(), expected);
    let other = bridge.url().replace("/mcp", "/other");
    let hidden = http.get(other).bearer_auth(token(1, "orders")).send().await.unwrap();
    assert_eq!(hidden.status().as_u16(), 404, "only the MCP endpoint is passed on");
}

#[tokio::test]
async fn the_events_of_a_stream_pass_as_the_server_sends_them() {
    let server = Server::start(StatusCode::OK).await;
    let bridge = guard(server.port, &[]);
    let http = http_client();
    let answer = http.get(bridge.url()).bearer_auth(token(2, "orders")).send().await.unwrap();
    assert_eq!(
        (&answer.headers()["content-type"], &answer.headers()["mcp-session-id"]),
        (&"text/event-stream".parse().unwrap(), &"7".parse().unwrap())
    );
    let mut answer = answer.bytes_stream();
    for part in ["data: 1\n\n", "data: 2\n\n"] {
        // The next part is sent only after this one has arrived.
        server.parts.send(part).unwrap();
        assert_eq!(answer.next().await.unwrap().unwrap(), part);
    }
}

#[tokio::test]
async fn the_health_of_the_server_is_shown_without_a_token() {
    let health = async |bridge: &Bridge| {
        let url = bridge.url().replace("/mcp", "/.bloomery/health");
        http_client().get(url).send().await.unwrap().status().as_u16()
    };
    let server = Server::start(StatusCode::SERVICE_UNAVAILABLE).await;
    assert_eq!(health(&guard(server.port, &[])).await, 200, "a connection is enough");
    assert_eq!(health(&guard(server.port, &["--health-path=/healthz"])).await, 503);
    let healthy = Server::start(StatusCode::OK).await;
    let port = format!("--health-port={}", healthy.port);
    assert_eq!(health(&guard(server.port, &["--health-path=/healthz", &port])).await, 200);
}

#[tokio::test]
async fn a_request_to_a_server_that_does_not_listen_is_not_delivered() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let bridge = guard(port, &[]);
    let http = http_client();
    let answer = http.post(bridge.url()).bearer_auth(token(1, "orders")).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["bloomery-not-delivered"]),
        (503, &"true".parse().unwrap())
    );
    let health = bridge.url().replace("/mcp", "/.bloomery/health");
    assert_eq!(http.get(health).send().await.unwrap().status().as_u16(), 503);
}

#[test]
fn a_bridge_without_keys_does_not_start_by_mistake() {
    let run = |flags: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bloomery-bridge"));
        let output = command.args(["guard", "--port=1"]).args(flags).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let key = format!("--token-key={}", key(1).public());
    for flags in [vec![], vec!["--audience=acme/orders"], vec![&*key], vec![&*key, "--audience=a/b", "--open"]] {
        let (code, said) = run(&flags);
        assert_eq!(code, Some(2), "{flags:?}: {said}");
    }
    let (_, said) = run(&["--token-key=short", "--audience=a/b"]);
    assert!(said.contains("a public key is the base64url text of 32 bytes"), "{said}");
}
