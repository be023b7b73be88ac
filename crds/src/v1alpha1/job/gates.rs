//! What stands in `Job.status` of the gates, in the order in which a conversation meets them.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What each gate decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gates {
    /// Which intent the goal means; absent where the Skill declares none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<DetectedIntent>,
    /// The gate before every tool call.
    pub pre_tool: PreTool,
    /// The gate before an answer counts.
    pub finalization: Finalization,
}

/// Which intent a goal means.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DetectedIntent {
    /// The intent's id; absent for a goal that is none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub id: Option<String>,
    /// The entities that the goal names, by name; left out where they are larger than 2048 bytes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "super::super::shared::free_object")]
    pub entities: Map<String, Value>,
    /// Whether the goal is none of the Skill's intents.
    pub out_of_domain: bool,
}

/// What the pre-tool gate decided: whole counts, and the latest rulings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreTool {
    /// How many calls were allowed.
    pub allowed: u32,
    /// How many calls were denied.
    pub denied: u32,
    /// How many calls were held for a person.
    #[serde(default)]
    pub held: u32,
    /// The latest rulings, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub last: Vec<Ruling>,
}

impl PreTool {
    /// How many rulings `last` keeps.
    pub const LAST: usize = 10;
}

/// What the pre-tool gate said of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    /// The tool.
    #[schemars(length(max = 128))]
    pub tool: String,
    /// The strictest verdict of all layers.
    pub verdict: Verdict,
    /// The layer that gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<GateReason>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub reason: Option<String>,
}

/// Verdicts of the pre-tool gate, mildest first: the strictest wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum Verdict {
    /// The call may be made.
    Allow,
    /// The call waits for a person.
    Hold,
    /// The call is not made, and the model is told why.
    Deny,
}

/// The layers of the pre-tool gate, in the order in which they rule (`engine.md`, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
pub enum GateReason {
    /// The tool is not in the Job's catalogue.
    Catalogue,
    /// The arguments hold the value of a secret.
    Secret,
    /// `policy.tools` does not allow the tool.
    Policy,
    /// The tool's own `policy` does not allow the call, or wants it approved.
    ToolPolicy,
    /// A compiled guardrail.
    Guardrail,
    /// An earlier step of a required workflow is not done.
    Workflow,
    /// The call of an API is none that the rules of its endpoint allow, or would leave it.
    Endpoint,
    /// The arguments have no canonical form, or do not fit the tool's schema.
    Schema,
    /// `policy.approvals` wants the call approved.
    Approval,
    /// A budget of the Job is spent.
    Limit,
}

/// What the finalization gate decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finalization {
    /// How often the form of an answer was sent back, which is no attempt.
    #[serde(default)]
    pub form_errors: u32,
    /// Every attempt, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub attempts: Vec<FinalizationAttempt>,
    /// Whether an answer has passed.
    pub passed: bool,
    /// Whether no model ruled, because the Skill's `engine.finalizationGate.enabled` is false.
    #[serde(default)]
    pub skipped: bool,
}

/// One ruling of the finalization gate on an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalizationAttempt {
    /// Whether the answer passed.
    pub passed: bool,
    /// How good the model that ruled found it, 0 to 1; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: Option<f64>,
    /// What was wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub reasons: Vec<FinalizationReason>,
    /// Required fields that it lacked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 128)))]
    pub missing_fields: Vec<String>,
    /// What the model was asked to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_action: Option<SuggestedAction>,
}

/// One thing that was wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalizationReason {
    /// What kind of fault it is.
    pub code: FinalizationCode,
    /// The fault, for people.
    #[schemars(length(max = 256))]
    pub detail: String,
}

/// Reason codes of the finalization gate (seed 002, section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum FinalizationCode {
    /// The goal, or a workflow that it needs, is not reached.
    GoalNotMet,
    /// A guardrail of the Skill was not kept.
    GuardrailViolated,
    /// A field of the output contract is missing, null or empty.
    MissingRequiredField,
    /// The answer has no JSON block that could be read, or is not whole.
    OutputIncomplete,
    /// The answer does not sound as the Skill wants it.
    ToneMismatch,
}

/// What the model is asked to do after a failed attempt (seed 002, section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::EnumIter)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum SuggestedAction {
    /// Find out what is missing with a tool.
    ToolCall,
    /// Ask the person.
    ClarifyUser,
    /// Say it otherwise.
    Rewrite,
    /// A person has to take over.
    Escalate,
}
