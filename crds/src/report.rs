//! The report protocol between worker and operator (`docs/explanation/engine.md`, section 6).
//!
//! The worker posts a [`Report`], and the operator responds with [`Directives`]. Before its container ends, the worker writes a
//! [`TerminationMessage`].
//!
//! The two may be of different versions. So each ignores fields that it does not know, and reads values that it does not know as
//! the most cautious known ones where there are such.

use crate::canonical::Digest;
use crate::children::{ChildRequest, ChildState};
use crate::lenient;
use crate::outcome::{Outcome, Phase};
use crate::run::{GivenReply, JobIdentity};
use crate::text::bounded;
use crate::v1alpha1::{
    AskedQuestion, DirectoryUsage, FeatureResult, Gates, HoldRule, JobResult, Limits, LogPosition, ToolName,
    ToolPolicy, Usage, WaitingFor, WorkflowProgress, is_zero,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The path of the report endpoint.
pub const PATH: &str = "/v1/reports";

/// The largest report, in bytes. A report contains a status of up to 32 KiB, the arguments of a held call, up to 16 KiB, and the goals of
/// open children, up to 16 KiB, which escaping may enlarge.
pub const MAX_BYTES: usize = 128 * 1024;

/// The largest termination message that the kubelet keeps, in bytes.
pub const MAX_TERMINATION_MESSAGE_BYTES: usize = 4096;

/// A report about the state of a conversation. Reports are idempotent by (Job UID, epoch, `projection.log.events`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The Job.
    pub job: JobIdentity,
    /// The number of the attempt.
    pub attempt: u32,
    /// The epoch that the worker claimed.
    pub epoch: u64,
    /// The status that follows from the log.
    pub projection: Projection,
    /// The dependency that the worker waits for. A person may have to restore it.
    #[serde(default, deserialize_with = "lenient::optional", skip_serializing_if = "Option::is_none")]
    pub waiting: Option<ExternalWait>,
    /// The details of the held call, if the pod ends because of it. The operator creates Approvals with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HeldCallDetails>,
    /// The size of the Skill's directory. In one report of each measurement.
    #[serde(default, deserialize_with = "lenient::optional", skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySurvey>,
    /// The requests for the children whose ends the log lacks; at most [`MAX_OPEN_CHILDREN`](crate::children::MAX_OPEN_CHILDREN).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildRequest>,
    /// The time for which the operator may hold the report open, in seconds: until the state of one of the `children` is another one than
    /// `Running`, or another directive applies. At most [`WAIT_SECONDS`](crate::children::WAIT_SECONDS). 0 for an answer at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_seconds: u32,
    /// The end of the pod. Only in its last report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<PodEnd>,
}

/// The state of a Skill's directory, as a worker found it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemorySurvey {
    /// The sum of the sizes of all files, in bytes.
    pub bytes: u64,
    /// The part of each directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<DirectoryUsage>,
    /// The run keys of ended runs whose logs exceed the bounds of the installation; at most [`MAX_PRUNABLE`]. The operator answers
    /// which of them no Job needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prunable: Vec<String>,
}

/// The largest number of logs in a survey.
pub const MAX_PRUNABLE: usize = 64;

/// The part of `Job.status` that is a projection of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Projection {
    /// The phase. A phase that this version does not know counts as `Running`: the outcome and the end of the pod decide on the rest.
    #[serde(deserialize_with = "phase_or_running")]
    pub phase: Phase,
    /// The outcome, once the Job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// The decisions of the gates.
    pub gates: Gates,
    /// The results of the tested features, in their order; at most [`FeatureResult::MAX_RESULTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<FeatureResult>,
    /// The progress of the Skill's workflows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<WorkflowProgress>,
    /// Tools whose names the model providers do not accept; at most [`MAX_TOOL_NAMES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_names: Vec<ToolName>,
    /// The decision or the answers that the conversation waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The number of the Job's replies that the conversation has received.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replies_heard: u32,
    /// Replies that answer no open question, a sentence each; at most [`MAX_REMARKS`] of at most [`MAX_REMARK_BYTES`] bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stray_replies: Vec<String>,
    /// Parts of the Skill that do not work as written, a sentence each; at most [`MAX_REMARKS`] of at most [`MAX_REMARK_BYTES`]
    /// bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// True if the tools of the MCP server differ from those that are pinned, or have changed since the Job began. The remarks name them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tools_changed: bool,
    /// The consumed budgets.
    pub usage: Usage,
    /// The position of the log.
    pub log: LogPosition,
}

