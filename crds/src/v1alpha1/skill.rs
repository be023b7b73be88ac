//! The kind `Skill`: what an agent may do.

use super::shared::{Limits, conditions_schema};
use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// What an agent may do: its persona, the MCP server that brings its tools, the policy that rules them,
/// and what its answer must contain. Jobs name a Skill and run on an immutable revision of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "bloomery.dev",
    version = "v1alpha1",
    kind = "Skill",
    namespaced,
    status = "SkillStatus",
    derive = "PartialEq",
    doc = "Skill is what an agent may do: its persona, the MCP server that brings its tools, the policy that rules them, and what its answer must contain.",
    category = "bloomery",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.revision.name"),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.engine.model", priority = "1"),
    printcolumn(
        name = "MCP",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"McpAvailable\")].reason",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = super::shared::name_rule()
)]
#[serde(rename_all = "camelCase")]
pub struct SkillSpec {
    /// The name that people read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub display_name: Option<String>,
    /// The author's version of the Skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub version: Option<u32>,
    /// The problem that the Skill solves.
    pub problem: Problem,
    /// Who the agent is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The MCP server that brings the Skill's tools. Without one the agent answers without tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServer>,
    /// What the author says of a tool; its schema comes from the MCP server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub tools: Vec<ToolDeclaration>,
    /// The rules that the pre-tool gate enforces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// What an answer must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<OutputContract>,
    /// How the engine runs the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
}

/// The problem that a Skill solves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The problem, in a sentence or two.
    #[schemars(length(min = 1, max = 4096))]
    pub statement: String,
    /// What is to be reached beyond the single Job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 512)))]
    pub goals: Vec<String>,
}

/// Who the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// The role's name, such as `Support Agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// The persona, as plain text. `{{` is refused: templates are not supported yet, and a template that
    /// reaches the model as it stands would instruct it in a language of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    #[x_kube(validation = Rule::new("!self.contains('{{')").message("templates are not supported yet: write the persona as plain text, without {{"))]
    pub persona: Option<String>,
}

/// The MCP server of a Skill: exactly one of `container` and `service`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.container) != has(self.service)").message("exactly one of container (the operator runs it) and service (it runs already) is needed"))]
pub struct McpServer {
    /// A server that the operator runs: one Deployment and Service for all Jobs of the Skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<McpContainer>,
    /// A Service of the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<McpService>,
}

/// An MCP server that the operator runs. It speaks streamable HTTP, and runs under the `restricted` Pod
/// Security Standard: its image must run as a user other than root, on a read-only root file system.
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
    /// The port that it listens on. Default 8080.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// The path of its MCP endpoint. Default `/mcp`.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^/[^?#\s]*$"))]
    pub path: String,
    /// Its environment, as in a pod. `valueFrom` hands it a secret that no worker sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// Its requests and limits, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
}

/// An MCP server that runs already, as a Service of the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpService {
    /// Name of the Service.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Port of the Service.
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// The path of the MCP endpoint. Default `/mcp`.
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

/// What the author says of a tool. A tool of which nothing is said has effects and is not repeatable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolDeclaration {
    /// The tool's name, as the MCP server lists it.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The tool changes nothing: its calls may run at once and be repeated. A server's own hint can take
    /// this claim away, never give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Calling the tool again with the same call key has no further effect, so a call whose answer was lost
    /// may be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
}

/// The rules that the pre-tool gate enforces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Which tools may be seen and called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolPolicy>,
}

/// Which of the Skill's tools may be seen and called. `blocked` wins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolPolicy {
    /// Names, or beginnings of names that end in `*`. Absent means every tool of the Skill's MCP server; an
    /// empty list means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub allowed: Option<Vec<String>>,
    /// Names, or beginnings of names that end in `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub blocked: Vec<String>,
}

/// What an answer must contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputContract {
    /// Fields that the answer's JSON block must have, each with a value that is not null or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)), extend("x-kubernetes-list-type" = "set"))]
    pub required_fields: Vec<String>,
}

/// How the engine runs the conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Engine {
    /// The name of a Model in this namespace. Default `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
    /// The sampling temperature, 0 to 2. Without it the provider's own default holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Budgets of each Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The gate that an answer passes before it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalization_gate: Option<FinalizationGate>,
}

/// The gate that an answer passes before it counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalizationGate {
    /// How often a failed answer may go back to the loop. Each return must bring new evidence. Default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 5))]
    pub max_retries: Option<u32>,
}

impl SkillSpec {
    /// The name of the Model that the Skill runs with.
    pub fn model_name(&self) -> &str {
        self.engine.as_ref().and_then(|engine| engine.model.as_deref()).unwrap_or("default")
    }
}

/// What the operator says of a Skill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The revision that new Jobs run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<RevisionRef>,
    /// `Accepted`, `MemoryReady`, `McpAvailable`, `Ready`, and `Reconciling` or `Stalled` where they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// An immutable compiled Skill, named by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionRef {
    /// Name of its ConfigMap.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Digest of its content.
    pub digest: crate::Digest,
}
