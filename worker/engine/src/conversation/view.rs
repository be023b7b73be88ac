//! Read access to a conversation, for drivers and projections.

use super::Conversation;
use crate::budget::Budget;
use crate::event::{CallId, Event, FullResult};
use crate::history::Turn;
use crate::people::{self, Statement};
use crate::run::Run;
use crate::stages::approval;
use crate::stages::attachment;
use crate::stages::calls::gate::Gate;
use crate::stages::calls::{Call, ScriptEnds, child};
use crate::stages::questions::Questions;
use crate::tool::{CatalogueTool, ListedTool};
use bloomery_crds::children::VisibleSkill;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;
use serde_json::Value;

impl Conversation {
    /// The inputs of the conversation.
    pub fn run(&self) -> &Run {
        &self.shared.run
    }

    /// The number of events.
    pub fn events(&self) -> u64 {
        self.shared.seq
    }

    /// The latest epoch; 0 before the first.
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// Returns whether the tools are fixed.
    pub fn has_catalogue(&self) -> bool {
        self.shared.catalogue.is_fixed()
    }

    /// The tools that the model sees.
    pub fn visible_tools(&self) -> &[CatalogueTool] {
        self.shared.catalogue.visible()
    }

    /// Compares a new listing of the server's tools with the fixed ones. Returns the event of the differences that are
    /// not recorded yet.
    pub fn compare_tools(&self, listed: &[ListedTool]) -> Option<Event> {
        self.shared.catalogue.compare(listed)
    }

    /// Returns the error in the structured output of a call, or nothing.
    pub fn output_error(&self, call: &CallId, output: Option<&Value>) -> Option<String> {
        self.shared.catalogue.output_error(&self.shared.calls.get(call)?.tool, output)
    }

    /// The calls of the latest answer, until all of them are settled.
    pub fn calls(&self) -> &[Call] {
        self.shared.calls.all()
    }

    /// The ends of the latest calls of scripts.
    pub fn script_ends(&self) -> &ScriptEnds {
        self.shared.calls.script_ends()
    }

    /// Returns the pre-tool gate in the present state.
    pub fn pre_tool_gate(&self) -> Gate<'_> {
        Gate::new(&self.shared)
    }

    /// Returns the events that start the child of a call under the name `job`, or the event of the call's failure. `skills` are the
    /// Skills that the Job may invoke.
    pub fn start_child(&self, call: &CallId, skills: &[VisibleSkill], job: String) -> Vec<Event> {
        child::start(call, skills, job, &self.shared)
    }

    /// The questions to people.
    pub fn questions(&self) -> &Questions {
        &self.shared.questions
    }

    /// Returns whether a statement of a person changes anything.
    pub fn is_relevant(&self, statement: &Statement) -> bool {
        people::is_relevant(statement, &self.shared)
    }

    /// The system prompt, once the conversation is open.
    pub fn system(&self) -> Option<&str> {
        self.shared.history.system()
    }

    /// The turns so far.
    pub fn turns(&self) -> &[Turn] {
        self.shared.history.turns()
    }

    /// The earlier conversation that a follow-up Job continues.
    pub fn earlier(&self) -> Option<&str> {
        self.shared.earlier.as_deref()
    }

    /// The tokens, requests and time that the conversation has spent.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// The outcome code that the Job ends with, if a person has cancelled the Job or deleted its Skill. The end is then the only
    /// step left.
    pub fn demanded_end(&self) -> Option<OutcomeCode> {
        self.ending.demanded
    }

    /// The reason why the conversation is parked, until the next epoch.
    pub fn parked(&self) -> Option<ParkReason> {
        self.ending.parked
    }

    /// The outcome of the conversation.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.ending.finished.as_ref().map(|(outcome, _)| outcome)
    }

    /// Returns whether the latest Job that uses the log is this one. A Job that does not name its run key has a log of its own.
    pub fn is_attached(&self) -> bool {
        attachment::is_attached(&self.shared)
    }

    /// Returns the outcome of a conversation that must not continue, because its log approves a call that nobody has approved, or has
    /// another goal than the Job. Nothing may be added to such a log.
    pub fn refusal(&self) -> Option<Outcome> {
        // The approvals of an earlier Job are not forged.
        let tampering = || approval::tampering(&self.shared).filter(|_| self.outcome().is_none() && self.is_attached());
        attachment::other_goal(&self.shared).or_else(tampering)
    }

    /// The answer or the draft that the conversation ended with.
    pub fn result(&self) -> Option<&FullResult> {
        self.ending.finished.as_ref().and_then(|(_, result)| result.as_ref())
    }
}
