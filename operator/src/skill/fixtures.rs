//! Skills for tests. Each value is unique, so that a test fails if two are swapped.

use bloomery_crds::Digest;
use bloomery_crds::probe::{ProbeReport, SkillIdentity, Subject};
use bloomery_crds::tool_pins::{PinnedTool, ToolPins};
use bloomery_crds::v1alpha1::{Model, Skill};
use serde_json::{Value, json};

pub fn with_container() -> Skill {
    skill(&json!({"container": {
        "image": "localhost/orders:3",
        "args": ["--ledger", "http://ledger:9000"],
        "port": 8070,
        "path": "/rpc",
        "health": {"path": "/healthz", "port": 8071},
        "env": [{"name": "LEDGER", "value": "east"}],
        "resources": {"limits": {"memory": "64Mi"}},
    }}))
}

pub fn with_service() -> Skill {
    skill(&json!({"service": {"name": "shared-orders", "port": 8090, "path": "/mcp"}}))
}

/// A Skill whose Jobs have a stdio server as a sidecar.
pub fn with_sidecar() -> Skill {
    let mut skill = skill(&json!({"scope": "Job", "container": {
        "image": "localhost/db:5", "transport": "stdio", "command": ["/db-mcp"], "args": ["--root", "/resources/codebase"],
        "port": 8072,
        "env": [{"name": "MODE", "value": "read"}],
        "bindings": [
            {"resource": "ledger", "env": "LEDGER_URL", "probeValue": "postgres://probe"},
            {"resource": "key", "path": "/secrets/key"},
        ],
        "resources": {"limits": {"memory": "96Mi"}},
    }}));
    skill.spec.resources = serde_json::from_value(json!([
        {"name": "codebase", "type": "filesystem", "required": true},
        {"name": "ledger", "type": "connection_string"},
        {"name": "key", "type": "credential"},
    ]))
    .unwrap();
    skill
}

pub fn with_uri() -> Skill {
    skill(&json!({
        "uri": "https://tools.example/mcp",
        "headers": [{"name": "Authorization", "scheme": "Bearer", "secretKeyRef": {"name": "tools", "key": "token"}}],
        "ca": {"configMapKeyRef": {"name": "corporate", "key": "ca.crt"}},
    }))
}

pub fn without_server() -> Skill {
    skill(&Value::Null)
}

/// A Skill with a list from a ConfigMap.
pub fn with_list() -> Skill {
    let mut skill = without_server();
    let source = json!({"configMapKeyRef": {"name": "bank-lists", "key": "payees"}});
    let rule = json!({"toolId": "send_money", "when": "!(recipient in lists.payees)"});
    let policy = json!({"listsFrom": {"payees": source}, "approvals": [rule]});
    skill.spec.policy = serde_json::from_value(policy).unwrap();
    skill
}

/// A Skill with the same script for two systems.
pub fn with_scripts() -> Skill {
    let mut skill = without_server();
    let files = json!({"check.sh": "test -e \"$1\"\n", "check.py": "print(1)\n"});
    skill.spec.scripts =
        serde_json::from_value(json!({"image": "localhost/shell:6", "files": files, "timeout": "45s"})).unwrap();
    skill
}

/// A Skill with every field of stages, resources and rules.
pub fn complete() -> Skill {
    let mut whole = serde_json::to_value(without_server()).unwrap();
    let more = json!({
        "role": {"name": "Support Agent", "persona": "You help.{{#if resources.docs}} Docs: {{resources.docs}}{{/if}}"},
        "intents": {
            "supported": [
                {"id": "refund", "examples": ["money back"], "entities": [{"name": "order_id", "type": "string", "required": true}]},
                {"id": "track"},
            ],
            "outOfDomain": {"action": "redirect", "message": "I can only help with orders."},
        },
        "resources": [
            {"name": "codebase", "type": "filesystem", "required": true},
            {"name": "docs", "type": "api_endpoint"},
            {"name": "ledger", "type": "connection_string"},
        ],
        "tools": [{
            "name": "process_refund", "inputs": [{"name": "amount", "type": "number", "required": true}],
            "policy": {"allowed": "conditional", "requiresApproval": "conditional", "condition": "amount > 500"},
            "idempotent": true,
        }],
        "policy": {
            "tools": {"blocked": ["delete_*"]},
            "guardrails": {"never": ["Never use delete_customer"], "always": ["Always be kind"]},
            "workflows": [{"name": "refund", "steps": ["verify", "process_refund"], "required": true, "intents": ["refund"]}],
            "approvals": [{"toolId": "process_refund", "when": "amount > 900", "action": "require_approval", "approver": "supervisor"}],
        },
        "engine": {
            "model": "large", "approver": "lead",
            "finalizationGate": {"maxRetries": 1, "model": "fast"},
            "replyPolisher": {"enabled": true, "model": "kind"},
        },
        "acceptanceCriteria": ["The order is named"],
    });
    whole["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

/// The report of a probe that found tools with these names and descriptions.
pub fn probe_report(skill: &Skill, subject: &Subject, tools: &[(&str, &str)]) -> ProbeReport {
    let pin = |(name, description): &(&str, &str)| {
        let parts = [json!(description), json!({}), json!({})];
        PinnedTool::new(name, &Digest::of_value(&json!([name, description])), [&parts[0], &parts[1], &parts[2]])
    };
    let metadata = skill.metadata.clone();
    ProbeReport {
        skill: SkillIdentity {
            namespace: metadata.namespace.unwrap(),
            name: metadata.name.unwrap(),
            uid: metadata.uid.unwrap(),
        },
        pod: "orders-probe-1".into(),
        subject: subject.clone(),
        tools: ToolPins::from_listed(tools.iter().map(pin).collect()),
        count: u32::try_from(tools.len()).unwrap(),
        rule_errors: Vec::new(),
        more_rule_errors: 0,
    }
}

/// A ready Model with a key.
pub fn model(name: &str) -> Model {
    serde_json::from_value(json!({
        "apiVersion": "bloomery.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"namespace": "acme", "name": name, "uid": format!("u-{name}"), "generation": 2},
        "spec": {
            "provider": "openai", "model": "gpt", "baseUrl": "https://models.example/v1",
            "apiKey": {"secretKeyRef": {"name": "llm", "key": "token"}},
        },
        "status": {"observedGeneration": 2, "conditions": [
            {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]},
    }))
    .unwrap()
}

fn skill(server: &Value) -> Skill {
    serde_json::from_value(json!({
        "apiVersion": "bloomery.dev/v1alpha1",
        "kind": "Skill",
        "metadata": {"namespace": "acme", "name": "orders", "uid": "u-skill", "generation": 4, "resourceVersion": "77"},
        "spec": {
            "displayName": "Orders",
            "problem": {"statement": "Help with orders"},
            "role": {"name": "Agent", "persona": "You help."},
            "mcpServer": server,
        },
    }))
    .unwrap()
}