fn phase_or_running<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Phase, D::Error> {
    lenient::or(deserializer, Phase::Running)
}

/// The details of a held call that approvers see. The approvers are in `projection.waitingFor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldCallDetails {
    /// The id of the call.
    pub call: String,
    /// Its exact arguments, as canonical JSON.
    pub arguments: String,
    /// The rules that hold the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<HoldRule>,
    /// The goal of the Job.
    pub goal: String,
    /// The last events before the call, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The time until an Approval expires, in seconds, if the Skill sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry_seconds: Option<u64>,
}

/// The largest number of remarks in a projection.
pub const MAX_REMARKS: usize = 8;

/// The largest number of tool names in a projection.
pub const MAX_TOOL_NAMES: usize = ToolName::MAX_NAMES;

/// The longest name of a tool, in bytes.
pub const MAX_TOOL_NAME_BYTES: usize = ToolName::MAX_TOOL_BYTES;

/// The longest remark, in bytes.
pub const MAX_REMARK_BYTES: usize = 256;

/// The largest entities of a goal in a projection, in bytes of JSON. Larger ones are omitted.
pub const MAX_ENTITIES_BYTES: usize = 2048;

/// The largest fields of an answer in a projection, in bytes of JSON. Larger ones are omitted.
pub const MAX_FIELDS_BYTES: usize = 4096;

/// An external dependency that a worker waits for, for a bounded time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "for")]
pub enum ExternalWait {
    /// A key of a Secret does not exist.
    SecretMissing {
        /// Name of the Secret.
        name: String,
        /// The key.
        key: String,
        /// The time until which the worker waits, in seconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<i64>,
    },
    /// The MCP server does not answer.
    McpUnavailable {
        /// The error of the last attempt.
        message: String,
    },
    /// The model does not answer, or refuses to.
    ModelUnavailable {
        /// The error of the last attempt.
        message: String,
    },
}

/// The end of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodEnd {
    /// The Job has ended, with the outcome in the projection.
    Finished,
    /// The log is written, and the Job resumes in a new pod.
    Parked(ParkReason),
    /// Another attempt has claimed the log. The reports of that attempt have the state of the Job.
    Superseded,
}

/// The reason why a worker parks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::VariantNames)]
pub enum ParkReason {
    /// A call waits for the decision of a person.
    Approval,
    /// A question waits for the answer of a person.
    Reply,
    /// A child has not ended.
    Children,
    /// The namespace is suspended.
    Suspension,
    /// The pod was asked to stop, by a drain, a preemption or a deletion. A reason that this version does not know counts as this
    /// one: the next attempt reports it again.
    #[serde(other)]
    Drain,
}

/// The operator's response to a report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Directives {
    /// The number of log events that the stored `Job.status` includes.
    pub ack: u64,
    /// Ends the Job as cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// Ends the Job because its Skill was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skill_deleted: bool,
    /// Parks the worker, because the namespace is suspended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub park: bool,
    /// The replies after the `repliesHeard` of the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<GivenReply>,
    /// The run keys among the `prunable` of the report whose logs no Job needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prune: Vec<String>,
    /// The current limits of the Job's spec. A worker applies those that are lower than its own.
    #[serde(default, deserialize_with = "lenient::optional", skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The tools that `policy.tools.blocked` of the Skill names, if the Skill has another revision than the Job. A worker denies them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_tools: Vec<String>,
    /// The current tool policy of the tenant. A worker denies the tools that it denies too. `None` if it denies no tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_tools: Option<ToolPolicy>,
    /// The token for the MCP server, if the operator runs it. It replaces the one of an earlier response.
    #[serde(default, deserialize_with = "lenient::optional", skip_serializing_if = "Option::is_none")]
    pub server_token: Option<ServerToken>,
    /// The states of the `children` of the report. A state that this version does not know is omitted, so the worker waits.
    #[serde(default, deserialize_with = "lenient::items", skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildState>,
}

/// The token with which a worker authenticates to an MCP server that the operator runs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerToken {
    /// The token.
    pub token: String,
    /// The seconds for which it is still valid.
    pub valid_seconds: u64,
}

