//! The servers that most stories need: a ledger and a scripted model, with a Model for it.

use bloomery_testkit::script::Conversation;

use super::ledger::Ledger;
use super::model::ModelServer;
use super::objects::PORT;
use super::pods::Server;
use super::tenant::Tenant;

/// A ledger and a scripted model.
pub struct Shop {
    /// The ledger with the effects of the calls.
    pub ledger: Ledger,
    /// The scripted model.
    pub model: ModelServer,
}

impl Tenant {
    /// Starts a ledger and a scripted model with these conversations, and creates the Model `default`.
    pub async fn shop(&self, conversations: &[Conversation]) -> Shop {
        let (ledger, model) = tokio::join!(self.ledger(), self.model_server(conversations));
        // The last object, because a Job may wait for it, and then calls both servers.
        self.model("default").await;
        Shop { ledger, model }
    }
}

impl Tenant {
    /// Starts the shop's MCP server as the Service `orders`, outside of any Skill.
    pub async fn orders_server(&self) {
        let env = vec![("LEDGER_URL", format!("http://ledger.{}.svc:{PORT}", self.namespace))];
        self.serve(Server { name: "orders", image: "e2e-orders", env, volumes: Vec::new() }).await;
    }
}

impl Shop {
    /// Checks that an order was refunded exactly once and that no request broke the model's protocol.
    pub async fn assert_refunded_once(&self, order: &str) {
        self.ledger.assert_refunded_once(order).await;
        self.model.assert_no_violations().await;
    }
}
