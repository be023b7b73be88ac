//! The MCP server of [`crate::orders`] and its ledger, in this process.

use std::net::SocketAddr;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::ledger::{self, Summary};
use crate::orders::{self, Options};
use crate::serving::Running;

/// The time limit for an effect that a test waits for.
const EFFECT_TIMEOUT: Duration = Duration::from_mins(1);

/// The interval at which the ledger is read while a test waits.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An MCP server that refunds orders, and the ledger that counts the refunds.
pub struct Shop {
    /// The MCP server.
    pub orders: Running,
    /// The ledger.
    pub ledger: Running,
    runtime: OrdersRuntime,
    /// The directory of the ledger's journal.
    pub dir: tempfile::TempDir,
}

impl Shop {
    /// Starts both servers. `tenant` is the tenant that the ledger records.
    pub async fn start(tenant: Option<&str>) -> Self {
        // Fails if another test has already installed a provider. Any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = ledger::start(any_port, dir.path()).await.expect("the ledger starts");
        let options = Options { ledger: Some(ledger.url()), tenant: tenant.map(str::to_owned), ..Options::default() };
        // The server has its own runtime, so a test can kill it with all its requests.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let orders = runtime.spawn(orders::start(any_port, options)).await.expect("it does not panic");
        Self { orders: orders.expect("the MCP server starts"), ledger, runtime: OrdersRuntime(Some(runtime)), dir }
    }

    /// Returns the URL of the MCP endpoint.
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.orders.url())
    }

    /// Returns the ledger's summary of the effects.
    pub async fn summary(&self) -> Summary {
        self.read("effects/summary").await
    }

    /// Returns the ledger's answer to a GET request for this path.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> T {
        let client = crate::http::client().expect("a client");
        let response = client.get(format!("{}/{path}", self.ledger.url())).send().await.expect("the ledger answers");
        response.json().await.expect("the answer is readable")
    }

    /// Waits until an order was refunded.
    pub async fn until_refunded(&self, order: &str) {
        self.until(&format!("{order} to be refunded"), |summary| summary.orders.contains_key(order)).await;
    }

    /// Waits until the ledger has this many effects.
    pub async fn until_effects(&self, count: u64) {
        self.until(&format!("{count} effects"), |summary| summary.effects >= count).await;
    }

    async fn until(&self, what: &str, is_reached: impl Fn(&Summary) -> bool) {
        let reached = tokio::time::timeout(EFFECT_TIMEOUT, async {
            while !is_reached(&self.summary().await) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        assert!(reached.await.is_ok(), "waited {EFFECT_TIMEOUT:?} for {what}");
    }

    /// Releases an order, so that the server answers the refund of this order.
    pub async fn release(&self, order: &str) {
        let url = format!("{}/holds/{order}/release", self.ledger.url());
        crate::http::client().expect("a client").post(url).send().await.expect("the ledger answers");
    }

    /// Ends the MCP server as a crash does: its connections close, and no request is answered.
    pub fn kill_orders(&mut self) {
        self.runtime.shut_down();
    }
}

/// The runtime of the MCP server, until the server is killed.
struct OrdersRuntime(Option<Runtime>);

impl OrdersRuntime {
    fn shut_down(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for OrdersRuntime {
    fn drop(&mut self) {
        // Dropping a runtime within another one panics, because it blocks.
        self.shut_down();
    }
}
