//! The decisions of the gates in `Job.status`.

use crate::lenient;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The decisions of the gates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gates {
    /// The detected intent, if the Skill declares intents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<DetectedIntent>,
    /// The gate for tool calls.
    pub pre_tool: PreTool,
    /// The gate for answers.
    pub finalization: Finalization,
}

/// The detected intent of a goal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DetectedIntent {
    /// The id of the intent. Absent for a goal that is not one of the intents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub id: Option<String>,
    /// The entities that the goal contains, by name. Omitted if they are larger than 2048 bytes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "super::super::shared::free_object")]
    pub entities: Map<String, Value>,
    /// True if the goal is not one of the Skill's intents.
    pub out_of_domain: bool,
}

/// The decisions of the pre-tool gate: total counts, and the latest rulings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreTool {
    /// The number of allowed calls.
    pub allowed: u32,
    /// The number of denied calls.
    pub denied: u32,
    /// The number of calls that were held for a person.
    #[serde(default)]
    pub held: u32,
    /// The latest rulings, oldest first.
    #[serde(default, deserialize_with = "lenient::items", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = PreTool::MAX_LAST))]
    pub last: Vec<Ruling>,
}

impl PreTool {
    /// The largest number of rulings in `last`.
    pub const MAX_LAST: usize = 10;
}

/// The decision of the pre-tool gate about one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    /// The tool.
    #[schemars(length(max = 128))]
    pub tool: String,
    /// The strictest verdict of all layers.
    pub verdict: Verdict,
    /// The layer that gave the verdict.
    #[serde(default, deserialize_with = "lenient::optional", skip_serializing_if = "Option::is_none")]
    pub rule: Option<GateReason>,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub reason: Option<String>,
}

/// The verdicts of the pre-tool gate. The strictest verdict of all layers wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum Verdict {
    /// The call is allowed.
    Allow,
    /// The call waits for the decision of a person.
    Hold,
    /// The call is not made, and the model gets the reason.
    Deny,
}

/// The layers of the pre-tool gate, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
pub enum GateReason {
    /// The Job has no such tool, or the tool has changed since the start of the Job.
    Catalogue,
    /// The arguments contain the value of a secret.
    Secret,
    /// `policy.tools`, or `tools` of the detected intent, does not allow the tool; or a validation does not allow its effect.
    Policy,
    /// The `policy` of the tool denies the call, or requires an approval.
    ToolPolicy,
    /// A compiled guardrail denies the call, or requires an approval.
    Guardrail,
    /// An earlier step of a required workflow is not done.
    Workflow,
    /// The rules of the endpoint do not allow the call.
    Endpoint,
    /// The arguments are not valid JSON, or do not match the schema of the tool or the `inputs` that the Skill declares.
    Schema,
    /// `policy.approvals` or `policy.limits` requires an approval, or denies the call.
    Approval,
    /// A limit of the Job is reached.
    Limit,
}

/// The decisions of the finalization gate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finalization {
    /// The number of answers with an invalid form. They do not count as attempts.
    #[serde(default)]
    pub form_errors: u32,
    /// All attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub attempts: Vec<FinalizationAttempt>,
    /// True if an answer has passed.
    pub passed: bool,
    /// True if no model judged the answer, because `engine.finalizationGate.enabled` of the Skill is false.
    #[serde(default)]
    pub skipped: bool,
}

/// The decision of the finalization gate about one answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalizationAttempt {
    /// True if the answer passed.
    pub passed: bool,
    /// The score that the judging model gave, 0 to 1. Absent if no model judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: Option<f64>,
    /// The faults of the answer.
    #[serde(default, deserialize_with = "lenient::items", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub reasons: Vec<FinalizationReason>,
    /// The required fields that the answer lacked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 128)))]
    pub missing_fields: Vec<String>,
    /// The action that the judging model suggested.
    #[serde(default, deserialize_with = "lenient::optional", skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<SuggestedAction>,
}

/// A fault of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalizationReason {
    /// The kind of the fault.
    pub code: FinalizationCode,
    /// The fault, for people.
    #[schemars(length(max = 256))]
    pub detail: String,
}

/// The reason codes of the finalization gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum FinalizationCode {
    /// The goal is not reached, or a required workflow is not complete.
    GoalNotMet,
    /// The answer violates a guardrail.
    GuardrailViolated,
    /// A field of the output contract is missing, null or empty.
    MissingRequiredField,
    /// The answer has no valid JSON block, or was cut off.
    OutputIncomplete,
    /// The tone of the answer does not match the persona.
    ToneMismatch,
}

/// The actions that the judging model can suggest after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum SuggestedAction {
    /// Call a tool to get missing information.
    ToolCall,
    /// Ask the person.
    ClarifyUser,
    /// Rewrite the answer.
    Rewrite,
    /// Leave the goal to a person.
    Escalate,
}
