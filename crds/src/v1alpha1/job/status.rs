//! What stands in `Job.status`: how the conversation is going, gate by gate.

use super::super::shared::conditions_schema;
use super::super::skill::RevisionRef;
use crate::Digest;
use crate::outcome::{Outcome, Phase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a Job is going. Everything from `result` to `log` is a projection of the conversation's log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The stage that the Job is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The pod that runs the Job, or ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// The end of the Job: a typed reason and a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The revision of the Skill that the Job runs on, from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_revision: Option<RevisionRef>,
    /// The answer, bounded; the whole of it is in the Skill's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// What each gate decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Gates>,
    /// How far the Skill's workflows are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub workflows: Vec<WorkflowProgress>,
    /// What the Job waits for a person to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// What the Job has spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How far the conversation's log has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPosition>,
    /// When the first pod was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the Job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// `Ready`, `Reconciling` or `Stalled`; `Reported` where a report was lost, `SkillAsWritten` where a rule of the Skill
    /// does not hold as it is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

impl JobStatus {
    /// Whether the Job has ended.
    pub fn is_terminal(&self) -> bool {
        self.phase.is_some_and(Phase::is_terminal)
    }
}

/// One pod of a Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Counts the pods of the Job, from 1.
    pub number: u32,
    /// Name of the pod.
    #[schemars(length(max = 63))]
    pub pod: String,
    /// UID of the pod: reports of another are refused.
    #[serde(rename = "podUID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub pod_uid: Option<String>,
    /// The epoch that its worker claimed in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// How many attempts in a row, up to this one, have ended without a report or a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<u32>,
    /// When its pod was found to have ended without an outcome; the next attempt starts after a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
}

/// The answer of a Job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobResult {
    /// What is said to people, cut at 4096 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub text: String,
    /// The fields of the output contract, left out where they are larger than 4096 bytes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "super::super::shared::free_object")]
    pub fields: Map<String, Value>,
    /// Digest of the whole answer in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// False for a draft that did not pass the finalization gate.
    pub verified: bool,
    /// Whether the reply polisher's words stand in `text`. False where it is off, or where it changed the content.
    #[serde(default)]
    pub polished: bool,
}

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
    /// `policy.tools` does not allow the tool.
    Policy,
    /// The tool's own `policy` does not allow the call, or wants it approved.
    ToolPolicy,
    /// A compiled guardrail.
    Guardrail,
    /// An earlier step of a required workflow is not done.
    Workflow,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
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

/// What a Job has spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Calls of the model, by stage.
    pub llm_calls: LlmCalls,
    /// Tokens sent to the model.
    pub input_tokens: u64,
    /// Tokens that it answered with.
    pub output_tokens: u64,
    /// Tool calls that were started.
    pub tool_calls: u32,
    /// Seconds that workers were at work.
    #[serde(default)]
    pub seconds: u64,
}

/// Calls of the model, by stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LlmCalls {
    /// Calls that find out the intent.
    #[serde(default)]
    pub intent: u32,
    /// Calls of the main loop.
    pub plan: u32,
    /// Calls of the finalization gate.
    #[serde(default)]
    pub finalization: u32,
    /// Calls of the reply polisher.
    #[serde(default)]
    pub polish: u32,
}

/// How far a workflow of the Skill is. Steps are named as the Skill names them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowProgress {
    /// The workflow.
    #[schemars(length(max = 64))]
    pub name: String,
    /// Whether the answer counts only when it is complete.
    pub required: bool,
    /// Steps that are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 64)))]
    pub done: Vec<String>,
    /// Steps that turned out not to apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 64)))]
    pub not_applicable: Vec<String>,
    /// Steps that are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 64)))]
    pub open: Vec<String>,
}

/// What a Job waits for a person to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// The call that a person has to approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HeldCall>,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldCall {
    /// Its id in the log.
    #[schemars(length(max = 64))]
    pub id: String,
    /// The tool.
    #[schemars(length(max = 128))]
    pub tool: String,
    /// Digest of its canonical arguments.
    pub digest: Digest,
    /// Who has to approve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 64)))]
    pub approvers: Vec<String>,
    /// Why it is held, for people.
    #[schemars(length(max = 1024))]
    pub reason: String,
}

/// How far a log has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPosition {
    /// Where it is, in the Skill's memory.
    #[schemars(length(max = 128))]
    pub path: String,
    /// How many events it holds.
    pub events: u64,
    /// Digest of its last line.
    pub head: Digest,
}
