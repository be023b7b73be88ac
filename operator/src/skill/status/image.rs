//! Observes the image that the MCP server of a Skill runs, and its restarts.

use super::super::build::PORT_NAME;
use super::pods;
use bloomery_crds::conditions::{ConditionType, Observation, Reason};
use bloomery_crds::v1alpha1::{McpContainer, McpStatus};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use std::sync::Arc;

/// Returns the observed server, and the condition if its image is another one than when the Skill first named it.
///
/// A tag can be moved to another image. So the ID that the image had first stays recorded until the Skill names another image.
pub(super) fn observe(
    container: Option<&McpContainer>,
    recorded: Option<&McpStatus>,
    pods: &[Arc<Pod>],
) -> (Option<McpStatus>, Option<Observation>) {
    let Some(container) = container else { return (None, None) };
    let recorded = recorded.filter(|recorded| recorded.image == container.image);
    let servers: Vec<(&Pod, &ContainerStatus)> =
        pods.iter().filter_map(|pod| Some((pod.as_ref(), server(pod, &container.image)?))).collect();
    let newest = servers.iter().max_by_key(|(pod, _)| pod.metadata.creation_timestamp.clone());
    let running = newest.map(|(_, server)| server.image_id.clone()).filter(|id| !id.is_empty());
    let Some(image_id) = recorded.map(|recorded| recorded.image_id.clone()).or_else(|| running.clone()) else {
        return (None, None);
    };
    let restarts = servers.iter().map(|(_, server)| server.restart_count).sum();
    let changed = running.filter(|running| *running != image_id).map(|running| {
        let message = format!(
            "the image {} of the MCP server was {image_id} and is now {running}, because its tag was moved. If you want this image, name \
             it by its digest in spec.mcpServer.container.image",
            container.image
        );
        Observation::fails(ConditionType::McpImageUnchanged, Reason::ImageChanged, message)
    });
    (Some(McpStatus { image: container.image.clone(), image_id, restarts }), changed)
}

/// Returns the state of the server in a pod that runs this image.
fn server<'a>(pod: &'a Pod, image: &str) -> Option<&'a ContainerStatus> {
    let wanted = pod.spec.as_ref()?.containers.iter().find(|container| container.name == PORT_NAME)?;
    pods::server(pod).filter(|_| wanted.image.as_deref() == Some(image))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(minute: u32, image: &str, image_id: &str, restarts: u32) -> Arc<Pod> {
        let status =
            json!({"name": "mcp", "image": image, "imageID": image_id, "ready": true, "restartCount": restarts});
        let pod: Value = json!({
            "metadata": {"name": "orders-mcp-1", "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z")},
            "spec": {"containers": [{"name": "mcp", "image": image}]},
            "status": {"containerStatuses": [status]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn container(image: &str) -> McpContainer {
        serde_json::from_value(json!({"image": image})).unwrap()
    }

    fn status(image: &str, image_id: &str, restarts: i32) -> McpStatus {
        McpStatus { image: image.into(), image_id: image_id.into(), restarts }
    }

    #[test]
    fn the_first_image_and_the_restarts_are_recorded() {
        let pods = [pod(1, "orders:1", "sha256:a", 2), pod(2, "orders:1", "sha256:a", 3)];
        let (observed, changed) = observe(Some(&container("orders:1")), None, &pods);
        assert_eq!((observed, changed), (Some(status("orders:1", "sha256:a", 5)), None));
        assert_eq!(observe(Some(&container("orders:1")), None, &[pod(1, "orders:1", "", 0)]), (None, None));
        assert_eq!(observe(None, Some(&status("orders:1", "sha256:a", 0)), &pods), (None, None));
    }

    #[test]
    fn a_moved_tag_is_a_condition_until_the_skill_names_another_image() {
        let recorded = status("orders:1", "sha256:a", 0);
        let pods = [pod(2, "orders:1", "sha256:b", 0), pod(1, "orders:1", "sha256:a", 0)];
        let (observed, changed) = observe(Some(&container("orders:1")), Some(&recorded), &pods);
        assert_eq!(observed, Some(recorded.clone()));
        let message = changed.unwrap().message;
        assert!(message.contains("was sha256:a and is now sha256:b"), "{message}");

        let named = container("orders@sha256:b");
        // The new pod does not exist yet.
        assert_eq!(observe(Some(&named), Some(&recorded), &pods), (None, None));
        let rolled_out = [pod(3, "orders@sha256:b", "sha256:b", 0)];
        let (observed, changed) = observe(Some(&named), Some(&recorded), &rolled_out);
        assert_eq!((observed, changed), (Some(status("orders@sha256:b", "sha256:b", 0)), None));
    }

    #[test]
    fn the_record_stays_while_no_pod_runs() {
        let recorded = status("orders:1", "sha256:a", 4);
        let (observed, changed) = observe(Some(&container("orders:1")), Some(&recorded), &[]);
        assert_eq!((observed, changed), (Some(status("orders:1", "sha256:a", 0)), None));
    }
}
