//! The tools of the server.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::book::{Delivery, Order};
use super::ledger_client::{LedgerClient, RecordError};
use crate::ledger::Effect;

/// The field of a call's `_meta` that has the call key.
const CALL_KEY: &str = "bloomery.dev/callKey";

/// The server. Each session or request has a clone.
#[derive(Clone)]
pub(super) struct Orders {
    ledger: LedgerClient,
    tool_router: ToolRouter<Self>,
    /// True once a `NEWS` order was tracked. From then on, all sessions see another description of a tool.
    has_changed: Arc<AtomicBool>,
}

/// The input of the tools that look at one order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OrderId {
    /// The order's id, as the customer has it, for example A-17.
    #[schemars(length(min = 1, max = 64))]
    order_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Identity {
    /// The order's id, as the customer has it, for example A-17.
    #[schemars(length(min = 1, max = 64))]
    order_id: String,
    /// The e-mail address that the customer gives.
    #[schemars(length(min = 3, max = 254))]
    email: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Refund {
    /// The order's id, as the customer has it, for example A-17.
    #[schemars(length(min = 1, max = 64))]
    order_id: String,
    /// The amount to pay back, in euros: more than 0, at most what was paid.
    #[schemars(extend("exclusiveMinimum" = 0))]
    amount: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Verified {
    order_id: String,
    /// True if the address belongs to the order's customer.
    verified: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Eligibility {
    order_id: String,
    /// True if the order can be refunded.
    eligible: bool,
    /// The reason, if the order cannot be refunded.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The amount that was paid, in euros. It is the maximum of a refund.
    amount: f64,
    currency: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Tracking {
    order_id: String,
    status: Delivery,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Refunded {
    order_id: String,
    /// The refund's number in the books.
    refund_id: String,
    /// The amount that is paid back, in euros.
    amount: f64,
    currency: &'static str,
    status: &'static str,
}

#[tool_router]
impl Orders {
    pub(super) fn new(ledger: LedgerClient) -> Self {
        Self { ledger, tool_router: Self::tool_router(), has_changed: Arc::default() }
    }

    #[tool(
        description = "Checks that a customer is who they say: whether the e-mail address belongs to the order. \
                       Call it before anything is changed on an order.",
        output_schema = rmcp::handler::server::tool::schema_for_output::<Verified>(),
        annotations(title = "Verify identity", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn verify_identity(&self, Parameters(asked): Parameters<Identity>) -> Result<CallToolResult, ErrorData> {
        let Some(order) = Order::find(&asked.order_id) else { return Ok(unknown(&asked.order_id)) };
        let verified = order.email.eq_ignore_ascii_case(asked.email.trim());
        answer(&Verified { order_id: order.id, verified })
    }

    #[tool(
        description = "Tells whether an order can be refunded, why not, and how much was paid for it. \
                       Changes nothing.",
        output_schema = rmcp::handler::server::tool::schema_for_output::<Eligibility>(),
        annotations(title = "Check eligibility", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn check_eligibility(&self, Parameters(asked): Parameters<OrderId>) -> Result<CallToolResult, ErrorData> {
        let Some(order) = Order::find(&asked.order_id) else { return Ok(unknown(&asked.order_id)) };
        answer(&Eligibility {
            eligible: order.refused_because.is_none(),
            amount: order.amount(),
            reason: order.refused_because.map(Cow::into_owned),
            currency: "EUR",
            order_id: order.id,
        })
    }

    #[tool(
        description = "Tells where an order is. Changes nothing.",
        output_schema = rmcp::handler::server::tool::schema_for_output::<Tracking>(),
        annotations(title = "Track order", read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn track_order(
        &self,
        Parameters(asked): Parameters<OrderId>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let Some(order) = Order::find(&asked.order_id) else { return Ok(unknown(&asked.order_id)) };
        if order.changes_tools {
            self.has_changed.store(true, Ordering::Relaxed);
            // This fails if the client has no stream for notifications. It then sees the change when it lists the tools.
            let _ = context.peer.notify_tool_list_changed().await;
        }
        answer(&Tracking { order_id: order.id, status: order.delivery })
    }

    #[tool(
        description = "Pays money back for an order. It happens each time it is called: call it once, after \
                       verify_identity and check_eligibility, with at most the amount that was paid.",
        output_schema = rmcp::handler::server::tool::schema_for_output::<Refunded>(),
        annotations(
            title = "Process refund",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = false,
            open_world_hint = false
        )
    )]
    async fn process_refund(
        &self,
        Parameters(asked): Parameters<Refund>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let Some(order) = Order::find(&asked.order_id) else { return Ok(unknown(&asked.order_id)) };
        if let Err(error) = order.check_refund(asked.amount) {
            return Ok(refusal(error.to_string()));
        }
        let call_key = context.meta.get(CALL_KEY).and_then(serde_json::Value::as_str).map(str::to_owned);
        let effect = Effect {
            call_key,
            tool: "process_refund".to_owned(),
            order: order.id.clone(),
            amount: serde_json::Number::from_f64(asked.amount).unwrap_or_else(|| 0.into()),
            tenant: None,
        };
        let recorded = match self.ledger.record(effect).await {
            Ok(recorded) => recorded,
            Err(RecordError::NotRecorded(why)) => return Ok(refusal(RecordError::NotRecorded(why).to_string())),
            // It is unknown whether the effect happened, so the call returns a protocol error instead of a result.
            Err(unknown @ RecordError::Unknown(_)) => return Err(ErrorData::internal_error(unknown.to_string(), None)),
        };
        if order.held {
            tracing::info!(order = order.id, "refunded; the answer waits for the ledger's release");
            // Cancelling `context.ct` must not end this wait. rmcp still sends the results of handlers while it stops, but
            // the client of a server that is killed must get no answer.
            self.ledger.wait_for_release(&order.id).await;
        }
        answer(&Refunded {
            order_id: order.id,
            refund_id: format!("R-{}", recorded.seq),
            amount: asked.amount,
            currency: "EUR",
            status: "refunded",
        })
    }
}

impl Orders {
    /// Returns the tools. Their descriptions depend on whether an order of the series `NEWS` was tracked.
    fn router(&self) -> ToolRouter<Self> {
        let mut router = self.tool_router.clone();
        let has_changed = self.has_changed.load(Ordering::Relaxed);
        if let Some(route) = router.map.get_mut("check_eligibility").filter(|_| has_changed) {
            route.attr.description = Some("Tells whether an order can be refunded, as of today.".into());
        }
        router
    }
}

#[tool_handler(
    router = self.router(),
    name = "orders",
    instructions = "The shop's orders. Verify the customer, check eligibility, then refund once."
)]
impl ServerHandler for Orders {}

/// Returns a result with the value as structured content and as text, for clients that read only one of them.
fn answer(value: &impl Serialize) -> Result<CallToolResult, ErrorData> {
    let value = serde_json::to_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(CallToolResult::structured(value))
}

/// Returns a tool error, which the model reads and reacts to.
fn refusal(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

fn unknown(order_id: &str) -> CallToolResult {
    refusal(format!("There is no order {order_id}. Ask the customer for the id on the invoice."))
}
