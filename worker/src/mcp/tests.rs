//! The client against real servers on sockets: those that rmcp makes, in every era, and rude ones of our own.

mod genuine;
mod hostile;
mod listing;
mod rude;
mod stdio;
mod wrong;

use super::*;
use crate::redact::Redactor;
use bloomery_crds::Digest;
use bloomery_engine::event::CallId;
use bloomery_engine::tool::ToolSource;

const PLENTY: Duration = Duration::from_secs(30);

/// A client that holds no call back.
fn client(url: &str) -> Client {
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::new(&McpEndpoint { url: url.to_owned() }, Redactor::default()).unwrap();
    Client { unsent_patience: Duration::ZERO, ..client }
}

async fn call(client: &Client, tool: &str, arguments: &str) -> CallOutcome {
    call_within(client, tool, arguments, PLENTY).await
}

async fn call_within(client: &Client, tool: &str, arguments: &str, within: Duration) -> CallOutcome {
    let id = CallId::new(7, 0);
    let key = Digest::of_bytes(b"the key");
    let source = ToolSource::Server;
    client.call(&ToolCall { id: &id, tool, arguments, key, idempotent: false, read_only: false, source }, within).await
}

fn completed(text: &str) -> CallOutcome {
    CallOutcome::Completed { text: text.to_owned() }
}

fn failed(text: &str) -> CallOutcome {
    CallOutcome::Failed { text: text.to_owned() }
}

#[test]
fn a_url_that_is_none_is_refused() {
    let error = Client::new(&McpEndpoint { url: "orders:8080".into() }, Redactor::default()).unwrap_err();
    assert!(error.to_string().contains("is not an http or https URL"), "{error}");
}
