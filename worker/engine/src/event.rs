//! Everything that can happen to a conversation, in the past tense (`docs/explanation/engine.md`, section 1).
//!
//! The names and fields are a log format: a field is added with a default, never renamed, and a log that an
//! earlier version wrote stays readable.

mod answer;
mod call;
mod context;
mod directive;
mod person;
mod resource;
mod result;
mod ruling;
mod selection;
mod told;

pub use answer::{Answer, AskedCall, ModelFailure};
pub use call::{Arguments, CallId, RulingReason};
pub use context::{ContextKind, ContextPart};
pub use directive::Directive;
pub use person::{About, Decision, QuestionId, UserQuestion};
pub use resource::BoundName;
pub use result::WholeResult;
pub use ruling::{FinalRuling, Polish};
pub use selection::Selector;
pub use told::Told;

use crate::tool::CatalogueTool;
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::{DetectedIntent, HeldCall, Stage, Verdict};
use serde::{Deserialize, Serialize};

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
        /// Every tool of the Job, hidden ones and the worker's own too.
        tools: Vec<CatalogueTool>,
    },
    /// What the Job binds is known, secrets by name only.
    #[serde(rename = "resources.bound")]
    #[strum(serialize = "resources.bound")]
    ResourcesBound {
        /// What is bound, in the order of the Skill.
        resources: Vec<BoundName>,
    },
    /// Of more tools than a prompt should hold, those that the model is shown are known.
    #[serde(rename = "tools.selected")]
    #[strum(serialize = "tools.selected")]
    ToolsSelected {
        /// Their names for the provider, beside the tools that stay in any case.
        tools: Vec<String>,
        /// Out of how many.
        of: usize,
        /// Who selected them.
        by: Selector,
    },
    /// What the Skill wants to know beforehand was gathered, as far as that could be done.
    #[serde(rename = "context.gathered")]
    #[strum(serialize = "context.gathered")]
    ContextGathered {
        /// What of it, in the order of the Skill.
        parts: Vec<ContextPart>,
    },
    /// It is known which intent the goal means.
    #[serde(rename = "intent.detected")]
    #[strum(serialize = "intent.detected")]
    IntentDetected {
        /// The intent, or that it is none of the Skill's.
        intent: DetectedIntent,
        /// Required entities that the goal does not name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
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
        /// For which stage.
        #[serde(default)]
        stage: Stage,
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
        /// What the provider or the transport said, or what is wrong with the answer: redacted and bounded.
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
    /// A call waits until a person has decided.
    #[serde(rename = "tool.held")]
    #[strum(serialize = "tool.held")]
    ToolHeld {
        /// The call, as the person is asked about it.
        held: HeldCall,
    },
    /// A person lets a held call be made, for one of its approvers.
    #[serde(rename = "tool.approved")]
    #[strum(serialize = "tool.approved")]
    ToolApproved {
        /// Which call.
        call: CallId,
        /// Digest of the arguments that the person saw: it approves no others.
        digest: Digest,
        /// Whose decision it is.
        #[serde(flatten)]
        decision: Decision,
    },
    /// A person does not let a held call be made, for one of its approvers.
    #[serde(rename = "tool.denied")]
    #[strum(serialize = "tool.denied")]
    ToolDenied {
        /// Which call.
        call: CallId,
        /// Whose decision it is.
        #[serde(flatten)]
        decision: Decision,
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
    /// The server told how far a call is, or what it wrote to its log meanwhile.
    #[serde(rename = "tool.progressed")]
    #[strum(serialize = "tool.progressed")]
    ToolProgressed {
        /// Which call.
        call: CallId,
        /// What it told.
        told: Told,
    },
    /// A listing differs from the tools that were fixed: those that changed or are gone are denied from now on.
    #[serde(rename = "catalogue.drifted")]
    #[strum(serialize = "catalogue.drifted")]
    CatalogueDrifted {
        /// Tools of which the server says something else now, or that it lists more than once, by its names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        /// Tools that it does not list any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
        /// Tools that it did not list before, some of them where there are many. They are not offered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<String>,
    },
    /// A result was put aside: the model sees an excerpt, and can read the rest by the handle. For a call that is
    /// under way this is its answer; for an earlier one it takes the place of what stood in the history.
    #[serde(rename = "result.offloaded")]
    #[strum(serialize = "result.offloaded")]
    ResultOffloaded {
        /// Which call.
        call: CallId,
        /// Names the whole in the focus cache: the digest of its content.
        handle: Digest,
        /// How large the whole is.
        bytes: u64,
        /// What the model sees of it.
        excerpt: String,
    },
    /// A step of a workflow was closed: one that is no tool, or one that does not apply.
    #[serde(rename = "subgoal.done")]
    #[strum(serialize = "subgoal.done")]
    SubgoalDone {
        /// The step's id, `sg_<workflow>_<n>`.
        step: String,
        /// The line of the log that shows it: a tool's answer.
        evidence: u64,
        /// It turned out not to apply.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        not_applicable: bool,
    },
    /// A person is asked.
    #[serde(rename = "user.asked")]
    #[strum(serialize = "user.asked")]
    UserAsked {
        /// The question.
        question: UserQuestion,
        /// What it is about.
        about: About,
    },
    /// A person has answered a question.
    #[serde(rename = "user.replied")]
    #[strum(serialize = "user.replied")]
    UserReplied {
        /// Which question.
        question: QuestionId,
        /// The answer.
        text: String,
        /// Who the person is.
        by: String,
        /// Its place among the replies of the Job's spec, from 1; none where it did not come from there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nth: Option<u32>,
    },
    /// A person says something without being asked.
    #[serde(rename = "user.message")]
    #[strum(serialize = "user.message")]
    UserMessage {
        /// What the person says.
        text: String,
        /// Who the person is.
        by: String,
        /// Its place among the replies of the Job's spec, from 1; none where it did not come from there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nth: Option<u32>,
    },
    /// The finalization gate has ruled on an answer.
    #[serde(rename = "gate.ruled")]
    #[strum(serialize = "gate.ruled")]
    GateRuled {
        /// What it said.
        ruling: FinalRuling,
    },
    /// The reply polisher is done with an answer that passed.
    #[serde(rename = "reply.polished")]
    #[strum(serialize = "reply.polished")]
    ReplyPolished {
        /// What became of it.
        polish: Polish,
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
    /// The operator has said what is to become of the run.
    #[serde(rename = "directive.received")]
    #[strum(serialize = "directive.received")]
    DirectiveReceived {
        /// What.
        directive: Directive,
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
