//! HTTP APIs that a Job binds: a call is durable before it is sent, it is sent once, and the run leaves no secret.

use super::*;
use crate::fixture::stand::lines;
use axum::Router;
use axum::extract::{Request, State};
use bloomery_crds::run::{BoundResource, KeyFile, ResourceSource};
use bloomery_crds::v1alpha1::ResourceType;
use bloomery_journal::fixture::checks::parse;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use bloomery_testkit::sample;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const SECRET: &str = "sk-of-the-shop-0123";

/// The requests that an API received: the method, the credential and the idempotency key of each, and the last event of the log that was
/// durable then.
#[derive(Clone)]
struct Requests {
    /// The memory of the run that sends the requests.
    memory: PathBuf,
    received: Arc<Mutex<Vec<[String; 4]>>>,
}

impl Requests {
    fn with(&self, method: &str) -> Vec<[String; 4]> {
        self.received.lock().unwrap().iter().filter(|asked| asked[0] == method).cloned().collect()
    }
}

/// Starts an API that answers with the request, including the credential. `memory` is that of the run.
async fn api(memory: PathBuf) -> (Requests, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Requests { memory, received: Arc::default() };
    let router = Router::new().fallback(echo).with_state(asked.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (asked, url)
}

async fn echo(State(asked): State<Requests>, request: Request) -> String {
    let header = |name: &str| request.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let method = request.method().to_string();
    let last = parse(&lines(&Disk, &asked.memory)).last().unwrap().event.name().to_owned();
    asked.received.lock().unwrap().push([method, header("authorization"), header("idempotency-key"), last]);
    format!("{} {} with {}", request.method(), request.uri(), header("authorization"))
}

async fn stand() -> (Requests, Stand) {
    let mut stand = Stand::new(
        vec![
            Answer::Calls(vec![("http_get", json!({"path": "/orders/7"}))]),
            Answer::Calls(vec![("http_request", json!({"method": "DELETE", "path": "/orders/7"}))]),
            Answer::Calls(vec![("http_request", json!({"method": "POST", "path": "/notes", "json": {"text": "x"}}))]),
            Answer::Says("Noted.\n```json\n{\"status\": \"noted\"}\n```\n"),
        ],
        Refund::Answers,
    )
    .await;
    let (asked, url) = api(stand.memory()).await;
    stand.skill.resources = serde_json::from_value(json!([
        {"name": "shop", "type": "api_endpoint", "auth": {"credential": "key", "scheme": "Bearer"}, "rules": [
            {"methods": ["GET"], "paths": ["/orders/*"]}, {"methods": ["POST"], "paths": ["/notes"]},
        ]},
        {"name": "key", "type": "credential"},
    ]))
    .unwrap();
    let path = stand.dir.path().join("key");
    fs::write(&path, SECRET).unwrap();
    let file = KeyFile { path: path.to_str().unwrap().into(), secret: "shop".into(), key: "key".into() };
    let bound = |name: &str, kind, source| BoundResource { name: name.into(), kind, source };
    stand.resources = vec![
        bound("shop", ResourceType::ApiEndpoint, ResourceSource::Value(url)),
        bound("key", ResourceType::Credential, ResourceSource::Secret(file)),
    ];
    stand.endpoint_range = vec!["127.0.0.0/8".parse().unwrap()];
    (asked, stand)
}

#[tokio::test]
async fn an_api_is_called_within_its_rules_and_the_run_leaves_no_credential() {
    let (asked, stand) = stand().await;
    stand.run(1).await;
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    let bearer = format!("Bearer {SECRET}");
    assert_eq!(asked.with("GET"), [["GET", bearer.as_str(), "", "tool.ruled"]]);
    let [[_, credential, key, durable]] = asked.with("POST").try_into().unwrap();
    assert!(credential == bearer && key.starts_with("sha256:"), "{key}");
    assert_eq!(durable, "tool.started");
    assert_eq!(asked.with("DELETE").len(), 0);
    let log = stand.lines(&Disk).join("\n");
    assert!(log.contains("GET /v1/orders/7 with Bearer [redacted: key]") && log.contains("allow no DELETE"), "{log}");
    let prompts = stand.model.requests().iter().map(ToString::to_string).collect::<String>();
    for sink in [log, prompts, stand.printed.text()] {
        assert!(!sink.contains(SECRET), "{sink}");
    }
}

#[tokio::test]
async fn a_call_to_a_forbidden_address_fails_with_the_reason() {
    let (asked, mut stand) = stand().await;
    stand.endpoint_range.clear();
    stand.run(1).await;
    let log = stand.lines(&Disk).join("\n");
    assert!(log.contains("127.0.0.1 is at 127.0.0.1, a loopback address"), "{log}");
    assert_eq!(asked.received.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn after_a_kill_at_any_operation_a_request_with_an_effect_is_sent_at_most_once() {
    let files = Faulty::default();
    let operations = files.operations.clone();
    let (_, undisturbed) = stand().await;
    undisturbed.run_with(1, files, Stop::default()).await.unwrap();
    let mut lost = 0;
    for at in (0..operations.get()).step_by(sample::distance()) {
        let (asked, stand) = stand().await;
        let _ = stand.run_with(1, Faulty::killed(at, Fault::KillAfter), Stop::default()).await;
        assert_eq!(stand.run(2).await, Exit::Finished, "{at}");
        match outcome(&stand, 2) {
            OutcomeCode::Succeeded => assert_eq!(asked.with("POST").len(), 1, "{at}"),
            end => {
                assert_eq!(end, OutcomeCode::ToolIndeterminate, "{at}");
                assert!(asked.with("POST").len() <= 1, "{at}");
                lost += 1;
            }
        }
    }
    assert!(lost > 0, "no call was interrupted");
}
