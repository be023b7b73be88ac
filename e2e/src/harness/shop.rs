//! What most stories need: a ledger, a scripted model, and a Model that names it.

use bloomery_testkit::script::Conversation;

use super::ledger::Ledger;
use super::model::ModelServer;
use super::objects::PORT;
use super::pods::Server;
use super::tenant::Tenant;

/// A ledger and a scripted model.
pub struct Shop {
    /// What really happened.
    pub ledger: Ledger,
    /// What the agents were told.
    pub model: ModelServer,
}

impl Tenant {
    /// Runs a ledger and a model that follows these conversations, and makes the Model `default`.
    pub async fn shop(&self, conversations: &[Conversation]) -> Shop {
        let model = self.model("default").into_future();
        let (ledger, server, ()) = tokio::join!(self.ledger(), self.model_server(conversations), model);
        Shop { ledger, model: server }
    }
}

impl Tenant {
    /// Runs the shop's MCP server as a Service `orders`, as a team might that has one already.
    pub async fn orders_server(&self) {
        let env = vec![("LEDGER_URL", format!("http://ledger.{}.svc:{PORT}", self.namespace))];
        self.serve(Server { name: "orders", image: "e2e-orders", env, volumes: Vec::new() }).await;
    }
}

impl Shop {
    /// Fails unless an order was refunded exactly once, and no request broke the model's protocol.
    pub async fn refunded_once(&self, order: &str) {
        self.ledger.refunded_once(order).await;
        self.model.found_no_fault().await;
    }
}
