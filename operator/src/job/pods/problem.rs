//! Finds why a pod does not run, from its conditions and containers.

use crate::mcp_container::problem;
use bloomery_crds::conditions::Reason;
use k8s_openapi::api::core::v1::{ContainerStateWaiting, ContainerStatus, Pod, PodCondition, PodStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The age of a pod from which the condition `PodScheduled=False` counts as a problem. The scheduler sets it for a moment
/// even if it only waits for a volume.
const SCHEDULING_GRACE: SignedDuration = SignedDuration::from_secs(5);

/// The age of a pod from which a container in creation counts as a problem.
const CONTAINER_CREATION_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);

/// The time that a pod may exist after its deletion deadline. A kubelet that works removes the pod sooner.
const POD_REMOVAL_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// The reason why a pod does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodProblem {
    /// The reason for the conditions of the Job.
    pub reason: Reason,
    /// The problem, the pod and the remedy, for people.
    pub message: String,
}

/// Finds the problem that keeps a pod from running; none if there is none.
pub(super) fn find(
    pod: &Pod,
    status: &PodStatus,
    container: Option<&ContainerStatus>,
    now: Timestamp,
) -> Option<PodProblem> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    node_lost(pod, status, container, now)
        .map(|message| PodProblem { reason: Reason::NodeLost, message })
        .or_else(|| unscheduled(name, pod, status, now))
        .or_else(|| of_sidecar(pod, now))
        .or_else(|| waiting(name, pod, container, now))
}

/// Finds the problem of a sidecar of the pod. The worker starts after it.
fn of_sidecar(pod: &Pod, now: Timestamp) -> Option<PodProblem> {
    let problem::Problem { reason, message } = problem::find(pod, now)?;
    Some(PodProblem { reason, message })
}

/// Detects that the node of a pod is lost, and describes this for people.
fn node_lost(pod: &Pod, status: &PodStatus, container: Option<&ContainerStatus>, now: Timestamp) -> Option<String> {
    let deletion = pod.metadata.deletion_timestamp.as_ref();
    let is_overdue = deletion.is_some_and(|deadline| now.duration_since(deadline.0) > POD_REMOVAL_TIMEOUT);
    // A kubelet sets `ready` of each container and the condition `Ready` together. If the kubelet is silent, the node controller sets
    // only the condition.
    let mut containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let are_ready = containers.all(|container| container.ready);
    let is_running = are_ready
        && container.and_then(|container| container.state.as_ref()).is_some_and(|state| state.running.is_some());
    let is_kubelet_silent =
        deletion.is_none() && is_running && condition(status, "Ready").is_some_and(|ready| ready.status == "False");
    let is_unknown = status.phase.as_deref() == Some("Unknown") || status.reason.as_deref() == Some("NodeLost");
    if !(is_overdue || is_kubelet_silent || is_unknown) {
        return None;
    }
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("NODE");
    Some(format!(
        "pod {name} may still run: the node {node} does not answer. No second pod is started; the Job continues when \
         the node is back. If the node is gone for good: kubectl delete node {node}"
    ))
}

fn unscheduled(name: &str, pod: &Pod, status: &PodStatus, now: Timestamp) -> Option<PodProblem> {
    let scheduled = condition(status, "PodScheduled").filter(|scheduled| scheduled.status == "False")?;
    if !is_older(pod, now, SCHEDULING_GRACE) {
        return None;
    }
    if scheduled.reason.as_deref() == Some("SchedulingGated") {
        let gates = pod.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten());
        let gates: Vec<&str> = gates.map(|gate| gate.name.as_str()).collect();
        let message = format!("pod {name} starts once others have removed its scheduling gates: {}", gates.join(", "));
        return Some(PodProblem { reason: Reason::Queued, message });
    }
    let why = scheduled.message.as_deref().unwrap_or("the scheduler gives no reason");
    Some(PodProblem { reason: Reason::Unschedulable, message: format!("pod {name} cannot be scheduled: {why}") })
}

fn waiting(name: &str, pod: &Pod, container: Option<&ContainerStatus>, now: Timestamp) -> Option<PodProblem> {
    let container = container?;
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().unwrap_or("ContainerCreating");
    match reason {
        "ContainerCreating" | "PodInitializing" => is_older(pod, now, CONTAINER_CREATION_TIMEOUT).then(|| PodProblem {
            reason: Reason::PodNotStarting,
            message: format!("pod {name} is still {reason}; its events say why: kubectl describe pod {name}"),
        }),
        _ if is_about_the_image(reason) => Some(PodProblem {
            reason: Reason::ImageUnavailable,
            message: format!("pod {name} cannot get its image {}: {}", container.image, describe(reason, waiting)),
        }),
        _ => Some(PodProblem {
            reason: Reason::PodNotStarting,
            message: format!("pod {name} cannot start: {}", describe(reason, waiting)),
        }),
    }
}

fn is_about_the_image(reason: &str) -> bool {
    matches!(
        reason,
        "ErrImagePull"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "SignatureValidationFailed"
    )
}

fn describe(reason: &str, waiting: &ContainerStateWaiting) -> String {
    waiting.message.as_ref().map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}"))
}

fn is_older(pod: &Pod, now: Timestamp, than: SignedDuration) -> bool {
    pod.metadata.creation_timestamp.as_ref().is_some_and(|created| now.duration_since(created.0) >= than)
}

fn condition<'a>(status: &'a PodStatus, kind: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}
