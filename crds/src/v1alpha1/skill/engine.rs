//! The settings of the engine, and the contract for answers.

use super::super::shared::Limits;
use super::validation::Validation;
use kube::KubeSchema;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The required content of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputContract {
    /// The required fields of the answer's JSON block. Their values must not be null or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)), extend("x-kubernetes-list-type" = "set"))]
    pub required_fields: Vec<String>,
    /// A JSON Schema for the answer's JSON block, of at most 64 KiB. References must stay within the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::super::shared::free_object")]
    pub schema: Option<Map<String, Value>>,
}

/// The settings of the engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.approvalExpiry) || duration(self.approvalExpiry) <= duration('8760h')").message("must be at most 8760h, which is a year").field_path(".approvalExpiry"))]
#[x_kube(validation = Rule::new("!has(self.replyExpiry) || duration(self.replyExpiry) <= duration('8760h')").message("must be at most 8760h, which is a year").field_path(".replyExpiry"))]
pub struct Engine {
    /// The name of a Model in the same namespace. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
    /// The sampling temperature of the main loop, 0 to 2. Default: that of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The limits of each Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The detection of the intent of a goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_detection: Option<IntentDetection>,
    /// The selection of tools for the prompt, if there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_selection: Option<ToolSelection>,
    /// The gate that every answer must pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalization_gate: Option<FinalizationGate>,
    /// The rewriting of accepted answers in the persona's voice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_polisher: Option<ReplyPolisher>,
    /// The validation of the Skill: the tests of its features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// The size limit of an answer of the MCP server, in bytes. Default: 8388608 (8 MiB). A call with a larger
    /// answer is completed, and the model is told that its result could not be read. A large result takes several times its size of
    /// the worker's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_536, max = 33_554_432))]
    pub max_result_bytes: Option<u32>,
    /// The approver of rules that do not name one. Default: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub approver: Option<String>,
    /// The time until an Approval expires, such as `24h` or `90m`, at most `8760h`. An expired Approval counts as denied.
    /// Default: the chart's `approvals.expiry`, 24h.
    #[serde(default, deserialize_with = "crate::duration::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::super::shared::duration_schema")]
    pub approval_expiry: Option<Duration>,
    /// The time that a Job waits for the answer to a question, such as `72h`, at most `8760h`. Then the Job ends as
    /// `Escalated`. Default: the chart's `replies.expiry`, 168h. A change also applies to waiting Jobs.
    #[serde(default, deserialize_with = "crate::duration::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::super::shared::duration_schema")]
    pub reply_expiry: Option<Duration>,
}

impl Engine {
    /// The default of `maxResultBytes`.
    pub const DEFAULT_MAX_RESULT_BYTES: u32 = 8 * 1024 * 1024;
    /// The largest `maxResultBytes`.
    pub const LARGEST_MAX_RESULT_BYTES: u32 = 32 * 1024 * 1024;
}

/// The detection of the intent of a goal. A Skill without intents ignores it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentDetection {
    /// The name of the Model that detects the intent. Default: `engine.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
}

/// The selection of tools, if the Skill has more than a prompt should contain. Before the main loop, a model selects the
/// tools that the goal needs. The worker's own tools and the steps of workflows are always kept. To forbid tools, use
/// `policy.tools`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSelection {
    /// The largest number of tools in a prompt. Default: 128.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 512))]
    pub max: Option<u32>,
    /// The name of the Model that selects the tools. Default: `engine.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
}

/// The gate that every answer must pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalizationGate {
    /// True if a model judges the answer. The output contract and the workflows are always checked. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The number of times that the agent may correct a rejected answer. Each correction needs new evidence. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 5))]
    pub max_retries: Option<u32>,
    /// The name of the Model that judges. Default: `engine.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
}

/// The rewriting of accepted answers in the persona's voice. If the rewritten answer has other content, the accepted answer
/// is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplyPolisher {
    /// True if answers are polished. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The name of the Model that polishes. Default: `engine.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
}

/// The stages of a conversation that call a model.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// The detection of the intent.
    Intent,
    /// The selection of tools.
    Selection,
    /// The main loop.
    #[default]
    Plan,
    /// The finalization gate.
    Finalization,
    /// The reply polisher.
    Polish,
}
