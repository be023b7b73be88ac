//! What pods of ours have in common, whoever makes them: they pass the `restricted` Pod Security Standard, and those of one
//! volume that one node can mount find each other (`docs/explanation/design.md`, section 7).

use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, ContainerStatus, Pod, PodAffinity, PodAffinityTerm, PodSecurityContext, SeccompProfile,
    SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// The container of a worker pod that the worker runs in; its log is the conversation.
pub const WORKER: &str = "worker";

/// How the worker of a pod is, once the kubelet has said so.
pub fn worker(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == WORKER)
}

/// What every pod of ours is held to.
pub fn restricted() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..PodSecurityContext::default()
    }
}

/// The same, of one that mounts a tenant's memory: as this user and group, with files of this group.
pub fn of_memory(user: Option<i64>, group: Option<i64>, files: Option<i64>) -> PodSecurityContext {
    PodSecurityContext {
        run_as_user: user,
        run_as_group: group,
        fs_group: files,
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        ..restricted()
    }
}

/// What every container of ours is held to.
pub fn restricted_container() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}

/// Demands the node of the pods with this label. The first of them may go anywhere: a pod that matches its own term counts
/// as its own company.
pub fn beside(label: (String, String)) -> Affinity {
    let company = LabelSelector { match_labels: Some([label].into()), ..LabelSelector::default() };
    Affinity {
        pod_affinity: Some(PodAffinity {
            required_during_scheduling_ignored_during_execution: Some(vec![PodAffinityTerm {
                label_selector: Some(company),
                topology_key: "kubernetes.io/hostname".to_owned(),
                ..PodAffinityTerm::default()
            }]),
            ..PodAffinity::default()
        }),
        ..Affinity::default()
    }
}
