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

/// Returns whether a pod has ended: all of its containers, or its worker. A container that a webhook injected may run on after the worker,
/// which is never restarted.
pub fn has_ended(pod: &Pod) -> bool {
    has_terminal_phase(pod) || worker_end(pod).is_some()
}

/// Returns whether all containers of a pod have ended.
pub fn has_terminal_phase(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
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
