//! Tells a worker that ended by itself from one that was disrupted: deleted, evicted, preempted or lost with its node.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod, PodStatus};

/// The exit codes of a container that SIGKILL or SIGTERM ended.
const KILLED_EXIT_CODES: [i32; 2] = [137, 143];

/// The reason of a container that exceeded its memory limit. Its exit code is that of SIGKILL.
const OOM_KILLED: &str = "OOMKilled";

/// The reason of a pod that ran longer than its deadline.
const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";

/// Returns whether an ended pod was disrupted. A pod whose worker never ran counts as disrupted, because the kubelet
/// refused or removed it.
pub(super) fn is_disrupted(pod: &Pod, status: &PodStatus, terminated: Option<&ContainerStateTerminated>) -> bool {
    let is_target = status.conditions.iter().flatten().any(|c| c.type_ == "DisruptionTarget" && c.status == "True");
    let reason = status.reason.as_deref();
    is_target
        || reason.is_some_and(is_disruption)
        || terminated.map_or_else(
            || reason != Some(DEADLINE_EXCEEDED),
            |container| {
                is_lost_with_node(container) || (pod.metadata.deletion_timestamp.is_some() && is_killed(container))
            },
        )
}

/// The reasons with which the kubelet or a controller ends a pod. `Terminated` and `NodeShutdown` are those of a node that
/// shuts down; kubelets before 1.22 set `Shutdown`.
fn is_disruption(reason: &str) -> bool {
    matches!(reason, "Evicted" | "Preempting" | "NodeLost" | "NodeShutdown" | "Terminated" | "Shutdown")
}

/// Returns whether the kubelet, or containerd, restarted and did not find the container: its node was restarted.
fn is_lost_with_node(container: &ContainerStateTerminated) -> bool {
    matches!(container.reason.as_deref(), Some("ContainerStatusUnknown" | "Unknown"))
}

fn is_killed(container: &ContainerStateTerminated) -> bool {
    KILLED_EXIT_CODES.contains(&container.exit_code) && container.reason.as_deref() != Some(OOM_KILLED)
}
