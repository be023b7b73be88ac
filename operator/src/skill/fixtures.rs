//! Skills that tests begin with. Their values differ from one another, so that swapped ones fail.

use bloomery_crds::v1alpha1::Skill;
use serde_json::{Value, json};

pub fn with_container() -> Skill {
    skill(&json!({"container": {
        "image": "localhost/orders:3",
        "args": ["--ledger", "http://ledger:9000"],
        "port": 8070,
        "path": "/rpc",
        "env": [{"name": "LEDGER", "value": "east"}],
        "resources": {"limits": {"memory": "64Mi"}},
    }}))
}

pub fn with_service() -> Skill {
    skill(&json!({"service": {"name": "shared-orders", "port": 8090, "path": "/mcp"}}))
}

pub fn without_server() -> Skill {
    skill(&Value::Null)
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
