//! The parts of a pod spec that all pods of Bloomery share (`docs/explanation/design.md`, section 7).
//!
//! Pods pass the `restricted` Pod Security Standard. Pods that share a `ReadWriteOnce` volume are scheduled to one node.

use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, ContainerStateTerminated, ContainerStatus, Pod, PodAffinity, PodAffinityTerm,
    PodSecurityContext, SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// The name of the worker's container in a worker pod. The worker prints the conversation to the container's log.
pub const WORKER_CONTAINER: &str = "worker";

/// The name of the container of an MCP server, in a pod of its own or as a sidecar of a worker pod.
pub const MCP_CONTAINER: &str = "mcp";

/// The name of the sidecar of a worker pod that runs the scripts of the Skill.
pub const SCRIPTS_CONTAINER: &str = "scripts";

/// Returns whether a pod has ended: all of its containers, or its worker, which is never restarted. A sidecar may run until the kubelet
/// has stopped it, and a container that a webhook injected for ever.
pub fn has_ended(pod: &Pod) -> bool {
    has_succeeded(pod).is_some()
}

/// Returns whether a pod has succeeded, according to its phase, or else to the exit code of its worker. `None` until it has ended, as
/// [`has_ended`] defines it.
pub fn has_succeeded(pod: &Pod) -> Option<bool> {
    match pod.status.as_ref()?.phase.as_deref() {
        Some("Succeeded") => Some(true),
        Some("Failed") => Some(false),
        _ => worker_end(pod).map(|end| end.exit_code == 0),
    }
}

/// Returns whether a container beside the worker, such as one that a webhook injected, runs on after the worker. The kubelet stops only
/// sidecars by itself.
pub fn outlives_worker(pod: &Pod) -> bool {
    let ends = |status: &ContainerStatus| status.state.as_ref().is_some_and(|state| state.terminated.is_some());
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    worker_end(pod).is_some() && containers.is_some_and(|containers| !containers.iter().all(ends))
}

/// Returns the end of the worker's container.
pub fn worker_end(pod: &Pod) -> Option<&ContainerStateTerminated> {
    worker_status(pod)?.state.as_ref()?.terminated.as_ref()
}

/// Returns the status of the worker's container. `None` until the kubelet has reported it.
pub fn worker_status(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == WORKER_CONTAINER)
}

/// Returns the security context of every pod.
pub fn restricted() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..PodSecurityContext::default()
    }
}

/// Returns the security context of a pod that mounts a tenant's memory: [`restricted`], with the user and group to run as
/// and the group that owns the files.
pub fn restricted_for_memory(user: Option<i64>, group: Option<i64>, fs_group: Option<i64>) -> PodSecurityContext {
    PodSecurityContext {
        run_as_user: user,
        run_as_group: group,
        fs_group,
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        ..restricted()
    }
}

/// Returns the security context of every container.
pub fn restricted_container() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}

/// Returns an affinity to the node of the pods with this label. A pod with the label can be scheduled to any node if no other
/// pod has the label.
pub fn same_node_as(label: (String, String)) -> Affinity {
    let labelled = LabelSelector { match_labels: Some([label].into()), ..LabelSelector::default() };
    Affinity {
        pod_affinity: Some(PodAffinity {
            required_during_scheduling_ignored_during_execution: Some(vec![PodAffinityTerm {
                label_selector: Some(labelled),
                topology_key: "kubernetes.io/hostname".to_owned(),
                ..PodAffinityTerm::default()
            }]),
            ..PodAffinity::default()
        }),
        ..Affinity::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(worker: Value) -> Pod {
        let status = |name: &str, state: Value| json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let statuses = [status("injected", json!({"running": {}})), status(WORKER_CONTAINER, worker)];
        serde_json::from_value(json!({"metadata": {}, "status": {"phase": "Running", "containerStatuses": statuses}}))
            .unwrap()
    }

    #[test]
    fn a_pod_has_ended_with_its_worker_even_if_a_sidecar_runs() {
        assert!(!has_ended(&pod(json!({"running": {}}))));
        assert!(has_ended(&pod(json!({"terminated": {"exitCode": 0}}))));
    }
}
