//! The shop of e2e, beside a stand: its ledger, and its MCP server, which can be killed.

use super::stand::{PATIENCE, get};
use bloomery_testkit::ledger::{self, Summary};
use bloomery_testkit::orders;
use bloomery_testkit::serving::Running;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::runtime::Runtime;

pub struct Shop {
    ledger: Running,
    orders: Running,
    /// What the MCP server runs in; none once it was killed.
    runtime: Option<Runtime>,
    _journal: tempfile::TempDir,
}

impl Shop {
    pub async fn open() -> Self {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let here = || SocketAddr::from(([127, 0, 0, 1], 0));
        let journal = tempfile::tempdir().unwrap();
        let ledger = ledger::start(here(), journal.path()).await.unwrap();
        let options = orders::Options { ledger: Some(ledger.url()), ..orders::Options::default() };
        // Of its own: what is killed ends in the middle of what it does.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let orders = runtime.spawn(orders::start(here(), options)).await.unwrap().unwrap();
        Self { ledger, orders, runtime: Some(runtime), _journal: journal }
    }

    /// The address of its MCP server.
    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.orders.url())
    }

    /// The address of its ledger.
    pub fn ledger(&self) -> String {
        self.ledger.url()
    }

    /// What really happened.
    pub async fn summary(&self) -> Summary {
        get(&format!("{}/effects/summary", self.ledger.url())).await
    }

    /// Waits until an order was refunded.
    pub async fn until_refunded(&self, order: &str) {
        let refunded = tokio::time::timeout(PATIENCE, async {
            while !self.summary().await.orders.contains_key(order) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(refunded.await.is_ok(), "{order} was not refunded");
    }

    /// Ends the MCP server as a crash does: its connections close, and nothing is answered.
    pub fn kill_orders(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.kill_orders();
    }
}
