//! The Skill of the measurements. All of its gates and stages are enabled.

use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_engine::decisions::Decisions;
use bloomery_engine::run::Run;
use serde_json::{Value, json};

/// The goal of the Job.
pub(crate) const GOAL: &str = "Refund the orders of this list, they arrived broken";

/// Limits that no measurement reaches.
pub(crate) const LIMITS: EffectiveLimits =
    EffectiveLimits { steps: 1_000_000, tool_calls: 1_000_000, tokens: 1 << 50, duration_seconds: 1 << 30 };

/// A context window that no measurement fills.
pub(crate) const WINDOW: u64 = 1 << 40;

/// The tools of the Skill's server.
pub(crate) const TOOLS: [&str; 4] = ["verify", "refund", "lookup", "notify"];

/// Returns a Skill with intents, all kinds of guardrails, a required workflow, conditions, approvals, an output contract, the finalization
/// gate and the polisher.
pub(crate) fn skill() -> SkillSpec {
    serde_json::from_value(json!({
        "displayName": "CS: Tier 1",
        "problem": {
            "statement": "Help customers track orders and process refunds",
            "goals": ["Reduce response time", "Increase satisfaction"],
        },
        "role": {"name": "Support Agent", "persona": "Friendly and empathetic customer support specialist"},
        "intents": {
            "supported": [
                {"id": "refund", "description": "The customer wants money back",
                 "entities": [{"name": "order_id", "type": "string", "required": true}]},
                {"id": "track", "description": "The customer asks where an order is"},
            ],
            "outOfDomain": {"action": "refuse", "message": "We help with orders only."},
        },
        "tools": [
            {"name": "verify", "readOnly": true},
            {"name": "lookup", "readOnly": true},
            {"name": "refund", "policy": {"allowed": "conditional", "condition": "amount > 0.0 && amount < 500.0"}},
            {"name": "notify", "idempotent": true},
        ],
        "policy": {
            "tools": {"blocked": ["delete_*"]},
            "allowUnmatched": true,
            "guardrails": {
                "never": ["Never use delete_customer", "amount > 1000", "Never promise a date of delivery"],
                "always": ["Always verify before a refund", "amount >= 0"],
            },
            "workflows": [{"name": "refund", "steps": ["verify", "refund"], "required": true}],
            "approvals": [{"toolId": "refund", "when": "amount > 400.0", "approver": "lead"}],
        },
        "outputContract": {
            "requiredFields": ["order_id", "status"],
            "schema": {"type": "object", "properties": {"order_id": {"type": "string"}, "status": {"type": "string"}}},
        },
        "acceptanceCriteria": ["Every order of the list is named"],
        "engine": {"finalizationGate": {"enabled": true}, "replyPolisher": {"enabled": true}},
    }))
    .unwrap()
}

/// Returns a Skill without tools.
pub(crate) fn plain() -> SkillSpec {
    serde_json::from_value(json!({
        "displayName": "CS: Tier 1",
        "problem": {"statement": "Help customers track orders and process refunds"},
        "role": {"name": "Support Agent", "persona": "Friendly and empathetic customer support specialist"},
    }))
    .unwrap()
}

/// Returns a Skill that reads files, without gates.
pub(crate) fn reader() -> SkillSpec {
    let mut skill = plain();
    skill.resources = serde_json::from_value(json!([{"name": "code", "type": "filesystem"}])).unwrap();
    skill.engine = serde_json::from_value(json!({"finalizationGate": {"enabled": false}})).unwrap();
    skill
}

/// Returns the argument schema of each tool.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object", "required": ["order_id", "amount"], "additionalProperties": false,
        "properties": {
            "order_id": {"type": "string", "pattern": "^A-[0-9]+$"},
            "amount": {"type": "number", "minimum": 0},
            "reason": {"type": "string", "maxLength": 1000},
        },
    })
}

/// Returns the engine's input for a Job of the Skill.
pub(crate) fn run(skill: SkillSpec) -> Run {
    Run {
        run_key: crate::RUN_KEY.into(),
        job: None,
        skill_name: "cs-tier-1".into(),
        skill,
        revision: Digest::of_bytes(b"revision"),
        goal: GOAL.into(),
        limits: LIMITS,
        resources: Vec::new(),
        context_window: WINDOW,
        continues: None,
        pins: None,
        tenant_tools: Vec::new(),
        allowed_effects: None,
        people: false,
        decisions: Decisions::Log,
        depth: 1,
        can_have_children: false,
        has_notes: false,
        max_output: 4_096,
    }
}
