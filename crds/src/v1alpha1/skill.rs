//! The kind `Skill`: the definition of an agent.

mod context;
mod endpoint;
mod engine;
mod features;
mod intents;
mod mcp;
mod memory;
mod pods;
mod policy;
mod resource;
mod scripts;
mod tool;
mod validation;
mod verified_tools;

pub use context::Context;
pub use endpoint::{CALL_HEADERS, EndpointAuth, EndpointRule, Method, is_reserved_header};
pub use engine::{Engine, FinalizationGate, IntentDetection, OutputContract, ReplyPolisher, Stage, ToolSelection};
pub use features::{Feature, FeatureExtension, FeatureStatus};
pub use intents::{Entity, Intent, Intents, OutOfDomain, OutOfDomainAction};
pub use mcp::{
    McpBinding, McpContainer, McpEgress, McpHeader, McpHealth, McpScope, McpServer, McpService, McpTransport,
};
pub use memory::{BankUse, CoreNote, DirectoryUsage, Memory, MemoryUsage, ReclaimPolicy};
pub use pods::{PodField, PodSettings, Pods};
pub use policy::{
    ApprovalAction, ApprovalRule, CallLimit, EffectPolicy, Guardrails, LimitScope, ListSource, Policy, StepEvidence,
    StepExpectation, ToolPolicy, Workflow,
};
pub use resource::{ResourceDeclaration, ResourceType};
pub use scripts::Scripts;
pub use tool::{CallPolicy, OutputField, ToolDeclaration, ToolInput, ToolOutput, ValueType, When};
pub use validation::{PassCriteria, RequireFor, Validation};
pub use verified_tools::{FoundTools, VerifiedTools};

use super::job::FeatureResult;
use super::shared::{Limits, conditions_schema};
use crate::tool_pattern;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use strum::IntoEnumIterator;

/// The definition of an agent: its persona, the MCP server that provides its tools, the policy for calling them, and the
/// contract for its answers. A Job names a Skill and runs on an immutable revision of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "bloomery.dev",
    version = "v1alpha1",
    kind = "Skill",
    namespaced,
    status = "SkillStatus",
    derive = "PartialEq",
    doc = "Skill is the definition of an agent: its persona, the MCP server that provides its tools, the policy for calling them, and the contract for its answers.",
    category = "bloomery",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Revision", type_ = "string", json_path = ".status.revision.name"),
    printcolumn(
        name = "Validated",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Validated\")].status",
        priority = "1"
    ),
    printcolumn(name = "Version", type_ = "integer", json_path = ".spec.version", priority = "1"),
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
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub display_name: Option<String>,
    /// The author's version of the Skill. `kubectl get skills -o wide` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub version: Option<u32>,
    /// The problem that the Skill solves.
    pub problem: Problem,
    /// The goal of the Skill: what each of its Jobs achieves for the goal that it is given. It is a part of the prompt and of the check of
    /// the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub goal: Option<String>,
    /// The role and the persona of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The intents that the Skill serves. Without them, the Skill accepts every goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intents: Option<Intents>,
    /// The resources that Jobs of the Skill bind: file systems, APIs and secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[x_kube(validation = kube::core::Rule::new("self.all(endpoint, !has(endpoint.auth) || self.exists(other, other.name == endpoint.auth.credential && other.type == 'credential'))").message("auth.credential must be the name of a resource of the type credential"))]
    pub resources: Vec<ResourceDeclaration>,
    /// The MCP server that provides the Skill's tools. Without a server, the agent has only the core tools of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServer>,
    /// Declarations of tools. The schema of a tool comes from the MCP server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub tools: Vec<ToolDeclaration>,
    /// The rules that the gates enforce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// The required content of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_contract: Option<OutputContract>,
    /// Criteria that an answer must meet in addition to the goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 512)))]
    pub acceptance_criteria: Vec<String>,
    /// The features of the Skill, each with its test. The prompt has all that are not optional, as far as there is room. The agent
    /// reads the others when it applies them (`apply_feature`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub features: Vec<Feature>,
    /// The documentation for the agent, as Markdown. The prompt has its headers, and the agent reads a section when it needs it
    /// (`skill_doc`). `docs`, `features`, `memory.notes` and `scripts.files` have together at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub docs: Option<String>,
    /// The scripts that Jobs of the Skill can run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Scripts>,
    /// The names of the Skills of the namespace that Jobs of this Skill may invoke, or `*` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        inner(length(min = 1, max = 50), regex(pattern = r"^(\*|[a-z]([-a-z0-9]*[a-z0-9])?)$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub skills: Vec<String>,
    /// The summaries of bound file systems in the first prompt. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// The settings of the Skill's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Pods>,
    /// The memory that the Jobs of the Skill share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The largest number of Jobs of the Skill that run at once. Further Jobs wait in a queue (`Queued`). A Job that waits for people
    /// does not count. A change applies at once, and stops no Job that runs. Default: no maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_running_jobs: Option<u32>,
    /// The settings of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
}

