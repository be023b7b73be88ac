//! The steps that the engine asks the driver to perform.

use crate::event::{CallId, Event};
use crate::history::Turn;
use crate::offload::Offload;
use crate::people::HumanRequest;
use crate::rules::limits::Reservation;
use crate::stage_prompt::AnswerSchema;
use crate::tool::{CatalogueTool, ToolSource};
use bloomery_crds::Digest;
use bloomery_crds::children::ChildRequest;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::v1alpha1::Stage;
use std::borrow::Cow;

/// The next step of a conversation. A driver must handle every step.
#[derive(Debug, PartialEq)]
pub enum Step<'a> {
    /// Record these events, then ask for the next step.
    Record(Vec<Event>),
    /// List the tools of the MCP server (none if the Skill has no server), then record the event that [`fix_catalogue`]
    /// returns for them.
    ///
    /// [`fix_catalogue`]: crate::catalogue::fix_catalogue
    ListTools,
    /// Gather the summaries of the bound file systems, the notes of the memory bank, and the earlier conversation. Record
    /// [`Event::ContextGathered`]. A part that cannot be gathered is recorded with its fault.
    GatherContext,
    /// Record [`Event::ModelRequested`] with this reserve, make everything durable, call the model, and record
    /// [`Event::ModelAnswered`] or [`Event::ModelFailed`].
    CallModel(ModelRequest<'a>),
    /// Store each of these results in the focus cache, durably. Record [`Event::ResultOffloaded`] for each.
    Offload(Vec<Offload<'a>>),
    /// Make everything durable, show people all requests at once, and record the first statement. Where people cannot be
    /// asked, record [`Event::Parked`] and end the pod.
    AskPeople(Vec<HumanRequest<'a>>),
    /// Make everything durable, make all of these calls at once, and record the outcome of each. If all of them read only inside of
    /// the pod, the events may become durable with those of the next act.
    RunReads(Vec<ToolCall<'a>>),
    /// Reserve the amounts of a call in the ledger of the Skill, durably, and record [`Event::LimitsReserved`]. If the ledger cannot be used,
    /// the answer has a fault.
    Reserve(Reservation<'a>),
    /// Make everything durable, remove a call from the ledger of the Skill, and record [`Event::LimitsReturned`].
    GiveBack {
        /// The id of the call.
        call: &'a CallId,
        /// The key of the call.
        key: Digest,
    },
    /// Record [`Event::ToolStarted`], make everything durable, make the call, record its outcome, and make that durable.
    RunEffect(ToolCall<'a>),
    /// Make everything durable, read the Skills that the Job may invoke, and record the events that [`start_child`] returns for them. Make
    /// these durable before the next act.
    ///
    /// [`start_child`]: crate::Conversation::start_child
    InvokeSkill(&'a CallId),
    /// Make everything durable, pass the request to the operator, and wait until the child has ended. Record the event that
    /// [`event_of`] returns for its state. If it takes too long, record [`Event::Parked`] and end the pod.
    ///
    /// [`event_of`]: crate::stages::calls::child::event_of
    AwaitChild(ChildRequest),
    /// The conversation has ended.
    Done(&'a Outcome),
}

/// A request to a model. The main loop's request borrows the history, so it is neither copied nor rendered again.
#[derive(Debug, PartialEq)]
pub struct ModelRequest<'a> {
    /// The stage of the request.
    pub stage: Stage,
    /// The name of the Model.
    pub model: &'a str,
    /// The system prompt.
    pub system: Cow<'a, str>,
    /// The turns so far.
    pub turns: Cow<'a, [Turn]>,
    /// The version of the turns. Within one version, turns are only added: each request begins with the previous one.
    pub turns_version: u32,
    /// The tools that the model sees.
    pub tools: &'a [CatalogueTool],
    /// The sampling temperature; the provider's default if none.
    pub temperature: Option<f64>,
    /// The schema of the answer, if it must be JSON. The prompt describes it too, for a model without structured output.
    pub answer_schema: Option<AnswerSchema>,
    /// The tokens to reserve.
    pub reserve: u64,
}

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall<'a> {
    /// The id of the call.
    pub id: &'a CallId,
    /// The tool's name, as its server or the worker knows it.
    pub tool: &'a str,
    /// The canonical arguments that the gate ruled on.
    pub arguments: &'a str,
    /// `_meta["bloomery.dev/callKey"]`: the same on every retry.
    pub key: Digest,
    /// Whether the call may be sent again after its answer was lost.
    pub idempotent: bool,
    /// Whether the call changes nothing.
    pub read_only: bool,
    /// Whether an earlier try of this call with effect may have reached the server. If this try cannot be sent, the outcome
    /// is then unknown, not failed.
    pub sent_before: bool,
    /// Whether the MCP server or the worker performs the call.
    pub source: ToolSource,
    /// The digest of the tool's fixed definition. A tool with another definition is not called.
    pub definition: &'a Digest,
    /// The time limit of the call, in seconds, if the Skill sets one.
    pub timeout_seconds: Option<u64>,
}

/// Returns the event that ends a conversation because a server or a resource that it needs is unavailable.
pub fn unavailable(code: OutcomeCode, message: impl AsRef<str>) -> Event {
    Event::Finished { outcome: Outcome::new(code, message), result: None }
}