impl fmt::Debug for ServerToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is left out, so that it never reaches a log.
        formatter.debug_struct("ServerToken").field("valid_seconds", &self.valid_seconds).finish_non_exhaustive()
    }
}

/// The message that a worker writes to `/dev/termination-log` if it cannot write to the memory. An operator of an earlier version
/// reads it as a plain text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryFault {
    /// The UID of the Job.
    pub job: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The fault and the remedy, for people.
    pub not_writable: String,
}

impl MemoryFault {
    /// Parses a message. Returns `None` for other text.
    pub fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// The message that a worker writes to `/dev/termination-log`. An outcome in it is final.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminationMessage {
    /// The UID of the Job.
    pub job: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The epoch that the worker claimed, if it claimed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The end of the pod.
    pub end: PodEnd,
    /// The outcome, if the Job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The position of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPosition>,
    /// The consumed budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The open questions, if the pod ended because of them and they fit into the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AskedQuestion>,
    /// The number of the Job's replies that the conversation has received.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replies_heard: u32,
    /// True if the operator has acknowledged the final report.
    pub acked: bool,
}

impl TerminationMessage {
    /// Returns the message as JSON. If it is longer than [`MAX_TERMINATION_MESSAGE_BYTES`], the outcome's message is cut, and the
    /// questions and the usage of each Model are omitted. The log has all of them.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let text = serde_json::to_string(self)?;
        if text.len() <= MAX_TERMINATION_MESSAGE_BYTES {
            return Ok(text);
        }
        let mut short = self.clone();
        if let Some(outcome) = &mut short.outcome {
            outcome.message = bounded(&outcome.message, 256);
        }
        short.questions = Vec::new();
        if let Some(usage) = &mut short.usage {
            usage.by_model = Vec::new();
        }
        serde_json::to_string(&short)
    }

    /// Parses a message. Returns `None` for other text, for example the end of the container's log.
    pub fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Returns the digest of an answer, over its text and its fields.
