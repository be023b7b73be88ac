//! The server with a real ledger behind it, asked by rmcp's client and in plain HTTP.

mod calls;
mod holds;
mod wire;

use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion};
use rmcp::service::{RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};

use super::*;
use crate::ledger;
use crate::ledger::Summary;

type Client = RunningService<RoleClient, ClientConfig>;

/// An orders server and its ledger.
struct Shop {
    orders: Running,
    ledger: Running,
    /// Kept as long as the ledger writes to it.
    dir: tempfile::TempDir,
}

fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

impl Shop {
    async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ledger = ledger::start(any_port(), dir.path()).await.unwrap();
        let options = Options { ledger: Some(ledger.url()), tenant: Some("acme".to_owned()), ..Options::default() };
        let orders = start(any_port(), options).await.unwrap();
        Self { orders, ledger, dir }
    }

    /// A client of the handshake, with a session.
    async fn session(&self) -> Client {
        connect(&self.orders, ClientLifecycleMode::Initialize).await
    }

    async fn summary(&self) -> Summary {
        let url = format!("{}/effects/summary", self.ledger.url());
        crate::http::client().unwrap().get(url).send().await.unwrap().json().await.unwrap()
    }

    async fn until_effects(&self, count: u64) {
        while self.summary().await.effects < count {
            tokio::task::yield_now().await;
        }
    }

    async fn release(&self, order: &str) {
        let url = format!("{}/holds/{order}/release", self.ledger.url());
        crate::http::client().unwrap().post(url).send().await.unwrap();
    }
}

async fn connect(orders: &Running, lifecycle: ClientLifecycleMode) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", orders.url()));
    let transport = StreamableHttpClientTransport::with_client(crate::http::client().unwrap(), config);
    ClientConfig::default().serve_with_lifecycle(transport, lifecycle).await.unwrap()
}

fn stateless() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

fn call(tool: &'static str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

fn refund(order: &str, amount: f64, key: &str) -> CallToolRequestParams {
    let mut params = call("process_refund", &json!({"order_id": order, "amount": amount}));
    params.meta = Some(serde_json::from_value(json!({"bloomery.dev/callKey": key})).unwrap());
    params
}

/// The text of a tool error.
fn error_text(result: &CallToolResult) -> &str {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    &result.content[0].as_text().unwrap().text
}
