//! Values and functions for all objects of the harness.

use std::fmt;
use std::ops::Deref;

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;

/// The message with which the API server refuses a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Deref for Refusal {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The port of all servers of the harness and of the operator's HTTP endpoint.
pub(super) const PORT: u16 = 8080;

/// Returns whether a pod is ready.
pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the parameters of a creation.
pub(super) fn write() -> PostParams {
    PostParams { field_manager: Some("bloomery-e2e".to_owned()), ..PostParams::default() }
}
