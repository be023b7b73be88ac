//! Checks the MCP server of a Skill that each worker pod has as a sidecar (`mcpServer.scope: Job`).

use crate::fault::Fault;
use crate::resources::undeclared_fault;
use crate::run::RESOURCES_ROOT;
use crate::v1alpha1::{McpContainer, McpScope, PodField, PodSettings, SkillSpec};
use std::collections::BTreeSet;

/// The directory of the server's container in which Bloomery mounts its own files.
pub const BLOOMERY_DIR: &str = "/bloomery";

/// The field whose values a worker pod must not pass to the server: the annotations have the run document.
const ANNOTATIONS: &str = "metadata.annotations";

/// Returns all faults of the sidecar of a Skill.
pub fn faults(spec: &SkillSpec) -> Vec<Fault> {
    let Some(server) = &spec.mcp_server else { return Vec::new() };
    let fault = |path: &str, message: &str| Fault { path: path.to_owned(), message: message.to_owned() };
    let mut faults = Vec::new();
    let Some(container) = &server.container else {
        if server.scope == Some(McpScope::Job) {
            let message = "Job is only allowed with container: the operator does not start other servers";
            faults.push(fault("spec.mcpServer.scope", message));
        }
        return faults;
    };
    if server.scope != Some(McpScope::Job) {
        if !container.bindings.is_empty() {
            let message = "is only allowed with scope Job: all Jobs share another server";
            faults.push(fault("spec.mcpServer.container.bindings", message));
        }
        return faults;
    }
    if container.health.is_some() {
        let message = "is not allowed with scope Job: the worker connects to the server itself";
        faults.push(fault("spec.mcpServer.container.health", message));
    }
    faults.extend(spec.pods.iter().filter_map(|pods| pods.mcp.as_ref()).flat_map(pod_faults));
    faults.extend(env_faults(container));
    faults.extend(binding_faults(container, spec));
    faults
}

/// Returns a fault for each setting of pods that do not exist. The image of the server may need pull secrets of its own.
fn pod_faults(settings: &PodSettings) -> impl Iterator<Item = Fault> {
    settings.set_fields().filter(|field| *field != PodField::ImagePullSecrets).map(|field| Fault {
        path: format!("spec.pods.mcp.{field}"),
        message: format!(
            "is not allowed with mcpServer.scope Job: the server runs in the worker pods, so set spec.pods.worker.{field}"
        ),
    })
}

fn env_faults(container: &McpContainer) -> impl Iterator<Item = Fault> {
    container.env.iter().enumerate().filter_map(|(at, variable)| {
        let reference = variable.value_from.as_ref()?.field_ref.as_ref()?;
        reference.field_path.starts_with(ANNOTATIONS).then(|| Fault {
            path: format!("spec.mcpServer.container.env[{at}].valueFrom.fieldRef.fieldPath"),
            message: "must not be an annotation with scope Job: those of a worker pod have the goal of its Job"
                .to_owned(),
        })
    })
}

fn binding_faults(container: &McpContainer, spec: &SkillSpec) -> Vec<Fault> {
    let mut variables: BTreeSet<&str> = container.env.iter().map(|variable| variable.name.as_str()).collect();
    let mut paths: Vec<&str> = Vec::new();
    let mut faults = Vec::new();
    for (at, binding) in container.bindings.iter().enumerate() {
        let mut add = |field: &str, message: String| {
            faults.push(Fault { path: format!("spec.mcpServer.container.bindings[{at}].{field}"), message });
        };
        match spec.resources.iter().find(|resource| resource.name == binding.resource) {
            None => {
                let message = undeclared_fault(&binding.resource, &spec.resources);
                add("resource", message.trim_end_matches('.').to_owned());
            }
            Some(resource) if !resource.kind.is_secret() => {
                let message = format!(
                    "has the type {}: name a connection_string or a credential. The server has the file systems at {RESOURCES_ROOT}/NAME, and \
                     each call has the URLs of endpoints",
                    resource.kind
                );
                add("resource", message);
            }
            Some(_) => {}
        }
        if let Some(variable) = binding.env.as_deref().filter(|variable| !variables.insert(*variable)) {
            add("env", format!("{variable} is set twice: remove it here or in container.env"));
        }
        if let Some(path) = binding.path.as_deref() {
            let is_reserved = path == "/tmp" || [BLOOMERY_DIR, RESOURCES_ROOT].iter().any(|dir| contains(dir, path));
            if is_reserved {
                add("path", format!("{path} is reserved: use another directory, such as /secrets"));
            }
            if paths.iter().any(|other| contains(other, path) || contains(path, other)) {
                add(
                    "path",
                    format!("{path} contains, or is in, the path of another binding: give each file a path of its own"),
                );
            }
            paths.push(path);
        }
    }
    faults
}

