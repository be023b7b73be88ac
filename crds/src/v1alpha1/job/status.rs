//! The status of a Job. The decisions of the gates are in `gates`.

use super::super::shared::{SecretKeyRef, conditions_schema};
use super::super::skill::{RevisionRef, Stage};
use super::child::ChildJob;
use super::feature_result::FeatureResult;
use super::gates::Gates;
use crate::Digest;
use crate::outcome::{Outcome, Phase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The observed state of a Job. The fields from `result` to `log` are a projection of the conversation's log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    // `gates`, `waiting_for` and `usage` are large, and boxed. The operator's cache holds thousands of ended Jobs, without them.
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The phase of the Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The current attempt, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// The outcome of the Job, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The revision of the Skill that all attempts run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_revision: Option<RevisionRef>,
    /// The answer, shortened. The whole answer is in the Skill's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// The decisions of the gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Box<Gates>>,
    /// The results of the tested features, in their order. Only with `mode: Validate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = FeatureResult::MAX_RESULTS))]
    pub features: Vec<FeatureResult>,
    /// The progress of the Skill's workflows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub workflows: Vec<WorkflowProgress>,
    /// Tools whose names the model providers do not accept, at most 16. Prompts, the log and `gates` contain their aliases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ToolName::MAX_NAMES))]
    pub tool_names: Vec<ToolName>,
    /// The UID of the Job that this one continues. Set with the first pod.
    #[serde(rename = "continuedUID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub continued_uid: Option<String>,
    /// The run key of the Job that this one continues, if its spec names it. Set with the first pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub continued_run_key: Option<String>,
    /// The decisions and answers that the Job waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Box<WaitingFor>>,
    /// The latest call whose approvals were passed to a worker. If one of these Approvals is deleted or replaced before the call is
    /// settled, people are asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_call: Option<ApprovedCall>,
    /// The calls that people were asked about and have not approved, and the latest one, at most 16. Such a call, and the same call
    /// under another id, needs their approval, whatever the log says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = AskedCall::MAX_CALLS))]
    pub asked_calls: Vec<AskedCall>,
    /// The held call of an ended Job, if it is certain that no worker started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_not_started: Option<CallNotStarted>,
    /// The Jobs that this one has invoked, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ChildJob::MAX_CHILDREN))]
    pub children: Vec<ChildJob>,
    /// The number of `replies` that the conversation has received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_heard: Option<u32>,
    /// The consumed budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// The position of the conversation's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPosition>,
    /// The time when the first pod was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// The time when the Job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The conditions of the Job: `Ready`, and `Reconciling` or `Stalled` while true. `AwaitingPeople`, once the Job has waited
    /// for a person. `Reported`, if a report was lost. `SkillAsWritten`, if a part of the Skill does not work as written.
    /// `RepliesTaken`, if a reply answers no open question. `LimitsAsWritten`, if a limit is above the Skill's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

impl JobStatus {
    /// Returns whether the Job has ended.
    pub fn is_terminal(&self) -> bool {
        self.phase.is_some_and(Phase::is_terminal)
    }

    /// Returns whether the Job waits for a person, without a pod.
    pub fn awaits_people(&self) -> bool {
        self.phase.is_some_and(Phase::awaits_people)
    }

    /// Returns whether the Job has no pod until a person or another Job has done something.
    pub fn is_waiting(&self) -> bool {
        self.phase.is_some_and(Phase::is_waiting)
    }

    /// Returns whether a question may be open. The status does not always have all open questions: it has only the oldest ones, and none
    /// until a report has arrived.
    pub fn may_be_open(&self, question: &str) -> bool {
        let Some(WaitingFor { call, questions, .. }) = self.waiting_for.as_deref() else { return true };
        let is_unreported = call.is_none() && questions.is_empty();
        is_unreported
            || questions.len() >= WaitingFor::MAX_QUESTIONS
            || questions.iter().any(|asked| asked.id == question)
    }
}

/// An attempt to run a Job, in one pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The number of the attempt, from 1.
    pub number: u32,
    /// The name of the pod.
    #[schemars(length(max = 63))]
    pub pod: String,
    /// The UID of the pod. Reports of other pods are refused. Absent if another pod has the name.
    #[serde(rename = "podUID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub pod_uid: Option<String>,
    /// The epoch that the worker claimed in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The number of attempts, since the last report, whose worker ended by itself without a report or a termination message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<u32>,
    /// The number of consecutive attempts, up to this one, that were disrupted before the log made progress. The pod of such an
    /// attempt was deleted, evicted, preempted or lost with its node, or another pod had its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disrupted: Option<u32>,
    /// The number of consecutive attempts, up to this one, that parked for a person and whose last report was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<u32>,
    /// The key of a Secret that the worker waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for_key: Option<SecretKeyRef>,
    /// The reason why the worker of this attempt, or of those before it since the last report, could not write to the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = Attempt::MAX_MEMORY_FAULT_BYTES))]
    pub memory_fault: Option<String>,
    /// The time when the operator saw that the pod had ended without an outcome. The next attempt starts after a backoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
}

