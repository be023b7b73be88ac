//! Kubernetes objects, as the harness writes and reads them.

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;

/// The port that every server of ours listens on.
pub(super) const PORT: u16 = 8080;

/// Whether a pod's containers are ready.
pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The parameters of a plain write.
pub(super) fn write() -> PostParams {
    PostParams { field_manager: Some("bloomery-e2e".to_owned()), ..PostParams::default() }
}
