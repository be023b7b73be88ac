//! The settings of a Skill's pods.

use k8s_openapi::api::core::v1::{LocalObjectReference, Toleration};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings of a Skill's pods. The chart says which of them a Skill may set (`worker.skillMaySet`, `mcp.skillMaySet`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// The worker pods of the Skill's Jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<PodSettings>,
    /// The pods of the MCP server that the operator runs. With `scope: Job` of the server, which runs in the worker pods, only
    /// `imagePullSecrets` is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<PodSettings>,
}

/// Settings of pods, in addition to those of the chart. If both set the same label or class, that of the chart counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSettings {
    /// Secrets of the namespace for pulling the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Labels of the nodes that may run the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pod tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub tolerations: Vec<Toleration>,
    /// The runtime class, such as that of a sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub runtime_class_name: Option<String>,
    /// The priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub priority_class_name: Option<String>,
    /// If false, the pod has a user namespace of its own: its users are no users of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_users: Option<bool>,
    /// Labels of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub annotations: BTreeMap<String, String>,
}

impl PodSettings {
    /// Returns the fields that are set.
    pub fn set_fields(&self) -> impl Iterator<Item = PodField> {
        let Self {
            image_pull_secrets,
            node_selector,
            tolerations,
            runtime_class_name,
            priority_class_name,
            host_users,
            labels,
            annotations,
        } = self;
        let fields = [
            (PodField::ImagePullSecrets, !image_pull_secrets.is_empty()),
            (PodField::NodeSelector, !node_selector.is_empty()),
            (PodField::Tolerations, !tolerations.is_empty()),
            (PodField::RuntimeClassName, runtime_class_name.is_some()),
            (PodField::PriorityClassName, priority_class_name.is_some()),
            (PodField::HostUsers, host_users.is_some()),
            (PodField::Labels, !labels.is_empty()),
            (PodField::Annotations, !annotations.is_empty()),
        ];
        fields.into_iter().filter(|(_, is_set)| *is_set).map(|(field, _)| field)
    }
}

/// A field of [`PodSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::Display)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum PodField {
    /// Secrets for pulling the image.
    ImagePullSecrets,
    /// Labels of nodes.
    NodeSelector,
    /// Tolerated taints of nodes.
    Tolerations,
    /// The runtime class.
    RuntimeClassName,
    /// The priority class.
    PriorityClassName,
    /// A user namespace of the pod.
    HostUsers,
    /// Labels of the pod.
    Labels,
    /// Annotations of the pod.
    Annotations,
}
