//! An MCP server for the orders of a shop, for tests and the demo.
//!
//! Its tools look up orders and refund them. A refund is an effect in the ledger, recorded before the call is answered.

mod book;
mod hostile;
mod ledger_client;
#[cfg(test)]
mod tests;
mod tools;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{any, get};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

pub use self::book::{Delivery, Order, terms};
use self::ledger_client::LedgerClient;
use self::tools::Orders;
use crate::serving::Running;

/// The options of the server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The base URL of the ledger. Without it, the server refuses refunds.
    pub ledger: Option<String>,
    /// The tenant that is recorded with each effect.
    pub tenant: Option<String>,
    /// The accepted values of the `Host` header. If it is empty, all are accepted: a container does not know the names
    /// of its Services.
    pub allowed_hosts: Vec<String>,
    /// True if requests to `/mcp` are never answered.
    pub silent: bool,
}

/// Starts the server on `addr`, with MCP at `/mcp`.
///
/// # Errors
/// The server cannot listen on `addr`, or the HTTP client for the ledger cannot be built.
pub async fn start(addr: SocketAddr, options: Options) -> io::Result<Running> {
    let stop = CancellationToken::new();
    let ledger = LedgerClient::new(options.ledger, options.tenant).map_err(io::Error::other)?;
    let orders = Orders::new(ledger);
    // Against DNS rebinding: browsers always send an `Origin`, and all requests with one are refused.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(options.allowed_hosts)
        .enforce_origin_validation()
        .with_json_response(true)
        .with_cancellation_token(stop.child_token());
    let sessions = Arc::new(LocalSessionManager::default());
    let mcp = StreamableHttpService::new(move || Ok(orders.clone()), sessions, config);
    let router = Router::new().route("/healthz", get(async || "ok\n"));
    let router = if options.silent {
        router.route("/mcp", any(async || std::future::pending::<()>().await))
    } else {
        router.route_service("/mcp", mcp).layer(from_fn(hostile::answer))
    };
    Running::start(addr, router, stop).await
}
