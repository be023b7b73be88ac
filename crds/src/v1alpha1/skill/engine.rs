//! How the engine runs a conversation, and what an answer must contain.

use super::super::shared::Limits;
use kube::KubeSchema;
use kube::core::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What an answer must contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputContract {
    /// Fields that the answer's JSON block must have, each with a value that is not null or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)), extend("x-kubernetes-list-type" = "set"))]
    pub required_fields: Vec<String>,
    /// A JSON Schema of those fields, of at most 64 KiB. References must stay within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::super::shared::free_object")]
    pub schema: Option<Map<String, Value>>,
}

/// How the engine runs the conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.approvalExpiry) || duration(self.approvalExpiry) <= duration('8760h')").message("at most 8760h, which is a year").field_path(".approvalExpiry"))]
#[x_kube(validation = Rule::new("!has(self.replyExpiry) || duration(self.replyExpiry) <= duration('8760h')").message("at most 8760h, which is a year").field_path(".replyExpiry"))]
pub struct Engine {
    /// The name of a Model in this namespace. Default `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
    /// The sampling temperature of the main loop, 0 to 2. Without it the provider's own default holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Budgets of each Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What finds out which intent a goal means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_detection: Option<IntentDetection>,
    /// Which of many tools the model is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_selection: Option<ToolSelection>,
    /// The gate that an answer passes before it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalization_gate: Option<FinalizationGate>,
    /// What brings an answer that passed into the persona's voice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_polisher: Option<ReplyPolisher>,
    /// Who approves where a rule names nobody. Default `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub approver: Option<String>,
    /// How long an approval stays open, as `24h` or `90m`, at most `8760h`: then it counts as denied. Default: what the
    /// installation says (`approvals.expiry` of the chart, 24h).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::super::shared::duration_schema")]
    pub approval_expiry: Option<Duration>,
    /// How long a Job waits for the answer to a question, as `72h`, at most `8760h`: then it ends as escalated. Default:
    /// what the installation says (`replies.expiry` of the chart, 168h). A change counts for Jobs that wait already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::super::shared::duration_schema")]
    pub reply_expiry: Option<Duration>,
}

/// What finds out which intent of the Skill a goal means. A Skill without intents has no use for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentDetection {
    /// The name of the Model that is asked. Default: `engine.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
}

/// Which tools the model is shown where there are more than a prompt should hold: before the main loop a model is asked
/// once which of them the goal needs. The worker's own tools and the steps of workflows stay in any case. It is no
/// permission: that is `policy.tools`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSelection {
    /// The most tools that the model is shown. Default 128.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 512))]
    pub max: Option<u32>,
    /// The name of the Model that selects. Default: `engine.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
}

/// The gate that an answer passes before it counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalizationGate {
    /// Whether a model rules on the answer. The output contract and the workflows are checked in any case.
    /// Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How often a failed answer may go back to the loop. Each return must bring new evidence. Default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 5))]
    pub max_retries: Option<u32>,
    /// The name of the Model that rules. Default: `engine.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
}

/// What brings an answer that passed into the persona's voice. If the content changed on the way, the answer
/// stands as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplyPolisher {
    /// Whether answers are polished. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The name of the Model that polishes. Default: `engine.model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub model: Option<String>,
}

/// The stages of a conversation that ask a model (seed 002, section 2).
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
    /// Which intent the goal means.
    Intent,
    /// Which of many tools the model is shown.
    Selection,
    /// The main loop.
    #[default]
    Plan,
    /// The finalization gate.
    Finalization,
    /// The reply polisher.
    Polish,
}
