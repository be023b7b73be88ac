//! Evaluates the CEL rules of the CRDs (`x-kubernetes-validations`) without a cluster.
//!
//! Transition rules (`oldSelf`) do not apply to a file. Rules that call functions of the API server cannot be evaluated here.

use crate::checked::CheckedDocument;
use crate::finding::{Finding, Severity};
use crate::schema::property;
use crate::schema::spec::{Rule, Schema, spec_schema_of};
use bloomery_cel::Program;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns an error for each violated rule. Skips the rules of an object with an unknown field: the field may be the
/// misspelling of one that the rule requires.
pub(crate) fn findings(checked: &CheckedDocument) -> Vec<Finding> {
    let Some(kind) = &checked.kind else { return Vec::new() };
    let misspelt = checked.findings.iter().filter(|finding| finding.is_unknown_field());
    let objects_with_unknown_fields: BTreeSet<&str> =
        misspelt.map(|finding| finding.path.rsplit_once('.').map_or("", |(object, _)| object)).collect();
    let to_finding =
        |violation: Violation| Finding::at_api_path(&checked.root, &violation.path, Severity::Error, violation.message);
    let violations = violations(kind, &checked.object).into_iter().map(to_finding);
    // A finding about a missing field has the path of the object that lacks it.
    violations.filter(|finding| !objects_with_unknown_fields.contains(finding.path.as_str())).collect()
}

/// A rule that an object violates.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    /// The API path of the field.
    path: String,
    /// The message of the rule.
    message: String,
}

/// Returns the rules that the spec of an object violates.
fn violations(kind: &str, object: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let (Some(schema), Some(spec)) = (spec_schema_of(kind), object.get("spec")) {
        collect(schema, spec, "spec", &mut violations);
    }
    violations
}

/// Adds the violations in the value at an API path. The recursion is as deep as the schema.
fn collect(schema: &Schema, value: &Value, path: &str, violations: &mut Vec<Violation>) {
    for Rule { expression: rule, message, field_path } in &schema.validations {
        if !rule.contains("oldSelf") && holds(rule, value) == Some(false) {
            let field = field_path.as_deref().unwrap_or_default();
            let message = message.clone().unwrap_or_else(|| rule.clone());
            violations.push(Violation { path: format!("{path}{field}"), message });
        }
    }
    match (value, &schema.items) {
        (Value::Object(fields), _) => {
            for (name, value) in fields {
                if let Some(property) = property(schema, name) {
                    collect(property, value, &format!("{path}.{name}"), violations);
                }
            }
        }
        (Value::Array(values), Some(items)) => {
            for (index, value) in values.iter().enumerate() {
                collect(items, value, &format!("{path}[{index}]"), violations);
            }
        }
        _ => {}
    }
}

/// Returns whether a rule holds. `None` if it cannot be evaluated, for example because only the API server has its functions.
fn holds(rule: &str, value: &Value) -> Option<bool> {
    let variables = Map::from_iter([("self".to_owned(), value.clone())]);
    Program::parse(rule).ok()?.evaluate(&variables, &[]).ok()
}

