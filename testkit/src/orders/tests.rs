//! Tests of the server with a real ledger, through rmcp's client and through plain HTTP.

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
use crate::shop::Shop;

type Client = RunningService<RoleClient, ClientConfig>;

fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

async fn shop() -> Shop {
    Shop::start(Some("acme")).await
}

/// Returns a client with an initialized session.
async fn session(shop: &Shop) -> Client {
    connect(&shop.orders, ClientLifecycleMode::Initialize).await
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

/// Returns the text of a tool error.
fn error_text(result: &CallToolResult) -> &str {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    &result.content[0].as_text().unwrap().text
}
