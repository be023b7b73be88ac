//! Every reference to a Secret in a spec is known, and is in the admission policy that checks who may name a Secret.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bloomery_crds::v1alpha1::{ApprovalSpec, JobSpec, ModelSpec, SecretKeyRef, SkillSpec};
use k8s_openapi::api::core::v1::SecretReference;
use serde_json::Value;

/// The references, by kind. `[]` stands for each item of a list or a map.
const REFERENCES: [&str; 8] = [
    "Job spec.resources[].secretKeyRef",
    "Model spec.apiKey.secretKeyRef",
    "Model spec.ca.secretKeyRef",
    "Skill spec.mcpServer.ca.secretKeyRef",
    "Skill spec.mcpServer.container.env[].valueFrom.secretKeyRef",
    "Skill spec.mcpServer.headers[].secretKeyRef",
    "Skill spec.pods.mcp.imagePullSecrets",
    "Skill spec.pods.worker.imagePullSecrets",
];

/// Collects the paths of all references to Secrets below a schema. The name of their type contains `Secret`. A type that contains such a
/// reference is none itself.
fn collect(schema: &Value, root: &Value, path: &str, found: &mut Vec<String>) {
    // The schema of this type is inlined, without its name.
    if schema.get("properties") == schemars::schema_for!(SecretKeyRef).get("properties") {
        return found.push(path.to_owned());
    }
    let before = found.len();
    if let Some(reference) = schema["$ref"].as_str() {
        let definition = root.pointer(&reference.replace('#', "")).unwrap();
        collect(definition, root, path, found);
        if found.len() == before && reference.contains("Secret") {
            found.push(path.to_owned());
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let (path, before) = (format!("{path}.{name}"), found.len());
        collect(property, root, &path, found);
        // A plain text can name a Secret too.
        if found.len() == before && name.to_lowercase().contains("secret") {
            found.push(path);
        }
    }
    for items in ["items", "additionalProperties"].into_iter().filter_map(|name| schema.get(name)) {
        collect(items, root, &format!("{path}[]"), found);
    }
    for option in ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten() {
        collect(option, root, path, found);
    }
}

/// A field whose name does not tell that it names a Secret.
#[test]
fn a_reference_is_found_by_its_type() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Spec {
        account: Option<SecretKeyRef>,
        token: std::collections::BTreeMap<String, Account>,
    }
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Account {
        from: SecretReference,
        secret_name: String,
    }
    let schema = schemars::schema_for!(Spec).to_value();
    let mut found = Vec::new();
    collect(&schema, &schema, "spec", &mut found);
    assert_eq!(found, ["spec.account", "spec.token[].from", "spec.token[].secret_name"]);
}

#[test]
fn the_admission_policy_checks_every_reference_to_a_secret() {
    let mut found = Vec::new();
    let schemas = [
        ("Approval", schemars::schema_for!(ApprovalSpec)),
        ("Job", schemars::schema_for!(JobSpec)),
        ("Model", schemars::schema_for!(ModelSpec)),
        ("Skill", schemars::schema_for!(SkillSpec)),
    ];
    for (kind, schema) in schemas {
        let schema = schema.to_value();
        collect(&schema, &schema, &format!("{kind} spec"), &mut found);
    }
    found.sort();
    assert_eq!(found, REFERENCES, "a new reference belongs into charts/bloomery/templates/secrets.yaml");

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/bloomery/templates/secrets.yaml");
    let policy = std::fs::read_to_string(path).unwrap().replace('?', "");
    for reference in REFERENCES {
        let (_, path) = reference.split_once(' ').unwrap();
        for part in path.split("[]") {
            assert!(policy.contains(part), "{part} of {reference} is not in the policy");
        }
    }
}
