//! The calls of one answer, from asked to settled.

use super::Hold;
use crate::event::{Arguments, AskedCall, CallId, Decision, RulingReason};
use bloomery_crds::v1alpha1::HeldCall;
use serde_json::Value;

/// How often a call that may be repeated is sent before its answer is given up.
pub(super) const MAX_TRIES: u32 = 3;

/// What is known of a call whose answer was lost, and whose tool has changed since.
pub(super) const NOT_REPEATED: &str =
    "its answer was lost, and the server has changed the tool since, so it is not sent again";

/// How often the same call may fail before the conversation is stuck.
pub(super) const MAX_FAILURES: u32 = 3;

/// A call of the last answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Unique within the Job.
    pub id: CallId,
    /// The provider's id, for the history.
    pub provider_id: String,
    /// The tool, as the model named it.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub raw_arguments: String,
    /// The secrets whose values the model wrote into them.
    pub secrets: Vec<String>,
    /// The answer was cut off at a length limit: nobody knows whether the call is whole.
    pub cut: bool,
    /// The canonical arguments, once the call is requested.
    pub arguments: Option<Arguments>,
    /// How far it is.
    pub state: CallState,
    /// What holds it.
    pub hold: Hold,
    /// The same as status tells it.
    pub held: Option<HeldCall>,
    /// How often it was sent.
    pub tries: u32,
    /// What the model reads of it, once it is settled.
    pub result: String,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// The model has asked for it.
    Asked,
    /// The gate has allowed it.
    Ruled,
    /// It waits until a person has decided.
    Held,
    /// It asks a person, whose answer is its result.
    Asking,
    /// It was sent in this epoch, or is about to be.
    Started {
        /// The epoch.
        epoch: u64,
    },
    /// Its answer was lost, and it may be sent again.
    Retry,
    /// There is one result.
    Settled(Settlement),
}

/// How a call was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The server answered it.
    Completed,
    /// The server answered that it failed, or it was never sent.
    Failed,
    /// The gate denied it.
    Denied,
    /// One before it did not come about.
    Skipped,
    /// Nobody knows whether it happened.
    Indeterminate,
}

impl Call {
    pub(super) fn asked(id: CallId, asked: &AskedCall, cut: bool) -> Self {
        Self {
            id,
            provider_id: asked.id.clone(),
            tool: asked.name.clone(),
            raw_arguments: asked.arguments.clone(),
            secrets: asked.secrets.clone(),
            cut,
            arguments: None,
            state: CallState::Asked,
            hold: Hold::default(),
            held: None,
            tries: 0,
            result: String::new(),
        }
    }

    /// What the canonical arguments say.
    ///
    /// # Errors
    /// A sentence for the model: there are none, or they have no canonical form.
    pub fn read_arguments(&self) -> Result<&Value, String> {
        match &self.arguments {
            Some(Arguments::Canonical(arguments)) => arguments.value(),
            Some(Arguments::Malformed { reason }) => Err(reason.clone()),
            None => Err("the call has no arguments on record".to_owned()),
        }
    }

    /// Whether there is a result.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, CallState::Settled(_))
    }

    /// Whether it has an effect, was sent, and has no result yet.
    pub fn is_under_way(&self, conversation: &super::Conversation) -> bool {
        let sent = matches!(self.state, CallState::Started { .. } | CallState::Retry);
        sent && !conversation.tool(&self.tool).is_some_and(|tool| tool.read_only)
    }

    /// Whether its server answered that it failed.
    pub(super) fn has_failed(&self) -> bool {
        self.state == CallState::Settled(Settlement::Failed)
    }

    /// Whether it did not come about, so that calls with effect after it are skipped.
    pub fn fell_through(&self) -> bool {
        match self.state {
            CallState::Settled(Settlement::Denied | Settlement::Failed | Settlement::Indeterminate) => true,
            CallState::Settled(Settlement::Completed | Settlement::Skipped)
            | CallState::Asked
            | CallState::Ruled
            | CallState::Held
            | CallState::Asking
            | CallState::Started { .. }
            | CallState::Retry => false,
        }
    }
}

pub(super) fn denied_text(reasons: &[RulingReason]) -> String {
    let why = reasons.iter().map(|reason| format!("{} ({})", reason.detail, reason.layer)).collect::<Vec<_>>();
    format!("Denied: {}. The call was not made.", why.join("; "))
}

/// Who denied a call, for which approver, and why.
pub(super) fn denial(decision: &Decision) -> String {
    let why = decision.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let Decision { approver, by, reason: _ } = decision;
    if by == Decision::NOBODY {
        return format!("no decision for {approver} was seen in time{why}");
    }
    format!("{by} denied it for {approver}{why}")
}

pub(super) fn denied_by_person(decision: &Decision, denial: &str) -> String {
    let whose = if decision.by == Decision::NOBODY { "Denied" } else { "Denied by a person" };
    format!("{whose}: {denial}. The call was not made.")
}

/// The model names the line of the log where it closes a step that is no tool.
pub(super) fn with_evidence(text: &str, seq: u64) -> String {
    format!("{text}\n[evidence: {seq}]")
}

pub(super) fn skipped_text(because: &CallId) -> String {
    format!("Skipped: call {because} of the same answer was not completed. This call was not made.")
}

pub(super) fn failed_text(text: &str, times: u32) -> String {
    if times + 1 < MAX_FAILURES {
        return format!("Failed: {text}");
    }
    format!(
        "Failed: {text}\nThis call has failed {times} times. One more failure ends the Job: do something else."
    )
}
