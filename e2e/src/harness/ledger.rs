//! The ledger of a tenant, which counts effects durably.

use bloomery_testkit::json::typed;
use bloomery_testkit::ledger::{OrderSummary, Summary};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::{Value, json};

use super::objects::PORT;
use super::pods::Server;
use super::proxy::Service;
use super::tenant::Tenant;
use super::wait::eventually;

/// The ledger of a tenant.
pub struct Ledger {
    service: Service,
    /// The base URL within the cluster.
    pub url: String,
}

impl Tenant {
    /// Creates a claim of a small volume.
    pub async fn claim(&self, name: &str) {
        let claim: PersistentVolumeClaim = typed(json!({
            "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}},
        }));
        self.create(claim).await;
    }

    /// Starts a ledger with its own volume claim.
    pub async fn ledger(&self) -> Ledger {
        self.claim("ledger").await;
        let volume = typed(json!({"name": "journal", "persistentVolumeClaim": {"claimName": "ledger"}}));
        let server = Server {
            name: "ledger",
            image: "e2e-ledger",
            env: vec![("LEDGER_DIR", "/journal".to_owned())],
            volumes: vec![(volume, "/journal")],
        };
        self.serve(server).await;
        let service = Service::new(self.cluster.client.clone(), &self.namespace, "ledger", PORT);
        Ledger { service, url: format!("http://ledger.{}.svc:{PORT}", self.namespace) }
    }
}

impl Ledger {
    /// Returns the effects so far.
    pub async fn summary(&self) -> Summary {
        eventually("the ledger to answer", async || self.service.get("/effects/summary").await).await
    }

    /// Checks that an order was refunded exactly once.
    pub async fn assert_refunded_once(&self, order: &str) {
        let summary = self.summary().await;
        let found = summary.orders.get(order).cloned().unwrap_or_default();
        assert_eq!(found.effects, 1, "{order} should be refunded once; the ledger has {summary:#?}");
        assert_eq!(found.call_keys.len(), 1, "the refund of {order} should carry its call's key: {summary:#?}");
    }

    /// Waits for a refund of an order.
    pub async fn until_refunded(&self, order: &str) -> OrderSummary {
        eventually(&format!("a refund of {order} in the ledger"), async || {
            let summary: Summary = self.service.get("/effects/summary").await?;
            summary.orders.get(order).cloned().ok_or_else(|| format!("{summary:#?}"))
        })
        .await
    }

    /// Releases the answer to the refund of a `HOLD-` order.
    pub async fn release(&self, order: &str) {
        let path = format!("/holds/{order}/release");
        let _: Value = eventually("the ledger to answer", async || self.service.post(&path).await).await;
    }
}