impl Attempt {
    /// The longest reason why a worker cannot write to the memory, in bytes.
    pub const MAX_MEMORY_FAULT_BYTES: usize = 512;
}

/// The answer of a Job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobResult {
    /// The text for people, cut at 4096 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub text: String,
    /// The fields of the output contract. Omitted if they are larger than 4096 bytes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "super::super::shared::free_object")]
    pub fields: Map<String, Value>,
    /// The digest of the whole answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// True if the answer passed the finalization gate.
    pub verified: bool,
    /// True if the reply polisher rewrote `text`. False if the polisher is disabled, or if it changed the content.
    #[serde(default)]
    pub polished: bool,
}

/// The consumed budgets of a Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The number of model calls, by stage.
    pub llm_calls: LlmCalls,
    /// The number of tokens sent to models.
    pub input_tokens: u64,
    /// The number of these tokens that the provider read from its cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// The number of tokens in answers.
    pub output_tokens: u64,
    /// The model calls and tokens of each Model, by name. At most 8; those of further Models are one item with an empty name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = Usage::MAX_MODELS))]
    pub by_model: Vec<ModelUsage>,
    /// The number of started tool calls.
    pub tool_calls: u32,
    /// The working time, in seconds.
    #[serde(default)]
    pub seconds: u64,
    /// The budgets that the Job's children consumed, and their children. The other numbers do not include them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildrenUsage>,
}

impl Usage {
    /// The largest number of items in `byModel`.
    pub const MAX_MODELS: usize = 8;

    /// Returns the budgets that the Job and its children consumed together.
    pub fn with_children(&self) -> ChildrenUsage {
        let own = ChildrenUsage {
            steps: self.llm_calls.plan,
            tool_calls: self.tool_calls,
            tokens: self.tokens(),
            seconds: self.seconds,
        };
        own.plus(&self.children.unwrap_or_default())
    }
}

/// The consumed budgets of children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildrenUsage {
    /// The number of model calls in main loops.
    pub steps: u32,
    /// The number of started tool calls.
    pub tool_calls: u32,
    /// The number of tokens, input and output together.
    pub tokens: u64,
    /// The working time, in seconds.
    pub seconds: u64,
}

impl ChildrenUsage {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            steps: self.steps.saturating_add(other.steps),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            tokens: self.tokens.saturating_add(other.tokens),
            seconds: self.seconds.saturating_add(other.seconds),
        }
    }
}

/// The usage of a Model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// The name of the Model.
    #[schemars(length(max = 50))]
    pub model: String,
    /// The number of calls that have ended, by stage. A call without an answer counts for the Model of its stage, and one that a
    /// fallback answered counts for the fallback.
    pub llm_calls: LlmCalls,
    /// The number of tokens sent to the Model.
    pub input_tokens: u64,
    /// The number of these tokens that the provider read from its cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// The number of tokens in its answers.
    pub output_tokens: u64,
    /// These tokens by stage. Workers of an older version do not report them.
    #[serde(default, skip_serializing_if = "TokensByStage::is_empty")]
    pub tokens_by_stage: TokensByStage,
}

/// The tokens of model calls, by stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokensByStage {
    /// Tokens of calls that detect the intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Tokens>,
    /// Tokens of calls that select tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Tokens>,
    /// Tokens of calls of the main loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Tokens>,
    /// Tokens of calls of the finalization gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalization: Option<Tokens>,
    /// Tokens of calls of the reply polisher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polish: Option<Tokens>,
}

