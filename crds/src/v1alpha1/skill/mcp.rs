//! The MCP server of a Skill.

use super::super::model::CaRef;
use super::super::shared::SecretKeyRef;
use super::endpoint::header_rule;
use crate::Digest;
use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use kube::KubeSchema;
use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The MCP server of a Skill. Exactly one of `container`, `service` and `uri` is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.container) ? !has(self.service) && !has(self.uri) : has(self.service) != has(self.uri)").message("exactly one of container (the operator runs it), service (it runs in the namespace) and uri (it is outside of the cluster) is needed"),
    validation = Rule::new("!has(self.uri) || self.uri.matches('^https://[^/?#@ ]+(/[^?# ]*)?$')").message("must be an https URL without user, query or fragment, such as https://tools.example/mcp").field_path(".uri"),
    validation = Rule::new("!has(self.headers) || has(self.uri)").message("is only allowed with uri").field_path(".headers"),
    validation = Rule::new("!has(self.ca) || has(self.uri)").message("is only allowed with uri").field_path(".ca"),
    validation = Rule::new("!has(self.egress) || has(self.container)").message("is only allowed with container").field_path(".egress")
)]
pub struct McpServer {
    /// A server that the operator runs, with one Deployment and one Service for all Jobs of the Skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<McpContainer>,
    /// An existing Service in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<McpService>,
    /// The URL of a server outside of the cluster, such as `https://tools.example/mcp`. Its address must be public, or in the
    /// chart's `worker.endpointRanges`. Redirects are not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub uri: Option<String>,
    /// Headers of each request to `uri`, with values from Secrets. The worker reads them before each request, so a rotated
    /// Secret takes effect at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub headers: Vec<McpHeader>,
    /// The trusted CA certificates of `uri`, as PEM. They replace the default, which is the certificates of the worker's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaRef>,
    /// The digest of the accepted tools: that in `status.tools.found.digest`. Without it, the tools that the first probe finds are
    /// accepted until `mcpServer` changes. Calls of tools that differ from the accepted ones are denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub tools_digest: Option<Digest>,
    /// The hosts that the server in `container` may connect to. Default: none. The network policies of the operator refuse all other
    /// connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub egress: Vec<McpEgress>,
}

/// A host that an MCP server may connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpEgress {
    /// A public name or address, a Service of the namespace (`<service>` or `<service>.<namespace>.svc`), or a host that the chart's
    /// `network.shared` lists. A public name allows its port at all public addresses.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9:]([-A-Za-z0-9.:]*[A-Za-z0-9:])?$"))]
    pub host: String,
    /// The TCP port. Default: 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<u16>,
}

/// A header of each request to an MCP server. Its value comes from a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpHeader {
    /// The name of the header, such as `Authorization`.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"))]
    #[x_kube(validation = header_rule(), validation = protocol_header_rule())]
    pub name: String,
    /// The scheme before the value, such as `Bearer`, separated by a space. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[A-Za-z][-A-Za-z0-9_]*$"))]
    pub scheme: Option<String>,
    /// A key of a Secret in the same namespace.
    pub secret_key_ref: SecretKeyRef,
}

/// Returns the rule that refuses the headers of the protocol.
fn protocol_header_rule() -> Rule {
    Rule::new("!self.lowerAscii().startsWith('mcp-') && self.lowerAscii() != 'last-event-id'")
        .message("is a header of MCP itself")
}

/// An MCP server that the operator runs. It runs under the `restricted` Pod Security Standard, so its image must run as a
/// non-root user on a read-only root file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.transport) || self.transport != 'stdio' || (has(self.command) && size(self.command) > 0)").message("command is needed with transport stdio: the command line of the server in its image").field_path(".command"),
    validation = Rule::new("!has(self.transport) || self.transport != 'stdio' || !has(self.health)").message("is not allowed with transport stdio: the bridge listens as soon as the server answers").field_path(".health")
)]
pub struct McpContainer {
    /// The image.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// How the server speaks MCP. `streamable-http`: it listens on `port`. `stdio`: it speaks over its standard input and
    /// output; the operator starts it with a bridge that listens on `port`, and each session of a worker has a process of
    /// its own. Default: `streamable-http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<McpTransport>,
    /// Replaces the image's entry point. Required with `transport: stdio`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 4096)))]
    pub command: Vec<String>,
    /// Arguments of the entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// The port of the pod. Default: 8080.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// The path of its MCP endpoint. Default: `/mcp`.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^/[^?#\s]*$"))]
    pub path: String,
    /// How its health is checked. Default: a connection to the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<McpHealth>,
    /// Environment variables, as in a pod. With `valueFrom`, the server can use a secret that no worker can read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// Resource requests and limits, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// The health check of an MCP server that the operator runs: an HTTP GET request, which must not begin a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpHealth {
    /// The path, such as `/healthz`.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^/[^?#\s]*$"))]
    pub path: String,
    /// The port. Default: that of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<u16>,
}

impl McpContainer {
    /// Returns whether the server speaks over its standard input and output.
    pub fn is_stdio(&self) -> bool {
        self.transport == Some(McpTransport::Stdio)
    }
}

/// The transport of an MCP server that the operator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum McpTransport {
    /// Streamable HTTP, on the port of the container.
    StreamableHttp,
    /// Standard input and output.
    Stdio,
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
