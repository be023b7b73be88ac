//! What the gates, the loop and the projections read of a conversation.

use super::{
    Budget, Call, CallState, Conversation, DEFAULT_RETRIES, Finalizing, Intention, Questions, Selecting, Stall, calls,
};
use crate::event::{CallId, ContextKind, ContextPart, ModelFailure, WholeResult};
use crate::gate::rules::Rules;
use crate::gate::schema::Schema;
use crate::run::Run;
use crate::tool::CatalogueTool;
use crate::turn::Turn;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::{HeldCall, PreTool};
use serde_json::Value;
use std::collections::BTreeMap;

impl Conversation {
    /// What the conversation was told before it started.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// How many events it has.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The last epoch in the log; 0 before the first.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The attempt of the last epoch.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Why no further worker is to be started, where epochs begin again and again without getting any further.
    pub fn stall(&self) -> Option<Stall> {
        self.barren.stall()
    }

    /// Whether the tools are fixed.
    pub fn has_catalogue(&self) -> bool {
        self.tools.is_some()
    }

    /// A tool by the name that the model uses.
    pub fn tool(&self, alias: &str) -> Option<&CatalogueTool> {
        self.tools.as_ref()?.iter().find(|tool| tool.alias == alias)
    }

    /// The tools that the model sees.
    pub fn visible(&self) -> &[CatalogueTool] {
        &self.visible
    }

    /// The compiled schema of a tool, by the name that the model uses.
    pub fn schema(&self, alias: &str) -> Option<&Schema> {
        self.schemas.arguments(self.tool(alias)?)
    }

    /// What is wrong with the structured output that answered a call, or nothing; a tool whose server lists no schema of
    /// it may have any, or none.
    pub fn output_fault(&self, call: &CallId, output: Option<&Value>) -> Option<String> {
        let call = self.calls.iter().find(|asked| &asked.id == call)?;
        let schema = self.schemas.output(self.tool(&call.tool)?)?;
        match output {
            Some(output) => schema.fault(output),
            None => Some("there is none".to_owned()),
        }
    }

    /// The compiled rules of the Skill, once the tools are fixed.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether it is on record what the Job binds.
    pub fn has_resources(&self) -> bool {
        self.resources_bound
    }

    /// What was gathered before the conversation opened, once it was.
    pub fn context(&self) -> Option<&[ContextPart]> {
        self.context.as_deref()
    }

    /// What was asked and answered in the Job that this one follows up.
    pub fn earlier(&self) -> Option<&str> {
        let part = self.context()?.iter().find(|part| part.kind == ContextKind::Earlier)?;
        part.fault.is_none().then_some(part.text.as_str())
    }

    /// How far the intent is known.
    pub fn intention(&self) -> &Intention {
        &self.intention
    }

    /// How far the selection of tools is.
    pub fn selecting(&self) -> &Selecting {
        &self.selecting
    }

    /// The call that waits for a person, the first of them.
    pub fn held(&self) -> Option<&HeldCall> {
        self.calls.iter().filter(|call| call.state == CallState::Held).find_map(|call| call.held.as_ref())
    }

    /// What the model said when it asked for the calls of its last answer.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// What people were asked.
    pub fn questions(&self) -> &Questions {
        &self.questions
    }

    /// How the Job is to end, where a person has cancelled it or deleted its Skill: nothing more is done.
    pub fn to_end(&self) -> Option<OutcomeCode> {
        self.to_end
    }

    /// Who ended it at a call that nobody knows about.
    pub fn stopped_by(&self) -> Option<&str> {
        self.stopped_by.as_deref()
    }

    /// Where the answers of calls stand in the history, those that were put aside excepted.
    pub fn results(&self) -> &BTreeMap<CallId, usize> {
        &self.results
    }

    /// How many answers there were when older results were put aside last.
    pub fn swept_at(&self) -> u32 {
        self.swept_at
    }

    /// How many results were put aside: between two such changes, the history only grows.
    pub fn put_aside(&self) -> u32 {
        self.put_aside
    }

    /// What the model said of a conversation that is longer than it takes, until it is shorter.
    pub fn too_long(&self) -> Option<&str> {
        self.too_long.as_deref()
    }

    /// The system prompt, once the conversation is open.
    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    /// The history so far.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The calls of the last answer, until all of them are settled.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// What was spent.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// How many calls were allowed.
    pub fn tool_calls(&self) -> u32 {
        self.pre_tool.allowed
    }

    /// What the pre-tool gate decided.
    pub fn pre_tool(&self) -> &PreTool {
        &self.pre_tool
    }

    /// How far the finalization is.
    pub fn finalization(&self) -> &Finalizing {
        &self.finalizing
    }

    /// How often a failed answer may go back to the loop.
    pub fn retries(&self) -> u32 {
        let gate = self.run.skill.engine.as_ref().and_then(|engine| engine.finalization_gate.as_ref());
        gate.and_then(|gate| gate.max_retries).unwrap_or(DEFAULT_RETRIES)
    }

    /// The tool whose same call has failed too often.
    pub fn stuck_on(&self) -> Option<&str> {
        self.failures.iter().find(|(_, times)| **times >= calls::MAX_FAILURES).map(|((tool, _), _)| tool.as_str())
    }

    /// Why the model is given up, where it is.
    pub fn model_failure(&self) -> Option<(ModelFailure, &str)> {
        self.model_failure.as_ref().map(|(kind, message)| (*kind, message.as_str()))
    }

    /// The limit that was hit, and what was spent of it.
    pub fn limit(&self) -> Option<(OutcomeCode, &str)> {
        self.limit.as_ref().map(|(code, message)| (*code, message.as_str()))
    }

    /// Why the conversation waits for another pod, where it does.
    pub fn parked(&self) -> Option<ParkReason> {
        self.parked
    }

    /// How the conversation ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.finished.as_ref().map(|(outcome, _)| outcome)
    }

    /// The answer or the draft that it ended with.
    pub fn result(&self) -> Option<&WholeResult> {
        self.finished.as_ref().and_then(|(_, result)| result.as_ref())
    }
}
