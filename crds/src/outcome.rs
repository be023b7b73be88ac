//! The phases of a Job and its outcome.

use crate::lenient;
use crate::v1alpha1::OutOfDomainAction;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

/// The phase of a Job. A Job never leaves a terminal phase.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
    EnumIter,
    IntoStaticStr,
    Default,
)]
pub enum Phase {
    /// The operator waits for an object that the Job needs, such as its Skill, a Model, or the memory claim.
    #[default]
    Pending,
    /// The Job waits for a new pod, because an earlier one parked, was lost, or crashed; or it waits in the queue, because as many Jobs
    /// run as a maximum allows.
    Queued,
    /// The pod exists, and its worker has not reported yet.
    Starting,
    /// The worker works on the goal.
    Running,
    /// A tool call waits for the decision of a person. No pod runs.
    AwaitingApproval,
    /// A question waits for the answer of a person. No pod runs.
    AwaitingReply,
    /// A Job that this one invoked has not ended. No pod runs.
    AwaitingJob,
    /// The finalization gate checks an answer of the model.
    Finalizing,
    /// The goal was reached, and the answer passed all gates.
    Succeeded,
    /// A limit, an error or a deletion ended the Job.
    Failed,
    /// No intent of the Skill covers the goal.
    Refused,
    /// The Job ended because a person has to continue its work.
    Escalated,
    /// A person cancelled the Job.
    Cancelled,
}

impl Phase {
    /// Returns whether the Job has ended.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Refused | Self::Escalated | Self::Cancelled => true,
            Self::Pending
            | Self::Queued
            | Self::Starting
            | Self::Running
            | Self::AwaitingApproval
            | Self::AwaitingReply
            | Self::AwaitingJob
            | Self::Finalizing => false,
        }
    }

    /// Returns whether the Job waits for a person, without a pod.
    pub fn awaits_people(self) -> bool {
        match self {
            Self::AwaitingApproval | Self::AwaitingReply => true,
            Self::Pending
            | Self::Queued
            | Self::Starting
            | Self::Running
            | Self::AwaitingJob
            | Self::Finalizing
            | Self::Succeeded
            | Self::Failed
            | Self::Refused
            | Self::Escalated
            | Self::Cancelled => false,
        }
    }

    /// Returns whether the Job has no pod until a person or another Job has done something.
    pub fn is_waiting(self) -> bool {
        self.awaits_people() || self == Self::AwaitingJob
    }
}

/// The reason of a terminal phase.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
    EnumIter,
    EnumString,
    IntoStaticStr,
)]
pub enum OutcomeCode {
    /// The answer passed every gate.
    ///
    /// Remedy: none.
    Succeeded,
    /// The Job needed more model calls than `limits.steps` allows.
    ///
    /// Remedy: raise `engine.limits.steps` of the Skill, or split the goal; a new Job can continue this one.
    StepLimit,
    /// The Job needed more tool calls than `limits.toolCalls` allows.
    ///
    /// Remedy: raise `engine.limits.toolCalls` of the Skill, or split the goal.
    ToolCallLimit,
    /// The tokens that the Job had spent and those that its next request needed were more than `limits.tokens`.
    ///
    /// Remedy: raise `engine.limits.tokens` of the Skill, or split the goal.
    TokenLimit,
    /// The Job spent the working time of `limits.duration`. Waiting does not count.
    ///
    /// Remedy: raise `engine.limits.duration` of the Skill, or split the goal.
    DurationLimit,
    /// The model repeated one call that kept failing.
    ///
    /// Remedy: read the log for the tool's answer; correct the tool, its description or the persona.
    Stuck,
    /// Three attempts in a row crashed, or 20 were disrupted, without progress.
    ///
    /// Remedy: read the logs and events of the Job's pods; correct the cause and create the Job again.
    CrashLoop,
    /// The MCP server did not answer.
    ///
    /// Remedy: check the server's pods and the Skill's condition `McpAvailable`; create the Job again.
    McpUnavailable,
    /// The model did not answer, or refused to.
    ///
    /// Remedy: check the Model's address, key and quota; name a `fallback`; create the Job again.
    ModelUnavailable,
    /// The Skill was deleted while the Job ran.
    ///
    /// Remedy: create the Skill and the Job again.
    SkillDeleted,
    /// No answer passed the finalization gate within its attempts.
    ///
    /// Remedy: review the draft in `status.result` and the reasons in `status.gates.finalization`.
    GateFailed,
    /// A call with an effect was sent, and its result is not known.
    ///
    /// Remedy: check in the tool's system whether the call happened before you repeat it.
    ToolIndeterminate,
    /// The Job's log has an approval that the operator has never passed to a worker.
    ///
    /// Remedy: find out who can write to the memory of the Skill, and what the log contains; create the Job again.
    LogTampered,
    /// The Job needs an answer or a decision that it did not get.
    ///
    /// Remedy: create the Job again with the missing information; the message names it.
    UserNeeded,
    /// A rule of the Skill does not fit the tools of its MCP server: it names a tool or an argument that does not exist, or compares
    /// values of different types. The Job ended before the first request to the model.
    ///
    /// Remedy: correct the rules that the message names (`bloomery lint --tools` finds all of them); `policy.allowUnmatched: true` accepts
    /// rules for tools that the server lacks; create the Job again.
    PolicyInvalid,
    /// A Job with `mode: Validate` has tested the features of its Skill, and one of them did not pass.
    ///
    /// Remedy: read the reasons in `status.features`; correct the Skill or the feature, and create another Job.
    FeatureFailed,
    /// The goal is not one of the Skill's intents. `action` is the Skill's handling of such a goal.
    ///
    /// Remedy: use a Skill that serves the goal.
    OutOfDomain,
    /// `cancel` of the Job was set. Or the operator created the Job to test a revision, and the Skill has another one now.
    ///
    /// Remedy: none.
    Cancelled,
}

