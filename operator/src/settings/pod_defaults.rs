//! The fields that an installation sets in the pods of one kind: workers, or MCP servers.

use k8s_openapi::api::core::v1::{LocalObjectReference, PodSpec, Toleration};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The fields that an installation sets in each pod of one kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodDefaults {
    /// Secrets of the pod's own namespace for pulling its image.
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Labels of the nodes that may run the pod.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pod tolerates.
    pub tolerations: Vec<Toleration>,
    /// The priority class; the cluster's default if empty.
    pub priority_class_name: String,
}

impl PodDefaults {
    /// Sets the fields in a pod. Empty fields stay absent.
    pub fn apply_to(&self, spec: &mut PodSpec) {
        let Self { image_pull_secrets, node_selector, tolerations, priority_class_name } = self.clone();
        spec.image_pull_secrets = Some(image_pull_secrets).filter(|secrets| !secrets.is_empty());
        spec.node_selector = Some(node_selector).filter(|labels| !labels.is_empty());
        spec.tolerations = Some(tolerations).filter(|tolerations| !tolerations.is_empty());
        spec.priority_class_name = Some(priority_class_name).filter(|name| !name.is_empty());
    }
}
