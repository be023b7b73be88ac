//! `orders`: an MCP server of a shop, real on the wire, with one effect that leaves it.
//!
//! It looks up orders, and refunds one by telling the ledger. It is what a Skill's container may
//! be, and what stories count on: an effect is in the ledger before its call is answered.

mod book;
mod ledger_client;
#[cfg(test)]
mod tests;
mod tools;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

pub use self::book::{Delivery, Order, terms};
use self::ledger_client::LedgerClient;
use self::tools::Orders;
use crate::serving::Running;

/// How an orders server is set up.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Base URL of the ledger. Without it the server answers questions and refunds nothing.
    pub ledger: Option<String>,
    /// Whose orders these are, told to the ledger with each effect.
    pub tenant: Option<String>,
    /// The `Host` values that are accepted; empty: every one. A Service's name is not known to
    /// the image that runs behind it.
    pub allowed_hosts: Vec<String>,
}

/// Starts an orders server on `addr`, with MCP at `/mcp`.
///
/// # Errors
/// `addr` cannot be listened on, or the client of the ledger cannot be built.
pub async fn start(addr: SocketAddr, options: Options) -> io::Result<Running> {
    let stop = CancellationToken::new();
    let ledger = LedgerClient::new(options.ledger, options.tenant).map_err(io::Error::other)?;
    let orders = Orders::new(ledger, stop.clone());
    // Browsers always say where a request comes from. Refusing all who do is what keeps a page
    // that was rebound to our address out, whatever name it uses for us.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(options.allowed_hosts)
        .enforce_origin_validation()
        .with_json_response(true)
        .with_cancellation_token(stop.child_token());
    let sessions = Arc::new(LocalSessionManager::default());
    let mcp = StreamableHttpService::new(move || Ok(orders.clone()), sessions, config);
    let router = Router::new().route("/healthz", get(async || "ok\n")).route_service("/mcp", mcp);
    Running::start(addr, router, stop).await
}