/// The problem that a Skill solves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The problem, in one or two sentences.
    #[schemars(length(min = 1, max = 4096))]
    pub statement: String,
    /// The goals of the Skill beyond a single Job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 512)))]
    pub goals: Vec<String>,
}

/// The role and the persona of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// The name of the role, such as `Support Agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// A template that describes how the agent works and writes. `{{resources.<name>}}` is replaced with the value of a bound
    /// resource: the mount path of a file system, or the URL of an API. Secrets cannot be rendered. A resource that is not
    /// required must be within `{{#if resources.<name>}} ... {{else}} ... {{/if}}`, or `{{#unless ...}}`. Other tags are not
    /// allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub persona: Option<String>,
}

impl SkillSpec {
    /// Returns the declarations whose name matches a tool. The policy, the inputs and `sends` of each of them apply.
    pub fn declarations_of<'a>(&'a self, tool: &str) -> impl Iterator<Item = &'a ToolDeclaration> {
        self.tools.iter().filter(move |declared| tool_pattern::matches(&declared.name, tool))
    }

    /// Returns the declaration that describes a tool: that of its name, or else that of the longest matching prefix.
    pub fn declaration_of(&self, tool: &str) -> Option<&ToolDeclaration> {
        self.declarations_of(tool).max_by_key(|declared| (declared.name == tool, declared.name.len()))
    }

    /// Returns whether rules may match no tool.
    pub fn allows_unmatched(&self) -> bool {
        self.policy.as_ref().and_then(|policy| policy.allow_unmatched) == Some(true)
    }

    /// Returns the inputs that all declarations of a tool have together. An input may occur more than once.
    pub fn inputs_of<'a>(&'a self, tool: &str) -> impl Iterator<Item = &'a ToolInput> {
        self.declarations_of(tool).flat_map(|declared| &declared.inputs)
    }

    /// Returns the limits that the Skill sets for each Job, if it sets any.
    pub fn limits(&self) -> Option<&Limits> {
        self.engine.as_ref()?.limits.as_ref()
    }

    /// Returns the size limit of an answer of the MCP server, in bytes.
    pub fn max_result_bytes(&self) -> u32 {
        self.engine.as_ref().and_then(|engine| engine.max_result_bytes).unwrap_or(Engine::DEFAULT_MAX_RESULT_BYTES)
    }

    /// Returns the name of the Model of a stage.
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

    /// Returns how the Skill's Jobs use the memory bank.
    pub fn bank(&self) -> BankUse {
        self.memory.as_ref().and_then(|memory| memory.bank).unwrap_or_default()
    }

    /// Returns what happens to the Skill's directory when the Skill is deleted.
    pub fn reclaim_policy(&self) -> ReclaimPolicy {
        self.memory.as_ref().and_then(|memory| memory.reclaim_policy).unwrap_or_default()
    }

    /// Returns the features that the Skill tests itself. Other Skills test the others.
    pub fn tested_features(&self) -> impl Iterator<Item = &Feature> {
        self.features.iter().filter(|feature| feature.subskill().is_none())
    }

    /// Returns the names of the Skills that test the other features, sorted.
    pub fn testing_skills(&self) -> BTreeSet<&str> {
        self.features.iter().filter_map(Feature::subskill).collect()
    }

    /// Returns the settings of the validation, if the Skill has any.
    pub fn validation(&self) -> Option<&Validation> {
        self.engine.as_ref()?.validation.as_ref()
    }

    /// Returns the names of all Models of the Skill. The first is that of the main loop.
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

/// The observed state of a Skill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The current revision. New Jobs run on it, unless `engine.validation.requireFor` needs a validated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<RevisionRef>,
    /// The latest revision on which all features have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated_revision: Option<RevisionRef>,
    /// The MCP server that the operator runs for all Jobs. Absent with `scope: Job`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpStatus>,
    /// The tools of the Skill's MCP server, as verified by a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<VerifiedTools>,
    /// The conditions `Accepted`, `ModelsReady`, `MemoryReady`, `McpAvailable`, `McpVerified`, `ToolsPinned` and `Ready`, and `Reconciling`
    /// or `Stalled` while true.
    /// `McpAsWritten`, if another writer changes the objects of the MCP server. `McpImageUnchanged`, if the image of the MCP server is
    /// another one than before. `Validated`, if the Skill has features to test: whether all of them have passed on the current revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The size of the Skill's directory in the memory, as a worker measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUsage>,
    /// The latest result of each feature, as Jobs with `mode: Validate` found them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = FeatureResult::MAX_RESULTS))]
    pub features: Vec<FeatureStatus>,
}

/// The observed state of an MCP server that the operator runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpStatus {
    /// The image that the Skill names.
    #[schemars(length(max = 1024))]
    pub image: String,
    /// The ID that the image had in the first pod. It stays until the Skill names another image.
    #[serde(rename = "imageID")]
    #[schemars(length(max = 1024))]
    pub image_id: String,
    /// The restarts of the containers of the current pods.
    pub restarts: i32,
}

/// An immutable compiled Skill, named by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionRef {
    /// The name of its ConfigMap.
    #[schemars(length(max = 63))]
    pub name: String,
    /// The digest of its content.
    pub digest: crate::Digest,
}