pub fn result_digest(text: &str, fields: &serde_json::Map<String, serde_json::Value>) -> Digest {
    Digest::of_value(&serde_json::json!({ "text": text, "fields": fields }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::OutcomeCode;

    #[test]
    fn a_termination_message_fits_its_limit_and_can_be_read() {
        let message = TerminationMessage {
            job: "u".repeat(36),
            attempt: 3,
            epoch: Some(3),
            end: PodEnd::Finished,
            // Every character of the sentence is escaped to six bytes.
            outcome: Some(Outcome::new(OutcomeCode::GateFailed, "\u{1}".repeat(1024))),
            log: Some(LogPosition { path: "jobs/x".into(), events: 9, head: Digest::of_bytes(b"") }),
            usage: Some(Usage::default()),
            questions: Vec::new(),
            replies_heard: 2,
            acked: false,
        };
        let text = message.to_text().unwrap();
        assert!(text.len() <= MAX_TERMINATION_MESSAGE_BYTES, "{}", text.len());
        assert_eq!(TerminationMessage::from_text(&text).unwrap().outcome.unwrap().code, OutcomeCode::GateFailed);
        assert_eq!(TerminationMessage::from_text("thread main panicked"), None);
    }

    #[test]
    fn a_termination_message_contains_all_questions_or_none() {
        let kept_questions = |text: &str, count: usize| {
            let question = AskedQuestion { id: "q-1".into(), text: text.into(), ..AskedQuestion::default() };
            let message = TerminationMessage {
                job: "u".repeat(36),
                attempt: 3,
                epoch: Some(3),
                end: PodEnd::Parked(ParkReason::Reply),
                outcome: None,
                log: Some(LogPosition { path: "jobs/x".into(), events: 9, head: Digest::of_bytes(b"") }),
                usage: Some(Usage::default()),
                questions: vec![question; count],
                replies_heard: 32,
                acked: false,
            };
            let text = message.to_text().unwrap();
            assert!(text.len() <= MAX_TERMINATION_MESSAGE_BYTES, "{}", text.len());
            let read = TerminationMessage::from_text(&text).unwrap();
            assert_eq!((read.replies_heard, &read.end), (32, &message.end));
            read.questions.len()
        };
        assert_eq!(kept_questions("Which order?", 8), 8);
        assert_eq!(kept_questions(&"t".repeat(1024), 3), 3);
        assert_eq!(kept_questions(&"t".repeat(1024), 8), 0);
        assert_eq!(kept_questions(&"\u{1}".repeat(1024), 1), 0);
    }

    fn report_of_a_newer_version() -> serde_json::Value {
        serde_json::json!({
            "job": { "namespace": "acme", "name": "refund", "uid": "u", "cluster": "east" },
            "attempt": 1, "epoch": 1, "mood": "good",
            "projection": {
                "phase": "Reflecting",
                "outcome": { "code": "BudgetSpent", "message": "The budget is spent." },
                "gates": {
                    "preTool": { "allowed": 1, "denied": 0, "last": [
                        { "tool": "a", "verdict": "Vote" }, { "tool": "b", "verdict": "Deny", "rule": "Quorum" },
                    ] },
                    "finalization": { "passed": false, "attempts": [
                        { "passed": false, "suggestedAction": "REST", "reasons": [{ "code": "TOO_LONG", "detail": "" }] },
                    ] },
                },
                "usage": { "llmCalls": { "plan": 1, "reflection": 2 }, "inputTokens": 1, "outputTokens": 1, "toolCalls": 1 },
                "log": { "path": "jobs/u", "events": 9, "head": Digest::of_bytes(b"") },
                "cost": 3,
            },
            "waiting": { "for": "QuotaExhausted", "quota": "tokens" },
            "end": { "parked": "Quota" },
        })
    }

    #[test]
    fn a_child_of_an_unknown_state_is_omitted_from_directives() {
        let running = serde_json::json!({ "call": "c-1", "job": "refund-1", "state": "running" });
        let unknown = serde_json::json!({ "call": "c-2", "job": "refund-2", "state": "archived" });
        let sent = serde_json::json!({ "ack": 1, "children": [unknown, running] });
        let directives: Directives = serde_json::from_value(sent).unwrap();
        let [child] = &directives.children[..] else { panic!("{directives:?}") };
        assert_eq!(child.call, "c-1");
        assert!(serde_json::to_value(Directives::default()).unwrap().get("children").is_none());
    }

    #[test]
    fn directives_of_a_newer_version_are_followed_as_far_as_they_are_known() {
        let limits = serde_json::json!({ "steps": 3, "duration": { "work": "5m" } });
        let sent =
            serde_json::json!({ "ack": 1, "cancel": true, "quorum": 2, "limits": limits, "blockedTools": ["pay"] });
        let directives: Directives = serde_json::from_value(sent).unwrap();
        let expected = Directives { ack: 1, cancel: true, blocked_tools: vec!["pay".into()], ..Directives::default() };
        assert_eq!(directives, expected);
    }

    #[test]
    fn a_report_of_a_newer_version_is_read_cautiously() {
        let Report { projection, waiting, end, .. } = serde_json::from_value(report_of_a_newer_version()).unwrap();
        assert_eq!((projection.phase, waiting, end), (Phase::Running, None, Some(PodEnd::Parked(ParkReason::Drain))));
        let outcome = projection.outcome.unwrap();
        assert_eq!((outcome.code, outcome.message.as_str()), (OutcomeCode::UserNeeded, "The budget is spent."));
        let [ruling] = &projection.gates.pre_tool.last[..] else { panic!("{:?}", projection.gates.pre_tool.last) };
        assert_eq!((ruling.tool.as_str(), ruling.rule), ("b", None));
        let attempt = &projection.gates.finalization.attempts[0];
        assert_eq!((attempt.reasons.len(), attempt.suggested_action), (0, None));
    }

    #[test]
    fn an_unknown_end_or_rule_of_a_held_call_makes_a_report_unreadable() {
        let mut ended = report_of_a_newer_version();
        ended["end"] = serde_json::json!("forgotten");
        assert!(serde_json::from_value::<Report>(ended).is_err());
        let mut held = report_of_a_newer_version();
        let rule = serde_json::json!({ "layer": "Quorum", "text": "two of three" });
        held["hold"] = serde_json::json!({ "call": "c", "arguments": "{}", "goal": "g", "rules": [rule] });
        assert!(serde_json::from_value::<Report>(held).is_err());
    }
}
