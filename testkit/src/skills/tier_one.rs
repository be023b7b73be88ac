//! The rules of the example Skill `cs-tier-1`, a support agent that refunds orders.

use bloomery_crds::v1alpha1::SkillSpec;
use serde_json::{Value, json};

use crate::json::typed;

/// Adds intents, guardrails, a workflow, an approval rule and the finalization gate to a Skill that refunds orders.
pub fn add_tier_one_rules(spec: &mut SkillSpec) {
    spec.problem = typed(json!({
        "statement": "Help customers track orders and process refunds",
        "goals": ["Reduce response time", "Increase satisfaction"],
    }));
    spec.role = Some(typed(json!({
        "name": "Support Agent", "persona": "Friendly and empathetic customer support specialist",
    })));
    spec.intents = Some(typed(intents()));
    spec.tools.push(typed(process_refund()));
    spec.policy = Some(typed(policy()));
    spec.engine = Some(typed(json!({"finalizationGate": {"enabled": true, "maxRetries": 2}})));
}

fn intents() -> Value {
    let order_id = json!({"name": "order_id", "type": "string", "required": true});
    json!({
        "supported": [
            {
                "id": "intent_refund",
                "description": "Customer wants refund",
                "examples": ["I want my money back", "Refund please"],
                "entities": [order_id],
            },
            {
                "id": "intent_track",
                "description": "Customer wants to know where an order is",
                "examples": ["Where is my order?"],
                "entities": [order_id],
            },
        ],
        "outOfDomain": {"action": "redirect", "message": "I can only help with orders and refunds"},
    })
}

fn process_refund() -> Value {
    json!({
        "name": "process_refund",
        "description": "Process a customer refund",
        "inputs": [
            {"name": "order_id", "type": "string", "required": true},
            {"name": "amount", "type": "number", "required": true},
        ],
        "policy": {"allowed": "always", "requiresApproval": "conditional", "condition": "amount > 500"},
    })
}

fn policy() -> Value {
    json!({
        "guardrails": {
            "never": [
                "Never share customer payment information",
                "Never process refunds over $500 without supervisor approval",
                "Never be dismissive to frustrated customers",
            ],
            "always": [
                "Always verify customer identity before account access",
                "Always confirm before making changes",
            ],
        },
        "workflows": [{
            "name": "Refund Processing",
            "steps": ["verify_identity", "check_eligibility", "process_refund"],
            "required": true,
            "intents": ["intent_refund"],
        }],
        "approvals": [
            {"toolId": "process_refund", "when": "amount > 500", "action": "require_approval", "approver": "supervisor"},
        ],
    })
}
