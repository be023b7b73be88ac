//! Every reference to a Secret in a spec is known, and is in the admission policy that checks who may name a Secret. No Job with such a
//! reference is left out of the check.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bloomery_cel::{Error, Program};
use bloomery_crds::v1alpha1::{ApprovalSpec, JobSpec, ModelSpec, SecretKeyRef, SkillSpec};
use k8s_openapi::api::core::v1::SecretReference;
use serde_json::{Value, json};

/// The references, by kind. `[]` stands for each item of a list, and `{}` for each value of a map.
const REFERENCES: [&str; 8] = [
    "Job spec.resources{}.secretKeyRef",
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
    for (name, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(items) = schema.get(name) {
            collect(items, root, &format!("{path}{suffix}"), found);
        }
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
    assert_eq!(found, ["spec.account", "spec.token{}.from", "spec.token{}.secret_name"]);
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

    let policy = policy().replace('?', "");
    for reference in REFERENCES {
        let (_, path) = reference.split_once(' ').unwrap();
        for part in path.split("[]").flat_map(|part| part.split("{}")) {
            assert!(policy.contains(part), "{part} of {reference} is not in the policy");
        }
    }
}

/// Returns the template of the policy.
fn policy() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/bloomery/templates/secrets.yaml");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the expression of a variable or a match condition of the policy.
fn expression(name: &str) -> String {
    let policy = policy();
    let (_, after) = policy.split_once(&format!("- name: {name}\n      expression: >-\n")).unwrap();
    let lines = after.lines().take_while(|line| line.starts_with("        "));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Evaluates an expression of the policy for an object that has all fields that the expression reads. The evaluator knows no optional
/// fields.
fn evaluate(expression: &str, variables: &Value) -> Result<bool, Error> {
    let without_optional = expression.replace(".?", ".").replace(".orValue({})", "");
    Program::parse(&without_optional)?.evaluate(variables.as_object().unwrap(), &[])
}

/// Returns an object with one reference, which names the Secret `bank`.
fn naming_bank(path: &str) -> Value {
    path.rsplit('.').fold(json!({"name": "bank", "key": "key"}), |value, field| {
        if let Some(map) = field.strip_suffix("{}") {
            json!({map: {"one": value}})
        } else if let Some(list) = field.strip_suffix("[]") {
            json!({list: [value]})
        } else {
            json!({field: value})
        }
    })
}

/// A match condition cannot use the variable, so it repeats what the variable finds. For a Job that the condition excludes, the API server
/// does not evaluate the policy. The story `only_who_may_read_a_secret_may_name_it` lets the API server evaluate both.
#[test]
fn the_match_condition_finds_each_reference_of_a_job_that_the_policy_finds() {
    let named = expression("named");
    let (_, named) = named.split_once("request.resource.resource == 'skilljobs' ? ").unwrap();
    let (named, _) = named.split_once(" : request.resource.resource == 'models' ").unwrap();
    let names_bank = format!("({named}).exists(names, names.exists(name, name == 'bank'))");
    let condition = expression("may-name-a-secret");
    let request = json!({"resource": {"resource": "skilljobs"}});

    let schema = schemars::schema_for!(JobSpec).to_value();
    let mut references = Vec::new();
    collect(&schema, &schema, "spec", &mut references);
    assert!(!references.is_empty());
    for path in references {
        let object = naming_bank(&path);
        let variables = json!({"variables": {"specs": [object["spec"]]}});
        assert_eq!(evaluate(&names_bank, &variables), Ok(true), "the variable `named` does not find {path}");
        let variables = json!({"request": request, "object": object});
        assert_eq!(
            evaluate(&condition, &variables),
            Ok(true),
            "the condition `may-name-a-secret` does not find {path}"
        );
    }
    // Most Jobs name none, and are left out.
    let plain = json!({"spec": {"resources": {"one": {"value": "https://docs.example"}}}});
    assert_eq!(evaluate(&condition, &json!({"request": request, "object": plain})), Ok(false));
    let variables = json!({"variables": {"specs": [plain["spec"]]}});
    assert_eq!(evaluate(&names_bank, &variables), Ok(false));
}
