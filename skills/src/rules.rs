//! The rules in CEL of the CRDs (`x-kubernetes-validations`), as far as they can be evaluated without a cluster.
//!
//! Rules of a change (`oldSelf`) do not concern a file. A rule that calls a function of the API server is left to it.

use crate::checked::Checked;
use crate::finding::{Finding, Severity};
use bloomery_cel::Program;
use bloomery_crds::v1alpha1::spec_schema_of;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns an error for each rule that a checked object breaks. The rules of an object with an unknown field are left out:
/// they may ask for the very field that was misspelt.
pub(crate) fn findings(checked: &Checked) -> Vec<Finding> {
    let Some(kind) = &checked.kind else { return Vec::new() };
    let misspelt = checked.findings.iter().filter(|finding| finding.is_unknown_field());
    let holders: BTreeSet<&str> =
        misspelt.map(|finding| finding.path.rsplit_once('.').map_or("", |(holder, _)| holder)).collect();
    let located = |broken: Broken| Finding::located(&checked.root, &broken.path, Severity::Error, broken.message);
    let broken = broken(kind, &checked.object).into_iter().map(located);
    broken.filter(|finding| !holders.contains(finding.path.as_str())).collect()
}

/// A rule that an object breaks.
#[derive(Debug, PartialEq, Eq)]
struct Broken {
    /// The path of the field.
    path: String,
    /// The rule, in words.
    message: String,
}

/// The rules that an object breaks in its spec.
fn broken(kind: &str, object: &Value) -> Vec<Broken> {
    let mut broken = Vec::new();
    let schema = spec_schema_of(kind).and_then(|schema| serde_json::to_value(schema).ok());
    if let (Some(schema), Some(spec)) = (schema, object.get("spec")) {
        visit(&schema, spec, "spec", &mut broken);
    }
    broken
}

/// Walks as deep as the schema does.
fn visit(schema: &Value, value: &Value, path: &str, broken: &mut Vec<Broken>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let text = rule["rule"].as_str().unwrap_or_default();
        if !text.contains("oldSelf") && holds(text, value) == Some(false) {
            let field = rule["fieldPath"].as_str().unwrap_or_default();
            let message = rule["message"].as_str().unwrap_or(text).to_owned();
            broken.push(Broken { path: format!("{path}{field}"), message });
        }
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let property = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                visit(property, value, &format!("{path}.{name}"), broken);
            }
        }
        Value::Array(values) if schema["items"].is_object() => {
            for (index, value) in values.iter().enumerate() {
                visit(&schema["items"], value, &format!("{path}[{index}]"), broken);
            }
        }
        _ => {}
    }
}

/// Returns whether a rule holds, or nothing if it uses a function that only the API server has.
fn holds(rule: &str, value: &Value) -> Option<bool> {
    let variables = Map::from_iter([("self".to_owned(), value.clone())]);
    Program::parse(rule).ok()?.evaluate(&variables, &[]).ok()
}

#[cfg(test)]
mod tests {
    use super::{Broken, broken};
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::no_server(json!({"mcpServer": {}}), "spec.mcpServer")]
    #[case::two_servers(json!({"mcpServer": {"container": {}, "service": {}}}), "spec.mcpServer")]
    #[case::no_condition(json!({"tools": [{"policy": {"allowed": "conditional"}}]}), "spec.tools[0].policy.condition")]
    #[case::odd_entity(
        json!({"intents": {"supported": [{"entities": [{"type": "object"}]}]}}),
        "spec.intents.supported[0].entities[0].type"
    )]
    #[case::auth_of_a_file_system(
        json!({"resources": [
            {"name": "a", "type": "filesystem", "auth": {"credential": "b"}}, {"name": "b", "type": "credential"}
        ]}),
        "spec.resources[0].auth"
    )]
    #[case::rules_of_a_secret(json!({"resources": [{"name": "a", "type": "credential", "rules": []}]}), "spec.resources[0].rules")]
    #[case::no_such_credential(
        json!({"resources": [{"name": "a", "type": "api_endpoint", "auth": {"credential": "b"}}]}), "spec.resources"
    )]
    #[case::no_credential(
        json!({"resources": [
            {"name": "a", "type": "api_endpoint", "auth": {"credential": "b"}}, {"name": "b", "type": "connection_string"}
        ]}),
        "spec.resources"
    )]
    fn a_rule_that_is_broken_names_its_field(#[case] spec: Value, #[case] path: &str) {
        let paths: Vec<String> =
            broken("Skill", &json!({"spec": spec})).into_iter().map(|broken| broken.path).collect();
        assert_eq!(paths, [path]);
    }

    #[rstest]
    #[case(json!({"mcpServer": {"service": {}}}))]
    #[case(json!({"tools": [{"policy": {"allowed": "conditional", "condition": "amount > 5"}}]}))]
    #[case(json!({"tools": [{"policy": {"allowed": "always"}}]}))]
    #[case(json!({"intents": {"supported": [{"entities": [{"type": "string"}]}]}}))]
    #[case(json!({"resources": [
        {"name": "a", "type": "api_endpoint", "auth": {"credential": "b"}, "rules": []}, {"name": "b", "type": "credential"}
    ]}))]
    fn what_holds_is_not_named(#[case] spec: Value) {
        assert_eq!(broken("Skill", &json!({"spec": spec})), []);
    }

    #[test]
    fn a_rule_of_a_change_is_none_of_a_file() {
        assert_eq!(broken("Job", &json!({"spec": {"skill": "x", "goal": "y"}})), Vec::<Broken>::new());
    }
}
