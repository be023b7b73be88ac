//! Everything that can happen to a conversation, in the past tense (`engine.md`, section 1).
//!
//! The names and fields are a log format: a field is added with a default, never renamed, and a log that an
//! earlier version wrote stays readable.

mod result;

pub use result::WholeResult;

use crate::tool::CatalogueTool;
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::{FinalizationAttempt, GateReason, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that happened. Serialised as `{"type": "tool.started", "data": {...}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "type", content = "data", rename_all_fields = "camelCase")]
pub enum Event {
    /// A worker has claimed the log. The first line of a segment: linking it is the claim.
    #[serde(rename = "epoch.started")]
    #[strum(serialize = "epoch.started")]
    EpochStarted {
        /// One more than the last epoch in the log, from 1.
        epoch: u64,
        /// The pod that it runs in, counted by the operator.
        attempt: u32,
    },
    /// The tools of the Job were listed, and stay as they are.
    #[serde(rename = "catalogue.fixed")]
    #[strum(serialize = "catalogue.fixed")]
    CatalogueFixed {
        /// Every tool that the MCP server lists, hidden ones too.
        tools: Vec<CatalogueTool>,
    },
    /// The conversation has its prompt; it is never rendered again.
    #[serde(rename = "conversation.opened")]
    #[strum(serialize = "conversation.opened")]
    ConversationOpened {
        /// Names the log and keys tool calls.
        run_key: String,
        /// The revision of the Skill.
        revision: Digest,
        /// The exact system prompt.
        system: String,
        /// What is to be reached, as the first turn of the user.
        goal: String,
        /// The budgets at the start.
        limits: EffectiveLimits,
    },
    /// The model is about to be asked.
    #[serde(rename = "model.requested")]
    #[strum(serialize = "model.requested")]
    ModelRequested {
        /// Tokens set aside: they count as spent until the answer says better.
        reserve: u64,
    },
    /// The model has answered.
    #[serde(rename = "model.answered")]
    #[strum(serialize = "model.answered")]
    ModelAnswered {
        /// The answer.
        answer: Answer,
    },
    /// The model was asked, and there is no usable answer.
    #[serde(rename = "model.failed")]
    #[strum(serialize = "model.failed")]
    ModelFailed {
        /// What kind of failure.
        kind: ModelFailure,
        /// What the provider or the transport said, redacted and bounded.
        message: String,
    },
    /// The model asks for a tool.
    #[serde(rename = "tool.requested")]
    #[strum(serialize = "tool.requested")]
    ToolRequested {
        /// Unique within the Job.
        call: CallId,
        /// The tool, as the model named it.
        tool: String,
        /// The canonical arguments, or why there are none.
        arguments: Arguments,
    },
    /// The pre-tool gate has ruled.
    #[serde(rename = "tool.ruled")]
    #[strum(serialize = "tool.ruled")]
    ToolRuled {
        /// Which call.
        call: CallId,
        /// The strictest verdict of all layers.
        verdict: Verdict,
        /// Every reason of that rank.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<RulingReason>,
    },
    /// A call is not made, because of one before it.
    #[serde(rename = "tool.skipped")]
    #[strum(serialize = "tool.skipped")]
    ToolSkipped {
        /// Which call.
        call: CallId,
        /// Because of which call.
        because: CallId,
    },
    /// A call is about to be sent.
    #[serde(rename = "tool.started")]
    #[strum(serialize = "tool.started")]
    ToolStarted {
        /// Which call.
        call: CallId,
    },
    /// A call was answered.
    #[serde(rename = "tool.completed")]
    #[strum(serialize = "tool.completed")]
    ToolCompleted {
        /// Which call.
        call: CallId,
        /// The answer, as text for the model, bounded.
        text: String,
    },
    /// The server answered that the call failed, or no byte of it left us.
    #[serde(rename = "tool.failed")]
    #[strum(serialize = "tool.failed")]
    ToolFailed {
        /// Which call.
        call: CallId,
        /// What the model should read.
        text: String,
    },
    /// The call was sent, and nobody knows whether it happened.
    #[serde(rename = "tool.indeterminate")]
    #[strum(serialize = "tool.indeterminate")]
    ToolIndeterminate {
        /// Which call.
        call: CallId,
        /// What is known.
        text: String,
    },
    /// The finalization gate has ruled on an answer.
    #[serde(rename = "gate.ruled")]
    #[strum(serialize = "gate.ruled")]
    GateRuled {
        /// What it said.
        ruling: FinalRuling,
    },
    /// A budget is spent.
    #[serde(rename = "limit.hit")]
    #[strum(serialize = "limit.hit")]
    LimitHit {
        /// Which.
        code: OutcomeCode,
        /// What was spent of what.
        message: String,
    },
    /// The worker ends its pod; the conversation goes on in another.
    #[serde(rename = "parked")]
    #[strum(serialize = "parked")]
    Parked {
        /// Why.
        reason: ParkReason,
    },
    /// The conversation has ended.
    #[serde(rename = "finished")]
    #[strum(serialize = "finished")]
    Finished {
        /// How.
        outcome: Outcome,
        /// The answer or the draft, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<WholeResult>,
    },
}

impl Event {
    /// The event's name, such as `tool.started`.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// A tool call, unique within a Job: the `seq` of the answer that asked for it, and its place in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl CallId {
    /// Names the call at `index` of the answer logged at `seq`.
    pub fn new(seq: u64, index: usize) -> Self {
        Self(format!("{seq}-{index}"))
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The provider's own message, kept whole so that its fields survive in the history.
    pub message: Value,
    /// What it says, without calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tools that it asks for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<AskedCall>,
    /// Tokens sent, as the provider counts them; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens answered, as the provider counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The answer was cut off at the provider's or the model's length limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A tool call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedCall {
    /// The provider's id, which its history needs; not unique within a Job.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
}

/// Why there is no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelFailure {
    /// The provider answered something that cannot be read; it may be asked again.
    Unreadable,
    /// The provider did not answer, or refused, for as long as the worker was patient.
    Unavailable,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Arguments {
    /// What is ruled on and sent: canonical JSON of an object, and its digest.
    Canonical {
        /// The text.
        text: String,
        /// Its digest.
        digest: Digest,
    },
    /// What the model wrote has no canonical form.
    Malformed {
        /// Why, for the model.
        reason: String,
    },
}

/// Why the pre-tool gate ruled as it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulingReason {
    /// The layer.
    pub layer: GateReason,
    /// Why, for the model and for people.
    pub detail: String,
}

/// What the finalization gate says of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FinalRuling {
    /// The form is wrong: asked once more, and no attempt is counted.
    FormError(FinalizationAttempt),
    /// An attempt, passed or failed.
    Attempt(FinalizationAttempt),
    /// The model came back from a failed attempt without new evidence.
    NoNewEvidence,
}