impl TokensByStage {
    /// Returns the tokens of a stage.
    pub fn in_stage(&self, stage: Stage) -> Tokens {
        let tokens = match stage {
            Stage::Intent => self.intent,
            Stage::Selection => self.selection,
            Stage::Plan => self.plan,
            Stage::Finalization => self.finalization,
            Stage::Polish => self.polish,
        };
        tokens.unwrap_or_default()
    }

    /// Returns the tokens of a stage, to change them.
    pub fn in_stage_mut(&mut self, stage: Stage) -> &mut Tokens {
        let tokens = match stage {
            Stage::Intent => &mut self.intent,
            Stage::Selection => &mut self.selection,
            Stage::Plan => &mut self.plan,
            Stage::Finalization => &mut self.finalization,
            Stage::Polish => &mut self.polish,
        };
        tokens.get_or_insert_default()
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The tokens of model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// The number of tokens sent to the Model.
    pub input: u64,
    /// The number of these tokens that the provider read from its cache.
    #[serde(default)]
    pub cached_input: u64,
    /// The number of tokens in its answers.
    pub output: u64,
}

/// The number of model calls, by stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LlmCalls {
    /// Calls that detect the intent.
    #[serde(default)]
    pub intent: u32,
    /// Calls that select tools.
    #[serde(default)]
    pub selection: u32,
    /// Calls of the main loop.
    pub plan: u32,
    /// Calls of the finalization gate.
    #[serde(default)]
    pub finalization: u32,
    /// Calls of the reply polisher.
    #[serde(default)]
    pub polish: u32,
}

impl LlmCalls {
    /// Returns the number of calls in a stage.
    pub fn in_stage(&self, stage: Stage) -> u32 {
        match stage {
            Stage::Intent => self.intent,
            Stage::Selection => self.selection,
            Stage::Plan => self.plan,
            Stage::Finalization => self.finalization,
            Stage::Polish => self.polish,
        }
    }

    /// Returns the number of calls in a stage, to change it.
    pub fn in_stage_mut(&mut self, stage: Stage) -> &mut u32 {
        match stage {
            Stage::Intent => &mut self.intent,
            Stage::Selection => &mut self.selection,
            Stage::Plan => &mut self.plan,
            Stage::Finalization => &mut self.finalization,
            Stage::Polish => &mut self.polish,
        }
    }
}

/// The progress of a workflow of the Skill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowProgress {
    /// The name of the workflow.
    #[schemars(length(max = 64))]
    pub name: String,
    /// True if the workflow must be complete at the end of the Job.
    pub required: bool,
    /// The steps that are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 64)))]
    pub done: Vec<String>,
    /// The steps that do not apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 64)))]
    pub not_applicable: Vec<String>,
    /// The open steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 64)))]
    pub open: Vec<String>,
}

/// A tool whose name the model providers do not accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolName {
    /// The name of the tool at its server, cut at 128 bytes.
    #[schemars(length(max = ToolName::MAX_TOOL_BYTES))]
    pub tool: String,
    /// The name that models use instead.
    #[schemars(length(max = 64))]
    pub alias: String,
}

/// The decisions and answers that a Job waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// The call that waits for an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HeldCall>,
    /// The names of the undecided Approvals of the call, one for each approver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 50)))]
    pub approvals: Vec<String>,
    /// The oldest open questions, at most 8. Replies in `spec.replies` answer them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = WaitingFor::MAX_QUESTIONS))]
    pub questions: Vec<AskedQuestion>,
    /// The time when the Job began to wait without a pod. Absent while a pod runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// A question that waits for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedQuestion {
    /// The id, which replies name.
    #[schemars(length(max = AskedQuestion::MAX_ID_BYTES))]
    pub id: String,
    /// The question, cut at 1024 bytes.
    #[schemars(length(max = AskedQuestion::MAX_TEXT_BYTES))]
    pub text: String,
    /// The allowed answers. Without choices, any text is an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = AskedQuestion::MAX_CHOICES), inner(length(max = AskedQuestion::MAX_CHOICE_BYTES)))]
    pub choices: Vec<String>,
    /// The reason why the last reply to the question was not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = AskedQuestion::MAX_REFUSED_BYTES))]
    pub refused: Option<String>,
}

impl AskedQuestion {
    /// The longest id, in bytes.
    pub const MAX_ID_BYTES: usize = 16;

