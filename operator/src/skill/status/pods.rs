//! Finds why a pod of an MCP server is not available.

use super::super::build::{PORT_NAME, STARTUP_SECONDS};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Pod};

/// The seconds that the kubelet may take, after the last try of the startup probe, until a container has ended.
const STOP_SECONDS: i64 = 60;

/// What to do with an image that the restricted security context refuses.
const ROOT_REMEDY: &str = ": build the image with a numeric USER other than 0";

/// The port of the MCP server, in messages.
#[derive(Debug, Clone, Copy)]
pub(super) enum Port {
    /// The server listens on it.
    Server(u16),
    /// The bridge before a stdio server listens on it, as soon as the server has answered.
    Bridge,
}

impl Port {
    /// Describes a server that runs but does not accept connections. The operator cannot see on which ports it listens.
    fn closed(self, probe: &str, pod: &str) -> String {
        let Self::Server(port) = self else {
            return format!(
                "the {probe} probe failed: the MCP server in pod {pod} does not answer over its standard input and output; see \
                 kubectl logs {pod}"
            );
        };
        format!(
            "the {probe} probe failed: the MCP server in pod {pod} accepts no connections on port {port}. Set \
             spec.mcpServer.container.port to the port that it listens on; kubectl logs {pod} usually names it"
        )
    }
}

/// Describes a server whose rollout took too long.
pub(super) fn rollout_timeout(pod: Option<&Pod>, port: Port) -> String {
    let name = pod.and_then(|pod| pod.metadata.name.as_deref()).unwrap_or("(none)");
    let is_started = pod.and_then(server).and_then(|server| server.started) == Some(true);
    port.closed(if is_started { "readiness" } else { "startup" }, name)
}

/// Describes a server that has started and does not accept connections yet.
pub(super) fn starting(pod: &Pod, port: Port) -> Option<String> {
    let server = server(pod)?;
    let is_running = server.state.as_ref().is_some_and(|state| state.running.is_some());
    let what = match port {
        Port::Server(port) => format!("its startup probe cannot connect to port {port} yet"),
        Port::Bridge => "it has not answered over its standard input and output yet".to_owned(),
    };
    let message = format!("the MCP server is starting: {what}, and may try for {STARTUP_SECONDS} s");
    (is_running && server.started == Some(false)).then_some(message)
}

/// Returns the state of the server's container.
pub(super) fn server(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.iter().flatten().find(|container| container.name == PORT_NAME)
}

/// Describes the problem that keeps a pod from serving, and what to do.
///
/// The description is the same during a failure and during the pause before the next try. Otherwise the condition would
/// change at every try.
pub(super) fn problem(pod: &Pod, port: Port) -> Option<String> {
    let name = pod.metadata.name.as_deref()?;
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    let bridge = status.init_container_statuses.iter().flatten();
    let bridge = bridge.into_iter().find_map(|container| init_problem(name, container));
    bridge.or_else(|| containers.into_iter().find_map(|container| container_problem(name, container, port))).or_else(
        || {
            let conditions = status.conditions.iter().flatten();
            let unscheduled = conditions.into_iter().find(|found| {
                found.type_ == "PodScheduled"
                    && found.status == "False"
                    && matches!(found.reason.as_deref(), Some("Unschedulable" | "SchedulingGated"))
            })?;
            let why = unscheduled.message.as_deref().unwrap_or("no reason is given");
            Some(format!("pod {name} of the MCP server cannot be scheduled: {why}"))
        },
    )
}

/// Describes why the bridge cannot be copied into a pod.
fn init_problem(pod: &str, container: &ContainerStatus) -> Option<String> {
    let ContainerStateWaiting { reason, message } = container.state.as_ref()?.waiting.as_ref()?;
    match reason.as_deref().unwrap_or_default() {
        "" | "ContainerCreating" | "PodInitializing" => None,
        reason => Some(format!(
            "pod {pod} of the MCP server cannot run its init container {} with the worker's image {} ({reason}): {}",
            container.name,
            container.image,
            message.as_deref().unwrap_or("no reason is given")
        )),
    }
}

fn container_problem(pod: &str, container: &ContainerStatus, port: Port) -> Option<String> {
    let state = container.state.as_ref()?;
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    if let Some(ended) = state.terminated.as_ref().or(last).filter(|_| !container.ready) {
        return Some(exit_message(pod, container, ended, port));
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
            let remedy = if message.contains("runAsNonRoot") { ROOT_REMEDY } else { "" };
            Some(format!("pod {pod} of the MCP server cannot start ({reason}): {message}{remedy}"))
        }
    }
}

fn exit_message(pod: &str, container: &ContainerStatus, ended: &ContainerStateTerminated, port: Port) -> String {
    // If a server never listens, its startup probe fails, and the kubelet ends it with SIGTERM (143) or SIGKILL (137). A server
    // that handles SIGTERM may end with any code.
    let was_killed = matches!(ended.exit_code, 137 | 143) || ended_with_startup_probe(ended);
    if was_killed && ended.reason.as_deref() != Some("OOMKilled") && container.started == Some(false) {
        return port.closed("startup", pod);
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

/// Returns whether a container ended when its startup probe had failed for the last time.
fn ended_with_startup_probe(ended: &ContainerStateTerminated) -> bool {
    let (Some(started), Some(finished)) = (&ended.started_at, &ended.finished_at) else { return false };
    let seconds = finished.0.duration_since(started.0).as_secs();
    let limit = i64::from(STARTUP_SECONDS);
    (limit - 1..=limit + STOP_SECONDS).contains(&seconds)
}
