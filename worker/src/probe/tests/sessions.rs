//! Probes of a server that keeps each session until the client ends it.

use super::*;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use bloomery_testkit::local_server;
use rstest::rstest;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A server of the older era of MCP, which has sessions. Clones share the counts.
#[derive(Clone)]
struct Server {
    /// The number of its tools.
    tools: usize,
    begun: Arc<AtomicU32>,
    ended: Arc<AtomicU32>,
}

async fn answer(State(server): State<Server>, method: Method, body: Bytes) -> Response {
    if method == Method::DELETE {
        server.ended.fetch_add(1, Ordering::Relaxed);
        return StatusCode::NO_CONTENT.into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let reply = |result: Value| Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    match message["method"].as_str() {
        Some("initialize") => {
            let session = server.begun.fetch_add(1, Ordering::Relaxed).to_string();
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "sessions", "version": "1"}});
            ([("mcp-session-id", session)], reply(result)).into_response()
        }
        Some("tools/list") => {
            let tool = |at: usize| json!({"name": format!("tool-{at}"), "inputSchema": {"type": "object"}});
            reply(json!({"tools": (0..server.tools).map(tool).collect::<Vec<Value>>()})).into_response()
        }
        Some("notifications/initialized") => StatusCode::ACCEPTED.into_response(),
        _ => (StatusCode::BAD_REQUEST, "unknown method").into_response(),
    }
}

/// Lists the tools of the server at `url`, in a runtime that ends with the list, as the process of a probe does. Returns what came of it.
fn probed(url: String) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = mcp::Client::new(&McpEndpoint { url }, Redactor::default()).unwrap();
        let revision = Revision::new("orders", fixture::skill(), None);
        match list(client, &revision, Instant::now() + Duration::from_mins(1)).await {
            Ok(listed) => format!("{} tools are listed", listed.len()),
            Err(error) => error.to_string(),
        }
    })
}

#[rstest]
#[case::of_a_usable_list(512, "512 tools are listed")]
#[case::of_an_unusable_list(513, "the list has more than 512 tools")]
#[tokio::test]
async fn the_session_is_ended_before_the_probe_ends(#[case] tools: usize, #[case] says: &str) {
    bloomery_http::install_tls_provider();
    let server = Server { tools, begun: Arc::default(), ended: Arc::default() };
    let router = Router::new().fallback(answer).with_state(server.clone());
    let url = format!("{}/mcp", local_server::serve(router).await);
    let result = tokio::task::spawn_blocking(move || probed(url)).await.unwrap();
    assert!(result.ends_with(says), "{result}");
    let count = |counted: &AtomicU32| counted.load(Ordering::Relaxed);
    assert_eq!((count(&server.begun), count(&server.ended)), (1, 1));
}
