//! Paths of objects at the API server, and the start of pods.

use bloomery_testkit::api_server::ApiServer;
use serde_json::{Value, json};

/// Returns the path of a Job.
pub fn job_path(name: &str) -> String {
    format!("/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/{name}")
}

/// Returns the path of a pod.
pub fn pod_path(name: &str) -> String {
    format!("/api/v1/namespaces/acme/pods/{name}")
}

/// Sets the status of pods that are created from now on: their worker container is in this state.
pub fn start_pods_as(api: &ApiServer, state: Value) {
    api.on_create(move |pod| {
        pod["status"] = json!({
            "phase": if state.get("waiting").is_some() { "Pending" } else { "Running" },
            "containerStatuses": [
                {"name": "worker", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": state},
            ],
        });
    });
}
