//! Skills of a shop that refunds orders, for the tools of [`crate::orders`].

mod tier_one;

use bloomery_crds::v1alpha1::SkillSpec;
use serde_json::json;

use crate::json::typed;

pub use self::tier_one::add_tier_one_rules;

/// Returns a Skill that refunds orders with the tools of the shop's MCP server. It names no MCP server.
pub fn refunds() -> SkillSpec {
    let read_only = |name: &str| json!({"name": name, "readOnly": true});
    typed(json!({
        "displayName": "CS: Tier 1",
        "version": 1,
        "problem": {"statement": "Help customers track orders and process refunds."},
        "role": {"name": "Support Agent", "persona": "You help with orders."},
        "tools": [read_only("verify_identity"), read_only("check_eligibility"), read_only("track_order")],
        "outputContract": {"requiredFields": ["order_id", "status", "next_steps"]},
    }))
}

/// Returns [`refunds`] with all rules of the example Skill `cs-tier-1` ([`add_tier_one_rules`]).
pub fn tier_one() -> SkillSpec {
    let mut spec = refunds();
    add_tier_one_rules(&mut spec);
    spec
}

/// Returns [`refunds`] with one rule: the approver `supervisor` decides on refunds over 500.
pub fn supervised() -> SkillSpec {
    let mut spec = refunds();
    let rule = json!({
        "toolId": "process_refund", "when": "amount > 500", "action": "require_approval", "approver": "supervisor",
    });
    spec.policy = Some(typed(json!({"approvals": [rule]})));
    spec
}
