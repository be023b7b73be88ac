//! Skills of a shop that refunds orders, for the tools of [`crate::orders`].

mod tier_one;

use bloomery_crds::v1alpha1::{OutputContract, Problem, Role, SkillSpec, ToolDeclaration};
use serde_json::json;

use crate::json::typed;

pub use self::tier_one::add_tier_one_rules;

/// Returns a Skill that refunds orders with the tools of the shop's MCP server. It names no MCP server.
pub fn refunds() -> SkillSpec {
    let read_only =
        |name: &str| ToolDeclaration { name: name.to_owned(), read_only: Some(true), ..ToolDeclaration::default() };
    SkillSpec {
        display_name: Some("CS: Tier 1".to_owned()),
        version: Some(1),
        problem: Problem {
            statement: "Help customers track orders and process refunds.".to_owned(),
            goals: Vec::new(),
        },
        goal: None,
        role: Some(Role { name: Some("Support Agent".to_owned()), persona: Some("You help with orders.".to_owned()) }),
        intents: None,
        resources: Vec::new(),
        mcp_server: None,
        tools: vec![read_only("verify_identity"), read_only("check_eligibility"), read_only("track_order")],
        policy: None,
        output_contract: Some(OutputContract {
            required_fields: ["order_id", "status", "next_steps"].map(str::to_owned).to_vec(),
            schema: None,
        }),
        acceptance_criteria: Vec::new(),
        features: Vec::new(),
        docs: None,
        scripts: None,
        skills: Vec::new(),
        context: None,
        pods: None,
        memory: None,
        max_running_jobs: None,
        engine: None,
    }
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
