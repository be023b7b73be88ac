//! What stands in `Job.status`: how the conversation is going. What its gates decided is in `gates`.

use super::super::shared::conditions_schema;
use super::super::skill::RevisionRef;
use super::gates::Gates;
use crate::Digest;
use crate::outcome::{Outcome, Phase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
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
    /// Tools whose names the providers of models do not take, with the names that stand for them in prompts, in the log and
    /// in `gates`; the first of them where there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ToolName::MAX_NAMES))]
    pub tool_names: Vec<ToolName>,
    /// The UID of the Job that this one continues, from the first pod on.
    #[serde(rename = "continuedUID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub continued_uid: Option<String>,
    /// What the Job waits for a person to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// How many of the spec's `replies` the conversation has heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies_heard: Option<u32>,
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
    /// `Ready`, `Reconciling` or `Stalled`; `AwaitingPeople` while the Job rests until a person has spoken, and `False`
    /// from then on; `Reported` where a report was lost, `SkillAsWritten` where a rule of the Skill does not hold as it is
    /// written, `RepliesTaken` where a reply names no open question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

impl JobStatus {
    /// Whether the Job has ended.
    pub fn is_terminal(&self) -> bool {
        self.phase.is_some_and(Phase::is_terminal)
    }

    /// Whether the Job rests, without a pod, until a person has spoken.
    pub fn awaits_people(&self) -> bool {
        self.phase.is_some_and(Phase::awaits_people)
    }

    /// Whether a question may be open, so that a reply to it may be an answer. The status names the oldest only; and none
    /// at all where no report has told them.
    pub fn may_be_open(&self, question: &str) -> bool {
        let Some(WaitingFor { call, questions, .. }) = &self.waiting_for else { return true };
        let is_untold = call.is_none() && questions.is_empty();
        is_untold || questions.len() >= WaitingFor::MAX_QUESTIONS || questions.iter().any(|asked| asked.id == question)
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
    /// How many attempts in a row, up to this one, have parked for a person whose reports did not arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<u32>,
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

/// What a Job has spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Calls of the model, by stage.
    pub llm_calls: LlmCalls,
    /// Tokens sent to the model.
    pub input_tokens: u64,
    /// Of those, tokens that the provider had in its cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
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

/// A tool whose name the providers of models do not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolName {
    /// Its name, as its server has it; cut at 128 bytes.
    #[schemars(length(max = ToolName::MAX_TOOL))]
    pub tool: String,
    /// The name that stands for it.
    #[schemars(length(max = 64))]
    pub alias: String,
}

/// What a Job waits for a person to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// The call that a person has to approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HeldCall>,
    /// The Approvals that people have still to decide on before it can be made, one for each approver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 50)))]
    pub approvals: Vec<String>,
    /// The questions that a person has to answer, by `replies` of the spec; the oldest of them where there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = WaitingFor::MAX_QUESTIONS))]
    pub questions: Vec<AskedQuestion>,
    /// Since when the Job rests until a person has spoken; absent while a pod runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// A question that waits for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedQuestion {
    /// Replies name it.
    #[schemars(length(max = AskedQuestion::MAX_ID))]
    pub id: String,
    /// The question, cut at 1024 bytes.
    #[schemars(length(max = AskedQuestion::MAX_TEXT))]
    pub text: String,
    /// Answers to choose from; none where any words will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = AskedQuestion::MAX_CHOICES), inner(length(max = AskedQuestion::MAX_CHOICE)))]
    pub choices: Vec<String>,
    /// Why the latest reply to it was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = AskedQuestion::MAX_REFUSED))]
    pub refused: Option<String>,
}

impl AskedQuestion {
    /// The longest id.
    pub const MAX_ID: usize = 16;

    /// The longest text, in bytes.
    pub const MAX_TEXT: usize = 1024;

    /// How many choices are shown.
    pub const MAX_CHOICES: usize = 8;

    /// The longest choice, in bytes.
    pub const MAX_CHOICE: usize = 128;

    /// The longest reason of a refusal, in bytes.
    pub const MAX_REFUSED: usize = 256;
}

impl ToolName {
    /// How many names a status holds.
    pub const MAX_NAMES: usize = 16;

    /// The longest name of a tool, in bytes.
    pub const MAX_TOOL: usize = 128;
}

impl WaitingFor {
    /// How many questions are shown at once.
    pub const MAX_QUESTIONS: usize = 8;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(questions: usize, call: Option<HeldCall>) -> JobStatus {
        let question = |nth| AskedQuestion { id: format!("q-{nth}"), ..AskedQuestion::default() };
        let questions = (1..=questions).map(question).collect();
        JobStatus { waiting_for: Some(WaitingFor { call, questions, ..WaitingFor::default() }), ..JobStatus::default() }
    }

    #[test]
    fn a_question_may_be_open_that_is_named_or_may_not_be() {
        let call = HeldCall {
            id: "c-7".into(),
            tool: "process_refund".into(),
            digest: Digest::of_bytes(b"{}"),
            approvers: vec!["supervisor".into()],
            reason: "amount > 500".into(),
        };
        assert!(JobStatus::default().may_be_open("q-9"), "nothing is known");
        assert!(asks(0, None).may_be_open("q-9"), "nobody has told them");
        assert!(!asks(0, Some(call.clone())).may_be_open("q-9"), "it waits for a call alone");
        assert!(asks(2, None).may_be_open("q-2") && !asks(2, None).may_be_open("q-9"));
        assert!(asks(2, Some(call.clone())).may_be_open("q-2") && !asks(2, Some(call)).may_be_open("q-9"));
        assert!(asks(WaitingFor::MAX_QUESTIONS, None).may_be_open("q-9"), "there is no room for more");
    }
}
