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
    validation = Rule::new("!has(self.scope) || self.scope != 'Job' || has(self.container)").message("Job is only allowed with container: the operator does not start other servers").field_path(".scope"),
    validation = Rule::new("!has(self.container) || !has(self.container.bindings) || (has(self.scope) && self.scope == 'Job')").message("is only allowed with scope Job: all Jobs share another server").field_path(".container.bindings"),
    validation = Rule::new("!has(self.container) || !has(self.container.health) || !has(self.scope) || self.scope != 'Job'").message("is not allowed with scope Job: the worker connects to the server itself").field_path(".container.health"),
    validation = Rule::new("!has(self.container) || !has(self.container.protect) || !has(self.scope) || self.scope != 'Job'").message("is not allowed with scope Job: only the worker of the Job reaches the server").field_path(".container.protect"),
    validation = Rule::new("!has(self.egress) || has(self.container)").message("is only allowed with container").field_path(".egress")
)]
pub struct McpServer {
    /// A server that the operator runs: one Deployment and one Service for all Jobs of the Skill, or, with `scope: Job`, a sidecar
    /// of each worker pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<McpContainer>,
    /// The Jobs that share a `container`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<McpScope>,
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

impl McpServer {
    /// Returns the server that each worker pod has as a sidecar.
    pub fn sidecar(&self) -> Option<&McpContainer> {
        self.container.as_ref().filter(|_| self.scope == Some(McpScope::Job))
    }

    /// Returns whether workers send a token of the operator with each request: the operator runs the server.
    pub fn takes_token(&self) -> bool {
        self.shared_container().is_some()
    }

    /// Returns whether the server answers no request without such a token: a bridge stands before it.
    pub fn requires_token(&self) -> bool {
        self.shared_container().is_some_and(|container| container.is_stdio() || container.is_fronted())
    }

    /// Returns the server that other pods of the cluster can reach, if the operator runs it.
    fn shared_container(&self) -> Option<&McpContainer> {
        self.container.as_ref().filter(|_| self.sidecar().is_none())
    }
}

/// The Jobs that share a `container`. `Skill`: all Jobs of the Skill. `Job`: each worker pod has a server of its own, as a sidecar
/// that the worker reaches over the loopback interface. It has the file systems that the Job binds, at the same paths as the worker,
/// and the secrets in `container.bindings`. Default: `Skill`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum McpScope {
    /// All Jobs of the Skill.
    Skill,
    /// One Job: the server is a sidecar of its worker pod.
    Job,
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
    validation = Rule::new("!has(self.transport) || self.transport != 'stdio' || !has(self.health)").message("is not allowed with transport stdio: the bridge listens as soon as the server answers").field_path(".health"),
    validation = Rule::new("!has(self.protect) || !has(self.transport) || self.transport != 'stdio'").message("is not allowed with transport stdio, which is always protected").field_path(".protect")
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
    /// The port of the pod. With `scope: Job`, a server that speaks HTTP itself should listen on 127.0.0.1 only. Default: 8080.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// The path of its MCP endpoint. Default: `/mcp`.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^/[^?#\s]*$"))]
    pub path: String,
    /// How its health is checked. Not with `scope: Job`. Default: a connection to the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<McpHealth>,
    /// Environment variables, as in a pod. With `valueFrom`, the server can use a secret that no worker can read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// Secrets that the Job binds to resources of the Skill, for the server. Their values reach the server alone, and never the
    /// worker. Only with `scope: Job`. A resource that the Job does not bind is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub bindings: Vec<McpBinding>,
    /// Resource requests and limits, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// If true, only workers of this Skill can call the server: a bridge in its pod listens in its place, verifies the token of
    /// each request, and passes the request to `port` on the loopback address. The server must listen on 127.0.0.1, else others
    /// reach it past the bridge. A server with `transport: stdio` is always protected. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protect: Option<bool>,
}

/// A secret that the Job binds, for its MCP server: as an environment variable, or as a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.env) != has(self.path)").message("exactly one of env and path is needed"),
    validation = Rule::new("!has(self.probeValue) || has(self.env)").message("is only allowed with env").field_path(".probeValue")
)]
pub struct McpBinding {
    /// The name of a resource of the Skill, of the type `connection_string` or `credential`.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub resource: String,
    /// The environment variable that has the value, such as `DATABASE_URL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub env: Option<String>,
    /// The file that has the value, such as `/secrets/db`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$"))]
    pub path: Option<String>,
    /// The value of the environment variable in the pod of a probe, which has no Job and so no secrets. Set it to a value without
    /// use, such as `postgres://probe@localhost/probe`, if the server does not start without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub probe_value: Option<String>,
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

    /// Returns whether a bridge verifies the requests to a server that speaks HTTP.
    pub fn is_fronted(&self) -> bool {
        !self.is_stdio() && self.protect == Some(true)
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
