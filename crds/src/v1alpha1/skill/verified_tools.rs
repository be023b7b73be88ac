//! The tools of a Skill's MCP server, as verified by probes.

use crate::Digest;
use crate::tool_pins::ToolPins;
use crate::v1alpha1::shared::is_zero;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The tools of the Skill's MCP server: those that are pinned, and what the latest probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedTools {
    /// The digest of `spec.mcpServer` (without `toolsDigest`) to which the pins belong.
    pub server: Digest,
    /// The digest of the pinned tools. Absent while no tools are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The pinned tools. A Job is denied every tool that differs from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<ToolPins>,
    /// What the latest probe found.
    pub found: FoundTools,
}

/// What the latest probe of an MCP server found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundTools {
    /// The digest of what the probe verified: the MCP server, the rules of the Skill, and the image that the server runs.
    pub key: Digest,
    /// The digest of the rules that the probe compiled.
    pub rules: Digest,
    /// The time of the report.
    #[schemars(with = "Time")]
    pub at: Time,
    /// The digest of the tools that the server listed. `spec.mcpServer.toolsDigest` accepts them.
    pub digest: Digest,
    /// The number of tools that the server listed.
    pub count: u32,
    /// The tools that differ from the pinned ones, a clause each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 256)))]
    pub changes: Vec<String>,
    /// The number of further tools that differ.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_changes: u32,
    /// The rules of the Skill that do not fit the tools. Each begins with the path of its field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 768)))]
    pub rule_errors: Vec<String>,
    /// The number of further rules that do not fit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_rule_errors: u32,
}
