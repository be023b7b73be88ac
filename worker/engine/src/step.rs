//! The loop's one question: what is to be done next?

mod asking;
mod calls;
mod cancelling;
mod ending;
mod finalizing;
pub(crate) mod lost;
mod opening;
mod selecting;

use crate::ask::Form;
use crate::conversation::Conversation;
use crate::event::{CallId, Event};
use crate::offload::{self, Offload};
use crate::people::Ask;
use crate::tool::{CatalogueTool, ToolSource};
use crate::turn::Turn;
use bloomery_crds::Digest;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::v1alpha1::Stage;
use std::borrow::Cow;

/// What the shell has to do next. Deliberately exhaustive: a driver must handle every step.
#[derive(Debug, PartialEq)]
pub enum Step<'a> {
    /// The engine has decided: record these events, then ask again.
    Record(Vec<Event>),
    /// List the MCP server's tools (none where the Skill has no server), then record
    /// [`fix_catalogue`](crate::conversation::fix_catalogue) of them.
    ListTools,
    /// Gather what the Skill's `context` wants of each bound file system, and the notes of the memory bank; record
    /// [`Event::ContextGathered`] of it. What cannot be gathered is recorded as a fault, and is no failure.
    GatherContext,
    /// Record [`Event::ModelRequested`] with this reserve, make everything durable, ask the model, record
    /// [`Event::ModelAnswered`] or [`Event::ModelFailed`].
    CallModel(ModelRequest<'a>),
    /// Keep each of these whole in the focus cache, durably; record [`Event::ResultOffloaded`] of each.
    Offload(Vec<Offload<'a>>),
    /// People have to decide or answer: make everything durable, then ask them all of this at once and record what the
    /// first of them says; or, where they are not asked here, record [`Event::Parked`] and end the pod.
    AskPeople(Vec<Ask<'a>>),
    /// Make everything durable, make all of these calls at once, record the outcome of each.
    RunReads(Vec<ToolCall<'a>>),
    /// Record [`Event::ToolStarted`], make everything durable, make the call, record its outcome, make that durable.
    RunEffect(ToolCall<'a>),
    /// The conversation has ended.
    Done(&'a Outcome),
}

/// A request to a model. That of the main loop is borrowed: the history is neither copied nor rendered anew.
#[derive(Debug, PartialEq)]
pub struct ModelRequest<'a> {
    /// The stage that asks.
    pub stage: Stage,
    /// The name of the Model that is asked.
    pub model: &'a str,
    /// The system prompt.
    pub system: Cow<'a, str>,
    /// The turns so far.
    pub turns: Cow<'a, [Turn]>,
    /// Which history the turns are of. Within one, turns are only added: a request begins as the one before it did.
    pub history: u32,
    /// The tools that the model sees.
    pub tools: &'a [CatalogueTool],
    /// The sampling temperature, where there is one to set.
    pub temperature: Option<f64>,
    /// The JSON that the answer must be, where it must be one. The prompt says so too, for a model that cannot be held
    /// to it.
    pub form: Option<Form>,
    /// Tokens to set aside.
    pub reserve: u64,
}

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall<'a> {
    /// Which call.
    pub id: &'a CallId,
    /// The tool's name, as who answers it knows it.
    pub tool: &'a str,
    /// The canonical arguments that were ruled on.
    pub arguments: &'a str,
    /// `_meta["bloomery.dev/callKey"]`: the same on every retry.
    pub key: Digest,
    /// Whether a call whose answer was lost may be sent again.
    pub idempotent: bool,
    /// Whether the call changes nothing.
    pub read_only: bool,
    /// Whether it was sent before, or may have been, and nobody knows what came of that: then it has not failed where it
    /// is not sent now.
    pub sent_before: bool,
    /// Who answers it.
    pub source: ToolSource,
    /// What its server said of the tool when it was fixed: one that differs is not called.
    pub definition: &'a Digest,
    /// How many seconds it may take, where the Skill says so.
    pub timeout_seconds: Option<u64>,
}

/// Says what is to be done next. Replaying the log leads to the same step.
pub fn next(conversation: &Conversation) -> Step<'_> {
    if let Some(outcome) = conversation.outcome() {
        return Step::Done(outcome);
    }
    // Before any question: nobody is to find anything out for a Job that is over.
    if let Some(code) = conversation.to_end() {
        return Step::Record(cancelling::end(conversation, code));
    }
    if let Some(step) = lost::next(conversation) {
        return step;
    }
    if let Some(end) = ending::due(conversation) {
        return Step::Record(vec![end]);
    }
    if !conversation.has_catalogue() {
        return Step::ListTools;
    }
    if let Some(step) = opening::next(conversation).or_else(|| selecting::next(conversation)) {
        return step;
    }
    if let Some(step) = calls::next(conversation).or_else(|| finalizing::next(conversation)) {
        return step;
    }
    let sweep = offload::due(conversation);
    if !sweep.is_empty() {
        return Step::Offload(sweep);
    }
    asking::plan(conversation)
}

/// The end of a conversation whose worker cannot go on: what it needs does not answer.
pub fn unavailable(code: OutcomeCode, message: impl AsRef<str>) -> Event {
    Event::Finished { outcome: Outcome::new(code, message), result: None }
}
