//! The loop's one question: what is to be done next?

mod calls;
mod ending;

use crate::conversation::Conversation;
use crate::event::{CallId, Event};
use crate::gate::finalization;
use crate::prompt;
use crate::tool::CatalogueTool;
use crate::turn::Turn;
use bloomery_crds::Digest;
use bloomery_crds::outcome::{Outcome, OutcomeCode};

/// What the shell has to do next. Deliberately exhaustive: a driver must handle every step.
#[derive(Debug, PartialEq)]
pub enum Step<'a> {
    /// The engine has decided: record these events, then ask again.
    Record(Vec<Event>),
    /// List the MCP server's tools (none where the Skill has no server), then record
    /// [`fix_catalogue`](crate::conversation::fix_catalogue) of them.
    ListTools,
    /// Record [`Event::ModelRequested`] with this reserve, make everything durable, ask the model, record
    /// [`Event::ModelAnswered`] or [`Event::ModelFailed`].
    CallModel(ModelRequest<'a>),
    /// Make everything durable, make all of these calls at once, record the outcome of each.
    RunReads(Vec<ToolCall<'a>>),
    /// Record [`Event::ToolStarted`], make everything durable, make the call, record its outcome, make that durable.
    RunEffect(ToolCall<'a>),
    /// The conversation has ended.
    Done(&'a Outcome),
}

/// A request to the model. Borrowed: the history is neither copied nor rendered anew.
#[derive(Debug, PartialEq)]
pub struct ModelRequest<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The turns so far.
    pub turns: &'a [Turn],
    /// The tools that the model sees.
    pub tools: &'a [CatalogueTool],
    /// The sampling temperature, where the Skill sets one.
    pub temperature: Option<f64>,
    /// Tokens to set aside.
    pub reserve: u64,
}

/// A call to make.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall<'a> {
    /// Which call.
    pub id: &'a CallId,
    /// The tool's name at the server.
    pub tool: &'a str,
    /// The canonical arguments that were ruled on.
    pub arguments: &'a str,
    /// `_meta["bloomery.dev/callKey"]`: the same on every retry.
    pub key: Digest,
    /// Whether a call whose answer was lost may be sent again.
    pub idempotent: bool,
    /// Whether the call changes nothing.
    pub read_only: bool,
}

/// Says what is to be done next. Replaying the log leads to the same step.
pub fn next(conversation: &Conversation) -> Step<'_> {
    if let Some(outcome) = conversation.outcome() {
        return Step::Done(outcome);
    }
    if let Some(events) = ending::due(conversation) {
        return Step::Record(events);
    }
    if !conversation.has_catalogue() {
        return Step::ListTools;
    }
    let Some(system) = conversation.system() else { return Step::Record(vec![opened(conversation)]) };
    if let Some(step) = calls::next(conversation) {
        return step;
    }
    if let Some(draft) = conversation.finalization().pending() {
        return Step::Record(vec![Event::GateRuled { ruling: finalization::rule(draft, conversation) }]);
    }
    if let Some(limit) = ending::spent(conversation) {
        return Step::Record(vec![limit]);
    }
    Step::CallModel(ModelRequest {
        system,
        turns: conversation.turns(),
        tools: conversation.visible(),
        temperature: conversation.run().skill.engine.as_ref().and_then(|engine| engine.temperature),
        reserve: conversation.budget().reserve(),
    })
}

/// The end of a conversation whose worker cannot go on: what it needs does not answer.
pub fn unavailable(code: OutcomeCode, message: impl AsRef<str>) -> Event {
    Event::Finished { outcome: Outcome::new(code, message), result: None }
}

fn opened(conversation: &Conversation) -> Event {
    let run = conversation.run();
    Event::ConversationOpened {
        run_key: run.run_key.clone(),
        revision: run.revision.clone(),
        system: prompt::system(run),
        goal: run.goal.clone(),
        limits: run.limits,
    }
}
