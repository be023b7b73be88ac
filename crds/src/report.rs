//! What a worker and the operator say to each other while a Job runs (`docs/explanation/engine.md`, section 6).

use crate::canonical::Digest;
use crate::outcome::{Outcome, Phase};
use crate::run::{GivenReply, JobIdentity};
use crate::text::bounded;
use crate::v1alpha1::{
    AskedQuestion, Gates, HoldRule, JobResult, LogPosition, ToolName, Usage, WaitingFor, WorkflowProgress,
};
use serde::{Deserialize, Serialize};

/// The path of the report endpoint.
pub const PATH: &str = "/v1/reports";

/// The largest report, in bytes: a status of 32 KiB, and arguments of 16 KiB whose every character may be escaped.
pub const MAX_BYTES: usize = 96 * 1024;

/// The largest termination message that the kubelet keeps, in bytes.
pub const MAX_TERMINATION_MESSAGE: usize = 4096;

/// One report: how far the conversation is. Idempotent by (Job UID, epoch, `projection.log.events`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Report {
    /// Which Job.
    pub job: JobIdentity,
    /// Which attempt.
    pub attempt: u32,
    /// The epoch that the worker claimed.
    pub epoch: u64,
    /// The status as the log has it.
    pub projection: Projection,
    /// A condition that a person can mend, while the worker waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// What people need to know of the call that is held, where the pod ends because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Set in the last report of a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// The part of `Job.status` that is a projection of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Projection {
    /// The stage.
    pub phase: Phase,
    /// The end, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// What each gate decided.
    pub gates: Gates,
    /// How far the Skill's workflows are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<WorkflowProgress>,
    /// Tools whose names the providers do not take; at most [`MAX_TOOL_NAMES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_names: Vec<ToolName>,
    /// What a person has to do before the conversation can go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// How many of the Job's replies the conversation has heard.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replies_heard: u32,
    /// Replies that belong nowhere, a sentence each; at most [`MAX_REMARKS`] of at most [`MAX_REMARK`] bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stray_replies: Vec<String>,
    /// What of the Skill does not hold as it is written, a sentence each; at most [`MAX_REMARKS`] of at most [`MAX_REMARK`] bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What was spent.
    pub usage: Usage,
    /// How far the log is.
    pub log: LogPosition,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A call that waits for people, as they are shown it; who they are stands in `projection.waitingFor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hold {
    /// The id of the call.
    pub call: String,
    /// Its exact arguments, as canonical JSON.
    pub arguments: String,
    /// Every rule that holds it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<HoldRule>,
    /// What is to be reached.
    pub goal: String,
    /// The last events before it, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// How many seconds an approval stays open, where the Skill says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry_seconds: Option<u64>,
}

/// How many remarks a projection holds.
pub const MAX_REMARKS: usize = 8;

/// How many names of tools a projection holds.
pub const MAX_TOOL_NAMES: usize = ToolName::MAX_NAMES;

/// The longest name of a tool, in bytes.
pub const MAX_TOOL_NAME: usize = ToolName::MAX_TOOL;

/// The longest remark, in bytes.
pub const MAX_REMARK: usize = 256;

/// The most that a projection holds of the entities of a goal, in bytes of JSON: larger ones are left out whole.
pub const MAX_ENTITIES: usize = 2048;

/// The most that a projection holds of an answer's fields, in bytes of JSON: larger ones are left out whole.
pub const MAX_FIELDS: usize = 4096;

/// Something outside that a worker waits for, bounded in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "for")]
pub enum Waiting {
    /// A key of a Secret that is not there.
    SecretMissing {
        /// Name of the Secret.
        name: String,
        /// The key.
        key: String,
    },
    /// The MCP server does not answer.
    McpUnavailable {
        /// What the last try said.
        message: String,
    },
    /// The model does not answer, or refuses to.
    ModelUnavailable {
        /// What the last try said.
        message: String,
    },
}

/// How a pod ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// With the outcome in the projection.
    Finished,
    /// With its log written; the Job goes on in a new pod.
    Parked(ParkReason),
    /// Another attempt has taken the log over; this one says nothing about the Job.
    Superseded,
}

/// Why a worker parks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
pub enum ParkReason {
    /// The pod was asked to stop: a drain, a preemption, a deletion.
    Drain,
    /// A call waits until a person has decided.
    Approval,
    /// A question waits until a person has answered.
    Reply,
    /// The namespace is suspended: no pod of it runs until that is over.
    Suspension,
}

/// What the operator answers to every report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Directives {
    /// How many events of the log are safely in `Job.status`.
    pub ack: u64,
    /// Whether the Job is to end as cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// Whether the Job is to end because its Skill was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skill_deleted: bool,
    /// Whether the worker is to park: the namespace is suspended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub park: bool,
    /// What people have said that the report's `repliesHeard` does not know yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<GivenReply>,
}

/// What a worker leaves behind in `/dev/termination-log`; an outcome in it is final.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TerminationMessage {
    /// Which Job, by UID.
    pub job: String,
    /// Which attempt.
    pub attempt: u32,
    /// The epoch that the worker claimed; absent where it claimed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// How the pod ended.
    pub end: End,
    /// The outcome, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How far the log is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPosition>,
    /// What was spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The questions that wait for a person, where the pod ended because of them and the message holds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AskedQuestion>,
    /// How many of the Job's replies the conversation has heard.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replies_heard: u32,
    /// Whether the operator had acknowledged all of it.
    pub acked: bool,
}

impl TerminationMessage {
    /// Writes the message so that it fits what the kubelet keeps: the sentence for people is shortened, and questions are left
    /// out, which the log has.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let text = serde_json::to_string(self)?;
        if text.len() <= MAX_TERMINATION_MESSAGE {
            return Ok(text);
        }
        let mut short = self.clone();
        if let Some(outcome) = &mut short.outcome {
            outcome.message = bounded(&outcome.message, 256);
        }
        short.questions = Vec::new();
        serde_json::to_string(&short)
    }

    /// Reads a message; none for text that is not ours, such as a log tail.
    pub fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// The digest of a whole answer: of its text and of its fields.
pub fn result_digest(text: &str, fields: &serde_json::Map<String, serde_json::Value>) -> Digest {
    Digest::of_value(&serde_json::json!({ "text": text, "fields": fields }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::OutcomeCode;

    #[test]
    fn a_termination_message_fits_and_comes_back() {
        let message = TerminationMessage {
            job: "u".repeat(36),
            attempt: 3,
            epoch: Some(3),
            end: End::Finished,
            // Every character of the sentence is escaped to six bytes.
            outcome: Some(Outcome::new(OutcomeCode::GateFailed, "\u{1}".repeat(1024))),
            log: Some(LogPosition { path: "jobs/x".into(), events: 9, head: Digest::of_bytes(b"") }),
            usage: Some(Usage::default()),
            questions: Vec::new(),
            replies_heard: 2,
            acked: false,
        };
        let text = message.to_text().unwrap();
        assert!(text.len() <= MAX_TERMINATION_MESSAGE, "{}", text.len());
        assert_eq!(TerminationMessage::from_text(&text).unwrap().outcome.unwrap().code, OutcomeCode::GateFailed);
        assert_eq!(TerminationMessage::from_text("thread main panicked"), None);
    }

    #[test]
    fn questions_stand_in_a_termination_message_as_long_as_it_holds_them_all() {
        let asks = |text: &str, count: usize| {
            let question = AskedQuestion { id: "q-1".into(), text: text.into(), ..AskedQuestion::default() };
            let message = TerminationMessage {
                job: "u".repeat(36),
                attempt: 3,
                epoch: Some(3),
                end: End::Parked(ParkReason::Reply),
                outcome: None,
                log: Some(LogPosition { path: "jobs/x".into(), events: 9, head: Digest::of_bytes(b"") }),
                usage: Some(Usage::default()),
                questions: vec![question; count],
                replies_heard: 32,
                acked: false,
            };
            let text = message.to_text().unwrap();
            assert!(text.len() <= MAX_TERMINATION_MESSAGE, "{}", text.len());
            let read = TerminationMessage::from_text(&text).unwrap();
            assert_eq!((read.replies_heard, &read.end), (32, &message.end));
            read.questions.len()
        };
        assert_eq!(asks("Which order?", 8), 8);
        assert_eq!(asks(&"t".repeat(1024), 3), 3);
        assert_eq!(asks(&"t".repeat(1024), 8), 0);
        assert_eq!(asks(&"\u{1}".repeat(1024), 1), 0);
    }
}
