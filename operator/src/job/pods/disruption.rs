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

#[cfg(test)]
mod tests {
    use crate::job::fixtures::{UID, at, ended_pod, pod};
    use crate::job::pods::{PodState, WorkerPod};
    use k8s_openapi::api::core::v1::{Pod, PodCondition};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rstest::rstest;

    /// A pod whose worker ended with this exit code and reason.
    fn exited(code: i32, reason: &str) -> Pod {
        let mut pod = ended_pod(1, 10, None);
        let containers = pod.status.as_mut().unwrap().container_statuses.as_mut().unwrap();
        let terminated = containers[0].state.as_mut().unwrap().terminated.as_mut().unwrap();
        (terminated.exit_code, terminated.reason) = (code, Some(reason.to_owned()));
        pod
    }

    fn with_reason(mut pod: Pod, reason: &str) -> Pod {
        pod.status.as_mut().unwrap().reason = Some(reason.to_owned());
        pod
    }

    fn never_ran() -> Pod {
        pod(1, "Failed")
    }

    fn deleting(mut pod: Pod) -> Pod {
        pod.metadata.deletion_timestamp = Some(Time(at(5)));
        pod
    }

    fn with_disruption_target(mut pod: Pod, state: &str) -> Pod {
        let (type_, status) = ("DisruptionTarget".to_owned(), state.to_owned());
        pod.status.as_mut().unwrap().conditions = Some(vec![PodCondition { type_, status, ..PodCondition::default() }]);
        pod
    }

    #[rstest]
    #[case::exit_code(exited(1, "Error"), false)]
    #[case::out_of_memory(exited(137, "OOMKilled"), false)]
    #[case::killed_by_somebody_on_the_node(exited(137, "Error"), false)]
    #[case::deadline(with_reason(exited(137, "Error"), "DeadlineExceeded"), false)]
    #[case::deadline_before_the_start(with_reason(never_ran(), "DeadlineExceeded"), false)]
    #[case::failed_while_deleted(deleting(exited(1, "Error")), false)]
    #[case::out_of_memory_while_deleted(deleting(exited(137, "OOMKilled")), false)]
    #[case::no_target(with_disruption_target(exited(1, "Error"), "False"), false)]
    #[case::killed_while_deleted(deleting(exited(137, "Error")), true)]
    #[case::terminated_while_deleted(deleting(exited(143, "Error")), true)]
    #[case::target(with_disruption_target(exited(137, "Error"), "True"), true)]
    #[case::evicted(with_reason(exited(137, "Error"), "Evicted"), true)]
    #[case::evicted_before_the_start(with_reason(never_ran(), "Evicted"), true)]
    #[case::preempted(with_reason(exited(137, "Error"), "Preempting"), true)]
    #[case::node_shutdown(with_reason(exited(137, "Error"), "Terminated"), true)]
    #[case::refused_by_a_node_in_shutdown(with_reason(never_ran(), "NodeShutdown"), true)]
    #[case::refused_by_the_kubelet(with_reason(never_ran(), "OutOfcpu"), true)]
    #[case::lost_with_the_kubelet(exited(137, "ContainerStatusUnknown"), true)]
    #[case::lost_with_the_node(exited(255, "Unknown"), true)]
    fn only_a_worker_that_ended_by_itself_has_crashed(#[case] pod: Pod, #[case] expected: bool) {
        let PodState::Ended { disrupted, .. } = WorkerPod::read(&pod, ("refund", UID), None, at(20)).unwrap().state
        else {
            panic!("it ended")
        };
        assert_eq!(disrupted, expected);
    }
}