/// The result of a Job: a code for programs and a message for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The reason.
    #[serde(deserialize_with = "code_or_user_needed")]
    pub code: OutcomeCode,
    /// The Skill's action for a goal that is not one of its intents. Only with `OutOfDomain`.
    #[serde(default, deserialize_with = "lenient::optional", skip_serializing_if = "Option::is_none")]
    pub action: Option<OutOfDomainAction>,
    /// A description of what happened, and a remedy.
    #[schemars(length(max = Outcome::MAX_MESSAGE_BYTES))]
    pub message: String,
}

/// Reads a code. The Job has ended, so a code of a newer version counts as one that asks for a person.
pub(crate) fn code_or_user_needed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OutcomeCode, D::Error> {
    lenient::or(deserializer, OutcomeCode::UserNeeded)
}

impl Outcome {
    /// The longest `message`, in bytes.
    pub const MAX_MESSAGE_BYTES: usize = 1024;

    /// Returns an outcome. A message of more than [`MAX_MESSAGE_BYTES`](Self::MAX_MESSAGE_BYTES) bytes is cut.
    pub fn new(code: OutcomeCode, message: impl AsRef<str>) -> Self {
        Self { code, action: None, message: crate::text::bounded(message.as_ref(), Self::MAX_MESSAGE_BYTES) }
    }

    /// Returns the outcome of a goal that is not one of the Skill's intents.
    pub fn out_of_domain(action: OutOfDomainAction, message: impl AsRef<str>) -> Self {
        Self { action: Some(action), ..Self::new(OutcomeCode::OutOfDomain, message) }
    }

    /// Returns the terminal phase of a Job with this outcome. `OutOfDomain` is `Refused` unless the action is `Escalate`.
    pub fn phase(&self) -> Phase {
        match self.code {
            OutcomeCode::Succeeded => Phase::Succeeded,
            OutcomeCode::StepLimit
            | OutcomeCode::ToolCallLimit
            | OutcomeCode::TokenLimit
            | OutcomeCode::DurationLimit
            | OutcomeCode::Stuck
            | OutcomeCode::CrashLoop
            | OutcomeCode::McpUnavailable
            | OutcomeCode::ModelUnavailable
            | OutcomeCode::SkillDeleted
            | OutcomeCode::PolicyInvalid
            | OutcomeCode::FeatureFailed => Phase::Failed,
            OutcomeCode::Cancelled => Phase::Cancelled,
            OutcomeCode::GateFailed
            | OutcomeCode::ToolIndeterminate
            | OutcomeCode::LogTampered
            | OutcomeCode::UserNeeded => Phase::Escalated,
            OutcomeCode::OutOfDomain => match self.action {
                Some(OutOfDomainAction::Escalate) => Phase::Escalated,
                Some(OutOfDomainAction::Redirect | OutOfDomainAction::Refuse) | None => Phase::Refused,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator;

    #[test]
    fn every_outcome_has_a_terminal_phase() {
        for code in OutcomeCode::iter() {
            assert!(Outcome::new(code, "").phase().is_terminal(), "{code}");
        }
    }
}