#[cfg(test)]
mod tests {
    use super::{Violation, violations};
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::no_server(json!({"mcpServer": {}}), "spec.mcpServer")]
    #[case::two_servers(json!({"mcpServer": {"container": {}, "service": {}}}), "spec.mcpServer")]
    #[case::a_service_of_a_job(json!({"mcpServer": {"service": {}, "scope": "Job"}}), "spec.mcpServer.scope")]
    #[case::bindings_of_a_shared_server(
        json!({"mcpServer": {"container": {"bindings": [{"resource": "db", "env": "DB"}]}}}), "spec.mcpServer.container.bindings"
    )]
    #[case::health_of_the_server_of_a_job(
        json!({"mcpServer": {"container": {"health": {"path": "/"}}, "scope": "Job"}}), "spec.mcpServer.container.health"
    )]
    #[case::a_variable_and_a_file(
        json!({"mcpServer": {"container": {"bindings": [{"resource": "db", "env": "DB", "path": "/db"}]}, "scope": "Job"}}),
        "spec.mcpServer.container.bindings[0]"
    )]
    #[case::a_value_for_the_probe_of_a_file(
        json!({"mcpServer": {"container": {"bindings": [{"resource": "db", "path": "/db", "probeValue": "x"}]}, "scope": "Job"}}),
        "spec.mcpServer.container.bindings[0].probeValue"
    )]
    #[case::a_condition_without_use(json!({"tools": [{"policy": {"condition": "amount > 5"}}]}), "spec.tools[0].policy.condition")]
    #[case::a_condition_beside_another_value(
        json!({"tools": [{"policy": {"condition": "amount > 5", "requiresApproval": "always"}}]}), "spec.tools[0].policy.condition"
    )]
    #[case::only_a_reason(json!({"tools": [{"policy": {"reason": "x"}}]}), "spec.tools[0].policy")]
    #[case::an_empty_policy(json!({"tools": [{"policy": {}}]}), "spec.tools[0].policy")]
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
    #[case::minimum_of_a_text(json!({"tools": [{"inputs": [{"type": "string", "minimum": 1}]}]}), "spec.tools[0].inputs[0].type")]
    #[case::pattern_of_a_number(json!({"tools": [{"inputs": [{"type": "number", "pattern": "a"}]}]}), "spec.tools[0].inputs[0].type")]
    #[case::values_of_a_list(json!({"tools": [{"inputs": [{"type": "array", "enum": ["a"]}]}]}), "spec.tools[0].inputs[0].type")]
    #[case::empty_range(
        json!({"tools": [{"inputs": [{"type": "number", "minimum": 2, "maximum": 1.5}]}]}), "spec.tools[0].inputs[0].maximum"
    )]
    #[case::a_condition_of_no_step(
        json!({"policy": {"workflows": [{"steps": ["a"], "expect": [
            {"step": "a", "condition": "true"}, {"step": "b", "approver": "lead"},
        ]}]}}),
        "spec.policy.workflows[0].expect"
    )]
    #[case::a_step_without_requirement(
        json!({"policy": {"workflows": [{"steps": ["a"], "expect": [{"step": "a"}]}]}}), "spec.policy.workflows[0].expect[0]"
    )]
    #[case::a_list_in_two_places(
        json!({"policy": {"lists": {"a": [], "b": []}, "listsFrom": {"c": {}, "b": {}}}}), "spec.policy.listsFrom"
    )]
    #[case::neither_sum_nor_count(json!({"policy": {"limits": [{"tool": "a", "per": "job", "max": 1}]}}), "spec.policy.limits[0]")]
    #[case::sum_and_count(
        json!({"policy": {"limits": [{"tool": "a", "sum": "b", "count": true, "per": "job", "max": 1}]}}), "spec.policy.limits[0]"
    )]
    #[case::no_name_of_a_note(json!({"memory": {"notes": {"progress": "x", "notes": "x"}}}), "spec.memory.notes")]
    #[case::a_file_as_a_note(json!({"memory": {"notes": {"progress.md/..": "x"}}}), "spec.memory.notes")]
    #[case::a_note_elsewhere(json!({"memory": {"notes": {"details/../progress": "x"}}}), "spec.memory.notes")]
    #[case::no_window(
        json!({"policy": {"limits": [{"tool": "a", "count": true, "per": "skill", "max": 1}]}}), "spec.policy.limits[0].window"
    )]
    #[case::window_of_a_job(
        json!({"policy": {"limits": [{"tool": "a", "count": true, "per": "job", "window": "1h", "max": 1}]}}),
        "spec.policy.limits[0].window"
    )]
    fn a_violated_rule_is_reported_at_its_field(#[case] spec: Value, #[case] path: &str) {
        let paths: Vec<String> =
            violations("Skill", &json!({"spec": spec})).into_iter().map(|violation| violation.path).collect();
        assert_eq!(paths, [path]);
    }

    #[rstest]
    #[case(json!({"mcpServer": {"service": {}}}))]
    #[case(json!({"memory": {"notes": {"progress": "x", "projectbrief": "", "details/api.v2_notes-1": "x"}}}))]
    #[case(json!({"mcpServer": {"container": {"bindings": [{"resource": "db", "env": "DB", "probeValue": "x"}]}, "scope": "Job"}}))]
    #[case(json!({"tools": [{"policy": {"allowed": "conditional", "condition": "amount > 5"}}]}))]
    #[case(json!({"tools": [{"policy": {"allowed": "always"}}]}))]
    #[case(json!({"policy": {"workflows": [{"steps": ["a"]}, {"steps": ["a", "b"], "expect": [{"step": "b", "evidence": {"tool": "c"}}]}]}}))]
    #[case(json!({"policy": {"lists": {"a": []}, "listsFrom": {"b": {}}}}))]
    #[case(json!({"intents": {"supported": [{"entities": [{"type": "string"}]}]}}))]
    #[case(json!({"tools": [{"inputs": [{"type": "integer", "minimum": 1, "maximum": 1}, {"type": "string", "enum": ["a"], "pattern": "a"}]}]}))]
    #[case(json!({"resources": [
        {"name": "a", "type": "api_endpoint", "auth": {"credential": "b"}, "rules": []}, {"name": "b", "type": "credential"}
    ]}))]
    #[case(json!({"policy": {"limits": [
        {"tool": "a", "count": true, "per": "job", "max": 1}, {"tool": "a", "sum": "b", "per": "skill", "window": "24h", "max": 1}
    ]}}))]
    fn a_valid_object_violates_no_rule(#[case] spec: Value) {
        assert_eq!(violations("Skill", &json!({"spec": spec})), []);
    }

    #[test]
    fn transition_rules_do_not_apply_to_a_file() {
        assert_eq!(violations("Job", &json!({"spec": {"skill": "x", "goal": "y"}})), Vec::<Violation>::new());
    }
}