/// Returns whether a path is a directory, or below it.
fn contains(dir: &str, path: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn with(server: &Value, pods: &Value) -> SkillSpec {
        serde_json::from_value(json!({
            "problem": {"statement": "Help"},
            "resources": [
                {"name": "db", "type": "connection_string"}, {"name": "key", "type": "credential"},
                {"name": "code", "type": "filesystem"},
            ],
            "mcpServer": server,
            "pods": pods,
        }))
        .unwrap()
    }

    fn of_job(container: &Value) -> Value {
        let mut whole = json!({"image": "db-mcp:1"});
        whole.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        json!({"container": whole, "scope": "Job"})
    }

    fn paths(spec: &SkillSpec) -> Vec<String> {
        faults(spec).into_iter().map(|fault| fault.path.trim_start_matches("spec.mcpServer.").to_owned()).collect()
    }

    #[rstest]
    #[case::a_service(json!({"service": {"name": "orders", "port": 80}, "scope": "Job"}), &["scope"])]
    #[case::a_url(json!({"uri": "https://tools.example/mcp", "scope": "Job"}), &["scope"])]
    #[case::a_shared_server(
        json!({"container": {"image": "a", "bindings": [{"resource": "db", "env": "DB"}]}}), &["container.bindings"]
    )]
    #[case::health(of_job(&json!({"health": {"path": "/healthz"}})), &["container.health"])]
    #[case::an_annotation(
        of_job(&json!({"env": [
            {"name": "A", "value": "b"},
            {"name": "JOB", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['bloomery.dev/job']"}}},
        ]})),
        &["container.env[1].valueFrom.fieldRef.fieldPath"]
    )]
    #[case::no_such_resource(of_job(&json!({"bindings": [{"resource": "dv", "env": "DB"}]})), &["container.bindings[0].resource"])]
    #[case::a_file_system(of_job(&json!({"bindings": [{"resource": "code", "env": "CODE"}]})), &["container.bindings[0].resource"])]
    #[case::set_twice(
        of_job(&json!({"env": [{"name": "DB", "value": "b"}], "bindings": [{"resource": "db", "env": "DB"}]})),
        &["container.bindings[0].env"]
    )]
    #[case::reserved(
        of_job(&json!({"bindings": [{"resource": "db", "path": "/resources/code"}, {"resource": "key", "path": "/tmp"}]})),
        &["container.bindings[0].path", "container.bindings[1].path"]
    )]
    #[case::within_another(
        of_job(&json!({"bindings": [{"resource": "db", "path": "/secrets"}, {"resource": "key", "path": "/secrets/key"}]})),
        &["container.bindings[1].path"]
    )]
    #[case::valid(
        of_job(&json!({"bindings": [
            {"resource": "db", "env": "DB", "probeValue": "none"}, {"resource": "db", "path": "/secrets/db"},
            {"resource": "key", "path": "/secrets/db-key"},
        ]})),
        &[]
    )]
    fn each_fault_names_its_field(#[case] server: Value, #[case] expected: &[&str]) {
        assert_eq!(paths(&with(&server, &Value::Null)), expected);
    }

    #[test]
    fn the_server_of_a_job_has_no_pods_of_its_own() {
        let pods = json!({"mcp": {"labels": {"a": "b"}, "imagePullSecrets": [{"name": "registry"}]}});
        assert_eq!(paths(&with(&of_job(&json!({})), &pods)), ["spec.pods.mcp.labels"]);
        assert_eq!(paths(&with(&json!({"container": {"image": "a"}}), &pods)), [""; 0]);
    }
}
