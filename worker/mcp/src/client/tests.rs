//! Tests of the client against servers on sockets: servers of rmcp in every era, and scripted servers that break the protocol.

mod arbitrary_answers;
mod drift;
mod eras;
mod external;
mod failures;
mod listing;
mod progress;
mod protocol_violations;
mod rmcp_server;
mod scripted_server;
mod stdio;

use super::*;
use bloomery_crds::Digest;
use bloomery_engine::event::CallId;
use bloomery_engine::tool::ToolSource;
use bloomery_redact::Redactor;
use serde_json::json;

const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns a client that does not retry a call whose server cannot be reached.
fn client(url: &str) -> Client {
    // Another test may have installed the provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::new(&McpEndpoint { url: url.to_owned() }, Redactor::default()).unwrap();
    Client { unreachable_retry_period: Duration::ZERO, ..client }
}

/// The tools that every server lists, unless a test replaces the list.
const TOOLS: [&str; 7] = ["echo", "refuse", "fail", "hang", "refund", "get", "ask"];

/// Returns the definition that a tool had when the Job began.
fn tool_at_start(name: &str) -> ListedTool {
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
    call_within(client, tool, arguments, LONG_TIMEOUT).await
}

async fn call_within(client: &Client, tool: &str, arguments: &str, within: Duration) -> CallOutcome {
    call_result(client, tool, arguments, within).await.outcome
}

async fn call_result(client: &Client, tool: &str, arguments: &str, within: Duration) -> CallResult {
    repeated_call(client, tool, arguments, within, false).await
}

/// Calls a tool, and returns the outcome and the progress.
async fn call_with_progress(client: &Client, tool: &str, within: Duration) -> (CallOutcome, Vec<ToolProgress>) {
    let received = std::cell::RefCell::new(Vec::new());
    let called =
        call_and_listen(client, (tool, "{}"), within, false, &|progress| received.borrow_mut().push(progress)).await;
    (called.outcome, received.into_inner())
}

/// Calls a tool. `sent_before` means that the call was sent before.
async fn repeated_call(
    client: &Client,
    tool: &str,
    arguments: &str,
    within: Duration,
    sent_before: bool,
) -> CallResult {
    call_and_listen(client, (tool, arguments), within, sent_before, &|_| {}).await
}

async fn call_and_listen(
    client: &Client,
    (tool, arguments): (&str, &str),
    within: Duration,
    sent_before: bool,
    listener: &dyn Fn(ToolProgress),
) -> CallResult {
    let (id, definition) = (CallId::new(7, 0), tool_at_start(tool).digest());
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
async fn a_restricted_client_only_calls_allowed_addresses() {
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
    // A host name is checked when it is resolved.
    let restricted = Client::restricted(
        AddressPolicy::default(),
        &McpEndpoint { url: "http://localhost:9/mcp".into() },
        Redactor::default(),
    );
    let error = restricted.unwrap().list(LONG_TIMEOUT).await.unwrap_err();
    assert!(error.to_string().contains("a loopback address"), "{error}");
}

#[tokio::test]
async fn a_sidecar_is_named_by_its_container() {
    let error = client("http://127.0.0.1:9/mcp").as_sidecar("mcp").list(LONG_TIMEOUT).await.unwrap_err();
    let expected =
        "the tools of the MCP server in the container mcp of this pod (http://127.0.0.1:9/mcp) cannot be listed";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn an_invalid_url_is_refused() {
    let error = Client::new(&McpEndpoint { url: "orders:8080".into() }, Redactor::default()).unwrap_err();
    assert!(error.to_string().contains("is not an http or https URL"), "{error}");
}
