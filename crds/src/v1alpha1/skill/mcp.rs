//! The MCP server of a Skill.

use crate::Digest;
use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The MCP server of a Skill. Exactly one of `container` and `service` is required.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.container) != has(self.service)").message("exactly one of container (the operator runs it) and service (it runs already) is needed"))]
pub struct McpServer {
    /// A server that the operator runs, with one Deployment and one Service for all Jobs of the Skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<McpContainer>,
    /// An existing Service in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<McpService>,
    /// The digest of the accepted tools: that in `status.tools.found.digest`. Without it, the tools that the first probe finds are
    /// accepted until `mcpServer` changes. Calls of tools that differ from the accepted ones are denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub tools_digest: Option<Digest>,
}

/// An MCP server that the operator runs. It must speak streamable HTTP. It runs under the `restricted` Pod Security
/// Standard, so its image must run as a non-root user on a read-only root file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpContainer {
    /// The image.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// Replaces the image's entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 4096)))]
    pub command: Vec<String>,
    /// Arguments of the entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// The port that it listens on. Default: 8080.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// The path of its MCP endpoint. Default: `/mcp`.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^/[^?#\s]*$"))]
    pub path: String,
    /// Environment variables, as in a pod. With `valueFrom`, the server can use a secret that no worker can read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// Resource requests and limits, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// An MCP server that already runs as a Service in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpService {
    /// The name of the Service.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The port of the Service.
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// The path of the MCP endpoint. Default: `/mcp`.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^/[^?#\s]*$"))]
    pub path: String,
}

fn default_port() -> u16 {
    8080
}

fn default_path() -> String {
    "/mcp".to_owned()
}
