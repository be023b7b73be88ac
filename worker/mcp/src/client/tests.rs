//! The client against real servers on sockets: those that rmcp makes, in every era, and rude ones of our own.

mod beside;
mod drift;
mod eras;
mod genuine;
mod hostile;
mod listing;
mod odd;
mod rude;
mod stdio;
mod wrong;

use super::*;
use bloomery_crds::Digest;
use bloomery_engine::event::CallId;
use bloomery_engine::tool::ToolSource;
use bloomery_redact::Redactor;
use serde_json::json;

const PLENTY: Duration = Duration::from_secs(30);

/// A client that holds no call back.
fn client(url: &str) -> Client {
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::new(&McpEndpoint { url: url.to_owned() }, Redactor::default()).unwrap();
    Client { unreachable_retry_period: Duration::ZERO, ..client }
}

/// The tools of every server here, as it lists them.
const TOOLS: [&str; 7] = ["echo", "refuse", "fail", "hang", "refund", "get", "ask"];

/// A tool as it was when the Job began.
fn fixed(name: &str) -> ListedTool {
    let schema = json!({"type": "object", "properties": {"order": {"type": "string"}}});
    let hint = (name == "echo").then(|| ("readOnlyHint".to_owned(), json!(true)));
    ListedTool {
        name: name.into(),
        description: format!("Does {name}"),
        input_schema: schema,
        annotations: hint.into_iter().collect(),
        ..ListedTool::default()
    }
}

async fn call(client: &Client, tool: &str, arguments: &str) -> CallOutcome {
    call_within(client, tool, arguments, PLENTY).await
}

async fn call_within(client: &Client, tool: &str, arguments: &str, within: Duration) -> CallOutcome {
    called(client, tool, arguments, within).await.outcome
}

async fn called(client: &Client, tool: &str, arguments: &str, within: Duration) -> CallResult {
    called_as(client, tool, arguments, within, false).await
}

/// A call, and what its server told of it.
async fn followed(client: &Client, tool: &str, within: Duration) -> (CallOutcome, Vec<ToolProgress>) {
    let told = std::cell::RefCell::new(Vec::new());
    let called = called_by(client, (tool, "{}"), within, false, &|progress| told.borrow_mut().push(progress)).await;
    (called.outcome, told.into_inner())
}

/// A call that was sent before, or was not.
async fn called_as(client: &Client, tool: &str, arguments: &str, within: Duration, sent_before: bool) -> CallResult {
    called_by(client, (tool, arguments), within, sent_before, &|_| {}).await
}

async fn called_by(
    client: &Client,
    (tool, arguments): (&str, &str),
    within: Duration,
    sent_before: bool,
    listener: &dyn Fn(ToolProgress),
) -> CallResult {
    let (id, definition) = (CallId::new(7, 0), fixed(tool).digest());
    let call = ToolCall {
        id: &id,
        tool,
        arguments,
        key: Digest::of_bytes(b"the key"),
        idempotent: false,
        read_only: false,
        sent_before,
        source: ToolSource::Server,
        definition: &definition,
        timeout_seconds: None,
    };
    client.call(&call, within, listener).await
}

fn completed(text: &str) -> CallOutcome {
    CallOutcome::Completed { text: text.to_owned(), structured: None, media: Vec::new() }
}

fn failed(text: &str) -> CallOutcome {
    CallOutcome::failed(text.to_owned())
}

#[tokio::test]
async fn a_server_may_be_kept_within_reach() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = |url: &str| {
        Client::restricted(
            AddressPolicy::for_local_machine(),
            &McpEndpoint { url: url.to_owned() },
            Redactor::default(),
        )
    };
    for url in ["http://169.254.169.254/mcp", "http://[fe80::1]:80/mcp", "http://0.0.0.0/mcp"] {
        let error = client(url).unwrap_err().to_string();
        assert!(error.contains("may not be called") && error.contains("link-local"), "{error}");
    }
    for url in ["http://127.0.0.1/mcp", "http://10.1.2.3/mcp", "http://orders:8080/mcp"] {
        client(url).unwrap();
    }
    // A name is looked at when it is resolved.
    let nowhere = Client::restricted(
        AddressPolicy::default(),
        &McpEndpoint { url: "http://localhost:9/mcp".into() },
        Redactor::default(),
    );
    let error = nowhere.unwrap().list(PLENTY).await.unwrap_err();
    assert!(error.to_string().contains("a loopback address"), "{error}");
}

#[test]
fn a_url_that_is_none_is_refused() {
    let error = Client::new(&McpEndpoint { url: "orders:8080".into() }, Redactor::default()).unwrap_err();
    assert!(error.to_string().contains("is not an http or https URL"), "{error}");
}
