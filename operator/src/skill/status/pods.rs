//! Finds why a pod of an MCP server is not available.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Pod};

/// The message for a server that runs but does not accept connections.
pub(super) const NOT_LISTENING: &str =
    "the MCP server did not accept connections in time: check that it listens on spec.mcpServer.container.port";

/// Describes the problem that keeps a pod from serving, and what to do.
///
/// The description is the same during a failure and during the pause before the next try. Otherwise the condition would
/// change at every try.
pub(super) fn problem(pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref()?;
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    containers.into_iter().find_map(|container| container_problem(name, container)).or_else(|| {
        let conditions = status.conditions.iter().flatten();
        let unscheduled = conditions.into_iter().find(|found| {
            found.type_ == "PodScheduled" && found.status == "False" && found.reason.as_deref() == Some("Unschedulable")
        })?;
        let why = unscheduled.message.as_deref().unwrap_or("no reason is given");
        Some(format!("pod {name} of the MCP server cannot be scheduled: {why}"))
    })
}

fn container_problem(pod: &str, container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    if let Some(ended) = state.terminated.as_ref().or(last).filter(|_| !container.ready) {
        return Some(exit_message(pod, container, ended));
    }
    let ContainerStateWaiting { reason, message } = state.waiting.as_ref()?;
    match reason.as_deref().unwrap_or_default() {
        "" | "ContainerCreating" | "PodInitializing" => None,
        reason if reason.contains("Image") => Some(format!(
            "the image {} of the MCP server cannot be pulled: correct spec.mcpServer.container.image, or see kubectl describe pod {pod}",
            container.image
        )),
        reason => {
            let message = message.as_deref().unwrap_or("no reason is given");
            Some(format!("pod {pod} of the MCP server cannot start ({reason}): {message}"))
        }
    }
}

fn exit_message(pod: &str, container: &ContainerStatus, ended: &ContainerStateTerminated) -> String {
    // If a server never listens, its startup probe fails, and the kubelet ends it with SIGTERM (143) or SIGKILL (137).
    let was_stopped = matches!(ended.exit_code, 137 | 143) && ended.reason.as_deref() != Some("OOMKilled");
    if was_stopped && container.started == Some(false) {
        return NOT_LISTENING.to_owned();
    }
    let why = match ended.reason.as_deref() {
        None | Some("Error" | "Completed") => String::new(),
        Some(reason) => format!(" ({reason})"),
    };
    format!(
        "the MCP server exited with code {}{why} and is restarted: see kubectl logs {pod} --previous",
        ended.exit_code
    )
}
