//! The kind `Skill`: what an agent may do.

mod context;
mod endpoint;
mod engine;
mod intents;
mod mcp;
mod memory;
mod policy;
mod resource;
mod tool;

pub use context::Context;
pub use endpoint::{CALL_HEADERS, EndpointAuth, EndpointRule, Method, is_reserved_header};
pub use engine::{Engine, FinalizationGate, IntentDetection, OutputContract, ReplyPolisher, Stage, ToolSelection};
pub use intents::{Entity, Intent, Intents, OutOfDomain, OutOfDomainAction};
pub use mcp::{McpContainer, McpServer, McpService};
pub use memory::{BankUse, Memory};
pub use policy::{ApprovalAction, ApprovalRule, Guardrails, Policy, ToolPolicy, Workflow};
pub use resource::{ResourceDeclaration, ResourceType};
pub use tool::{CallPolicy, ToolDeclaration, ToolInput, ToolOutput, ValueType, When};

use super::shared::conditions_schema;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator;

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
    /// What people may want of the Skill. Without it every goal is taken as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intents: Option<Intents>,
    /// What Jobs bind from outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[x_kube(validation = kube::core::Rule::new("self.all(endpoint, !has(endpoint.auth) || self.exists(other, other.name == endpoint.auth.credential && other.type == 'credential'))").message("auth.credential must be the name of a resource of the type credential"))]
    pub resources: Vec<ResourceDeclaration>,
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
    /// The rules that gates enforce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// What an answer must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<OutputContract>,
    /// What an answer is checked against besides the goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 512)))]
    pub acceptance_criteria: Vec<String>,
    /// What of the file systems that a Job binds is summed up in the first prompt. Nothing, where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// What the Skill's Jobs leave for one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
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
    /// How the agent speaks and works. A template: `{{resources.<name>}}` is a declared resource as the Job binds it
    /// (a file system is its mount path; a secret cannot be rendered); an optional one stands within
    /// `{{#if resources.<name>}} ... {{else}} ... {{/if}}`, or `{{#unless ...}}`. Nothing else is a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub persona: Option<String>,
}

impl SkillSpec {
    /// The name of the Model that a stage runs with.
    pub fn model_name(&self, stage: Stage) -> &str {
        let engine = self.engine.as_ref();
        let own = match stage {
            Stage::Finalization => {
                engine.and_then(|e| e.finalization_gate.as_ref()).and_then(|gate| gate.model.as_deref())
            }
            Stage::Polish => {
                engine.and_then(|e| e.reply_polisher.as_ref()).and_then(|polisher| polisher.model.as_deref())
            }
            Stage::Selection => engine.and_then(|e| e.tool_selection.as_ref()).and_then(|s| s.model.as_deref()),
            Stage::Intent => {
                engine.and_then(|e| e.intent_detection.as_ref()).and_then(|detection| detection.model.as_deref())
            }
            Stage::Plan => None,
        };
        own.or_else(|| engine.and_then(|engine| engine.model.as_deref())).unwrap_or("default")
    }

    /// What its Jobs do with the memory bank.
    pub fn bank(&self) -> BankUse {
        self.memory.as_ref().and_then(|memory| memory.bank).unwrap_or_default()
    }

    /// Every Model that the Skill runs with, that of the main loop first.
    pub fn model_names(&self) -> Vec<&str> {
        let mut names = vec![self.model_name(Stage::Plan)];
        for stage in Stage::iter() {
            let name = self.model_name(stage);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
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
