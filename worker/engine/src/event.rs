//! The events of a conversation, named in the past tense (`docs/explanation/engine.md`, section 1).
//!
//! The names and fields are a log format. A new field has a default, no field is renamed, and logs of earlier versions stay
//! readable.

mod call;
mod child;
mod input;
mod model;
mod people;
mod result;

pub use call::{Arguments, CallId, LimitUse, ReservationAnswer, RulingReason, ToolProgress};
pub use child::ChildEnd;
pub use input::{ContextKind, ContextPart, Directive, ResourceSummary};
pub use model::{Answer, ModelFailure, RequestedCall, SelectedBy};
pub use people::{Decision, QuestionId, QuestionSubject, UserQuestion};
pub use result::{FinalizationRuling, FullResult, PolishOutcome};

use crate::tool::CatalogueTool;
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;
use bloomery_crds::tool_pins::ToolChange;
use bloomery_crds::v1alpha1::{DetectedIntent, FeatureResult, HeldCall, Limits, Stage, ToolPolicy, Usage, Verdict};
use serde::{Deserialize, Serialize};

/// The remedy for a reached limit, in the message of an outcome. A host replaces it if another place has set the limit.
pub const RAISE_LIMIT: &str = "Raise it in the Skill";

/// An event. Serialized as `{"type": "tool.started", "data": {...}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "type", content = "data", rename_all_fields = "camelCase")]
pub enum Event {
    /// A worker has claimed the log. The event is the first line of a segment: the worker claims the log when it links the
    /// segment into place.
    #[serde(rename = "epoch.started")]
    #[strum(serialize = "epoch.started")]
    EpochStarted {
        /// One more than the last epoch in the log, from 1.
        epoch: u64,
        /// The number of the pod, counted by the operator.
        attempt: u32,
        /// True if the pod of the previous attempt was disrupted: deleted, evicted, preempted or lost with its node.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        after_disruption: bool,
    },
    /// A Job that names its run key uses the log from now on. An earlier Job with the same key may have written the events before.
    /// Approvals and the numbers of replies are those of one Job, so those before this event do not count any more.
    #[serde(rename = "job.attached")]
    #[strum(serialize = "job.attached")]
    JobAttached {
        /// The UID of the Job.
        job: String,
    },
    /// The tools of the Job were listed. They are fixed from now on.
    #[serde(rename = "catalogue.fixed")]
    #[strum(serialize = "catalogue.fixed")]
    CatalogueFixed {
        /// Every tool of the Job, with hidden tools and core tools.
        tools: Vec<CatalogueTool>,
    },
    /// The resources of the Job were bound. Secrets appear by name only.
    #[serde(rename = "resources.bound")]
    #[strum(serialize = "resources.bound")]
    ResourcesBound {
        /// The bound resources, in the order of the Skill.
        resources: Vec<ResourceSummary>,
    },
    /// The tools that the model sees were selected, because the Job has more tools than a prompt should hold.
    #[serde(rename = "tools.selected")]
    #[strum(serialize = "tools.selected")]
    ToolsSelected {
        /// The aliases of the selected tools. Tools that are always visible are not listed.
        tools: Vec<String>,
        /// The number of tools to select from.
        #[serde(rename = "of")]
        total: usize,
        /// The origin of the selection.
        by: SelectedBy,
    },
    /// The context that the Skill asks for was gathered.
    #[serde(rename = "context.gathered")]
    #[strum(serialize = "context.gathered")]
    ContextGathered {
        /// The parts, in the order of the Skill.
        parts: Vec<ContextPart>,
    },
    /// The intent of the goal was detected.
    #[serde(rename = "intent.detected")]
    #[strum(serialize = "intent.detected")]
    IntentDetected {
        /// The intent, or the result that the goal is out of the Skill's domain.
        intent: DetectedIntent,
        /// The required entities that the goal does not name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
    },
    /// The system prompt was rendered. It is never rendered again.
    #[serde(rename = "conversation.opened")]
    #[strum(serialize = "conversation.opened")]
    ConversationOpened {
        /// The key of the run: it names the log, and is part of the key of each tool call.
        run_key: String,
        /// The digest of the Skill's revision.
        revision: Digest,
        /// The exact system prompt.
        system: String,
        /// The goal, which is the first turn of the user.
        goal: String,
        /// The limits at the start.
        limits: EffectiveLimits,
    },
    /// A request to a model is about to be sent.
    #[serde(rename = "model.requested")]
    #[strum(serialize = "model.requested")]
    ModelRequested {
        /// The tokens reserved for the request, until the provider's count arrives with the answer. If the provider does not serve the
        /// request, they are free again.
        reserve: u64,
        /// The stage of the request.
        #[serde(default)]
        stage: Stage,
    },
    /// The model answered.
    #[serde(rename = "model.answered")]
    #[strum(serialize = "model.answered")]
    ModelAnswered {
        /// The answer.
        answer: Answer,
    },
    /// The request to the model has no usable answer.
    #[serde(rename = "model.failed")]
    #[strum(serialize = "model.failed")]
    ModelFailed {
        /// The kind of failure.
        kind: ModelFailure,
        /// The message of the provider or the transport, or the error in the answer: redacted and cut to its limit.
        message: String,
    },
    /// The model requested a tool call.
    #[serde(rename = "tool.requested")]
    #[strum(serialize = "tool.requested")]
    ToolRequested {
        /// The id of the call.
        call: CallId,
        /// The tool, as the model named it.
        tool: String,
        /// The canonical arguments, or the reason why there are none.
        arguments: Arguments,
    },
    /// The pre-tool gate ruled on a call.
    #[serde(rename = "tool.ruled")]
    #[strum(serialize = "tool.ruled")]
    ToolRuled {
        /// The id of the call.
        call: CallId,
        /// The strictest verdict of all layers.
        verdict: Verdict,
        /// Every reason for that verdict.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<RulingReason>,
    },
    /// The limits of the Job were lowered in its spec while the worker ran. Those that are lower than the current ones apply from now
    /// on. No limit rises.
    #[serde(rename = "limits.lowered")]
    #[strum(serialize = "limits.lowered")]
    LimitsLowered {
        /// The limits of the Job's spec.
        limits: Limits,
    },
    /// The Skill blocks further tools, in a later revision than that of the Job. The gate denies them from now on.
    #[serde(rename = "tools.blocked")]
    #[strum(serialize = "tools.blocked")]
    ToolsBlocked {
        /// The names of tools, or prefixes of names with `*` at the end.
        tools: Vec<String>,
    },
    /// The tool policy of the tenant was changed while the worker ran. The gate denies the tools that it denies from now on, and those that
    /// an earlier policy of this Job denied.
    #[serde(rename = "tools.restricted")]
    #[strum(serialize = "tools.restricted")]
    ToolsRestricted {
        /// The policy.
        policy: ToolPolicy,
    },
    /// The amounts of a call were to be reserved in the ledger of the Skill, for the limits with a window.
    #[serde(rename = "limits.reserved")]
    #[strum(serialize = "limits.reserved")]
    LimitsReserved {
        /// The id of the call.
        call: CallId,
        /// The answer of the ledger.
        #[serde(flatten)]
        answer: ReservationAnswer,
    },
    /// The amounts of a call that is known not to have happened were returned to the ledger of the Skill.
    #[serde(rename = "limits.returned")]
    #[strum(serialize = "limits.returned")]
    LimitsReturned {
        /// The id of the call.
        call: CallId,
        /// The reason why they could not be returned. They count until the window is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<String>,
    },
    /// A call is held until people decide.
    #[serde(rename = "tool.held")]
    #[strum(serialize = "tool.held")]
    ToolHeld {
        /// The call as `Job.status` shows it.
        held: HeldCall,
    },
    /// A person approved a held call for one of its approvers.
    #[serde(rename = "tool.approved")]
    #[strum(serialize = "tool.approved")]
    ToolApproved {
        /// The id of the call.
        call: CallId,
        /// The digest of the arguments that the person saw. The approval is valid for these arguments only.
        digest: Digest,
        /// The decision.
        #[serde(flatten)]
        decision: Decision,
    },
    /// A person denied a held call for one of its approvers.
    #[serde(rename = "tool.denied")]
    #[strum(serialize = "tool.denied")]
    ToolDenied {
        /// The id of the call.
        call: CallId,
        /// The decision.
        #[serde(flatten)]
        decision: Decision,
    },
    /// A call was skipped, because an earlier call was not completed.
    #[serde(rename = "tool.skipped")]
    #[strum(serialize = "tool.skipped")]
    ToolSkipped {
        /// The id of the call.
        call: CallId,
        /// The id of the earlier call.
        because: CallId,
    },
    /// A call is about to be sent.
    #[serde(rename = "tool.started")]
    #[strum(serialize = "tool.started")]
    ToolStarted {
        /// The id of the call.
        call: CallId,
    },
    /// A call completed.
    #[serde(rename = "tool.completed")]
    #[strum(serialize = "tool.completed")]
    ToolCompleted {
        /// The id of the call.
        call: CallId,
        /// The result as text for the model, cut to its limit.
        text: String,
    },
    /// A call failed: its result is an error, or no byte of the call was sent.
    #[serde(rename = "tool.failed")]
    #[strum(serialize = "tool.failed")]
    ToolFailed {
        /// The id of the call.
        call: CallId,
        /// The error, for the model.
        text: String,
    },
    /// A call was sent, and its outcome is unknown.
    #[serde(rename = "tool.indeterminate")]
    #[strum(serialize = "tool.indeterminate")]
    ToolIndeterminate {
        /// The id of the call.
        call: CallId,
        /// The reason why the outcome is unknown.
        text: String,
    },
    /// A child is about to be requested for a call. Its limits are reserved from those of the Job.
    #[serde(rename = "child.started")]
    #[strum(serialize = "child.started")]
    ChildStarted {
        /// The id of the call.
        call: CallId,
        /// The name of the child.
        job: String,
        /// The name of its Skill.
        skill: String,
        /// Its limits.
        limits: Limits,
    },
    /// The child of a call has ended. The end is the result of the call.
    #[serde(rename = "child.completed")]
    #[strum(serialize = "child.completed")]
    ChildCompleted {
        /// The id of the call.
        call: CallId,
        /// The end of the child.
        #[serde(flatten)]
        end: ChildEnd,
    },
    /// The server reported the progress of a call, or sent a line of its log.
    #[serde(rename = "tool.progressed")]
    #[strum(serialize = "tool.progressed")]
    ToolProgressed {
        /// The id of the call.
        call: CallId,
        /// The progress, or the line of the log.
        #[serde(rename = "told")]
        progress: ToolProgress,
    },
    /// A listing differs from the fixed tools. The gate denies calls of changed and missing tools from now on.
    #[serde(rename = "catalogue.drifted")]
    #[strum(serialize = "catalogue.drifted")]
    CatalogueDrifted {
        /// The tools whose definition changed, or that the server lists more than once, by the server's names.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        /// The tools that the server no longer lists.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
        /// New tools, up to a limit. The model does not see them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<String>,
    },
    /// Tools of the listing differ from those that are pinned for the Skill. The gate denies their calls.
    #[serde(rename = "catalogue.unpinned")]
    #[strum(serialize = "catalogue.unpinned")]
    CatalogueUnpinned {
        /// The tools, by the server's names, and what differs.
        tools: Vec<ToolChange>,
    },
    /// A result was offloaded: the model sees an excerpt, and reads the rest with the handle. The excerpt is the result of
    /// a call that is under way, or replaces the result of an earlier call in the history.
    #[serde(rename = "result.offloaded")]
    #[strum(serialize = "result.offloaded")]
    ResultOffloaded {
        /// The id of the call.
        call: CallId,
        /// The handle of the whole result in the focus cache: the digest of its content.
        handle: Digest,
        /// The size of the whole result, in bytes.
        bytes: u64,
        /// The excerpt that the model sees.
        excerpt: String,
    },
    /// The model closed a workflow step that is not a tool, or that does not apply.
    #[serde(rename = "subgoal.done")]
    #[strum(serialize = "subgoal.done")]
    SubgoalDone {
        /// The step's id, `sg_<workflow>_<n>`.
        step: String,
        /// The `seq` of the tool result that proves it.
        evidence: u64,
        /// Whether the step does not apply.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        not_applicable: bool,
    },
    /// People were asked a question.
    #[serde(rename = "user.asked")]
    #[strum(serialize = "user.asked")]
    UserAsked {
        /// The question.
        question: UserQuestion,
        /// The subject of the question.
        about: QuestionSubject,
    },
    /// A person answered a question.
    #[serde(rename = "user.replied")]
    #[strum(serialize = "user.replied")]
    UserReplied {
        /// The id of the question.
        question: QuestionId,
        /// The answer.
        text: String,
        /// The name of the person.
        by: String,
        /// The position among the replies of the Job's spec, from 1; none if it did not come from there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nth: Option<u32>,
    },
    /// A person sent a message that answers no question.
    #[serde(rename = "user.message")]
    #[strum(serialize = "user.message")]
    UserMessage {
        /// The message.
        text: String,
        /// The name of the person.
        by: String,
        /// The position among the replies of the Job's spec, from 1; none if it did not come from there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nth: Option<u32>,
    },
    /// The finalization gate ruled on an answer.
    #[serde(rename = "gate.ruled")]
    #[strum(serialize = "gate.ruled")]
    GateRuled {
        /// The ruling.
        ruling: FinalizationRuling,
    },
    /// The polish of an answer that passed the finalization gate has ended.
    #[serde(rename = "reply.polished")]
    #[strum(serialize = "reply.polished")]
    ReplyPolished {
        /// The outcome of the polish.
        polish: PolishOutcome,
    },
    /// A feature of the Skill was tested, in a conversation with a log of its own. Only in the log of a Job that validates its Skill.
    #[serde(rename = "feature.tested")]
    #[strum(serialize = "feature.tested")]
    FeatureTested {
        /// The result.
        result: FeatureResult,
        /// The tokens and requests of the test.
        usage: Usage,
    },
    /// A limit was hit.
    #[serde(rename = "limit.hit")]
    #[strum(serialize = "limit.hit")]
    LimitHit {
        /// The outcome code of the limit.
        code: OutcomeCode,
        /// A sentence with the amount that was spent, and the limit.
        message: String,
    },
    /// The operator sent a directive.
    #[serde(rename = "directive.received")]
    #[strum(serialize = "directive.received")]
    DirectiveReceived {
        /// The directive.
        directive: Directive,
    },
    /// The worker ended its pod. The conversation continues in another pod.
    #[serde(rename = "parked")]
    #[strum(serialize = "parked")]
    Parked {
        /// The reason.
        reason: ParkReason,
    },
    /// The conversation ended.
    #[serde(rename = "finished")]
    #[strum(serialize = "finished")]
    Finished {
        /// The outcome.
        outcome: Outcome,
        /// The answer or the draft, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<FullResult>,
    },
}

impl Event {
    /// Returns the event's name, such as `tool.started`.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