    /// The longest text, in bytes.
    pub const MAX_TEXT_BYTES: usize = 1024;

    /// The largest number of choices.
    pub const MAX_CHOICES: usize = 8;

    /// The longest choice, in bytes.
    pub const MAX_CHOICE_BYTES: usize = 128;

    /// The longest reason of a refused reply, in bytes.
    pub const MAX_REFUSED_BYTES: usize = 256;
}

impl ToolName {
    /// The largest number of names in a status.
    pub const MAX_NAMES: usize = 16;

    /// The longest name of a tool, in bytes.
    pub const MAX_TOOL_BYTES: usize = 128;
}

impl WaitingFor {
    /// The largest number of questions in a status.
    pub const MAX_QUESTIONS: usize = 8;
}

/// A call that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldCall {
    /// The id of the call in the log.
    #[schemars(length(max = 64))]
    pub id: String,
    /// The tool.
    #[schemars(length(max = 128))]
    pub tool: String,
    /// The digest of the canonical arguments.
    pub digest: Digest,
    /// The approvers that must approve the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 64)))]
    pub approvers: Vec<String>,
    /// The reason why the call is held, for people.
    #[schemars(length(max = 1024))]
    pub reason: String,
}

/// A call that people were asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct AskedCall {
    /// The id of the call in the log.
    #[schemars(length(max = 64))]
    pub id: String,
    /// The tool.
    #[schemars(length(max = 128))]
    pub tool: String,
    /// The digest of the canonical arguments.
    pub digest: Digest,
    /// The approvers who were asked, at most 32.
    #[schemars(length(max = ApprovedCall::MAX_APPROVERS), inner(length(max = 64)))]
    pub approvers: Vec<String>,
}

impl AskedCall {
    /// The largest number of recorded calls of a Job.
    pub const MAX_CALLS: usize = 16;
}

/// A call with approvals that were passed to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct ApprovedCall {
    /// The id of the call in the log.
    #[schemars(length(max = 64))]
    pub id: String,
    /// The digest of the canonical arguments.
    pub digest: Digest,
    /// The approvers whose approvals were passed, at most 32.
    #[schemars(length(max = ApprovedCall::MAX_APPROVERS), inner(length(max = 64)))]
    pub approvers: Vec<String>,
}

impl ApprovedCall {
    /// The largest number of recorded approvers.
    pub const MAX_APPROVERS: usize = 32;
}

/// A held call that no worker started before its Job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct CallNotStarted {
    /// The id of the call in the log.
    #[schemars(length(max = 64))]
    pub id: String,
    /// The tool.
    #[schemars(length(max = 128))]
    pub tool: String,
}

/// The position of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPosition {
    /// The path of the log in the Skill's memory.
    #[schemars(length(max = 128))]
    pub path: String,
    /// The number of events.
    pub events: u64,
    /// The digest of the last line.
    pub head: Digest,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting_for(questions: usize, call: Option<HeldCall>) -> JobStatus {
        let question = |nth| AskedQuestion { id: format!("q-{nth}"), ..AskedQuestion::default() };
        let questions = (1..=questions).map(question).collect();
        JobStatus {
            waiting_for: Some(WaitingFor { call, questions, ..WaitingFor::default() }.into()),
            ..JobStatus::default()
        }
    }

    #[test]
    fn a_question_may_be_open_unless_the_status_has_all_open_questions() {
        let call = HeldCall {
            id: "c-7".into(),
            tool: "process_refund".into(),
            digest: Digest::of_bytes(b"{}"),
            approvers: vec!["supervisor".into()],
            reason: "amount > 500".into(),
        };
        assert!(JobStatus::default().may_be_open("q-9"), "the status is empty");
        assert!(waiting_for(0, None).may_be_open("q-9"), "no report has arrived");
        assert!(!waiting_for(0, Some(call.clone())).may_be_open("q-9"), "the Job waits only for a call");
        assert!(waiting_for(2, None).may_be_open("q-2") && !waiting_for(2, None).may_be_open("q-9"));
        assert!(
            waiting_for(2, Some(call.clone())).may_be_open("q-2") && !waiting_for(2, Some(call)).may_be_open("q-9")
        );
        assert!(
            waiting_for(WaitingFor::MAX_QUESTIONS, None).may_be_open("q-9"),
            "the status may omit younger questions"
        );
    }
}
