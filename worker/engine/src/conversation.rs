//! The state of a conversation: a fold of its events, and of nothing else.

mod barren;
mod budget;
mod calls;
mod finalizing;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
mod view;

pub use barren::{MAX_BARREN, Stall};
pub use budget::Budget;
pub use calls::{Call, CallState, Settlement};
pub use finalizing::{Draft, Finalizing};

use crate::event::{Answer, Arguments, CallId, Event, FinalRuling, ModelFailure, RulingReason, WholeResult};
use crate::gate::schema::Schema;
use crate::gate::{catalogue, feedback};
use crate::line::Entry;
use crate::run::Run;
use crate::tool::{CatalogueTool, ListedTool};
use crate::turn::Turn;
use barren::Barren;
use bloomery_crds::Digest;
use bloomery_crds::outcome::Outcome;
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::{PreTool, Ruling, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// How often a failed answer may go back to the loop where the Skill says nothing (seed 002, section 3.1).
const DEFAULT_RETRIES: u32 = 2;

/// How many unreadable answers in a row the model may give.
pub const MAX_UNREADABLE: u32 = 3;

/// A conversation as its log tells it.
#[derive(Debug)]
pub struct Conversation {
    run: Run,
    events: u64,
    epoch: u64,
    attempt: u32,
    barren: Barren,
    tools: Option<Vec<CatalogueTool>>,
    visible: Vec<CatalogueTool>,
    schemas: BTreeMap<String, Schema>,
    system: Option<String>,
    turns: Vec<Turn>,
    calls: Vec<Call>,
    budget: Budget,
    pre_tool: PreTool,
    evidence: BTreeSet<(String, Digest)>,
    failures: BTreeMap<(String, Digest), u32>,
    unreadable: u32,
    model_failure: Option<(ModelFailure, String)>,
    finalizing: Finalizing,
    limit: Option<(bloomery_crds::outcome::OutcomeCode, String)>,
    parked: Option<ParkReason>,
    finished: Option<(Outcome, Option<WholeResult>)>,
}

/// The event that fixes the tools of a Job, from what its MCP server lists.
pub fn fix_catalogue(run: &Run, listed: Vec<ListedTool>) -> Event {
    Event::CatalogueFixed { tools: catalogue::fix(&run.skill, listed) }
}

impl Conversation {
    /// The conversation before its first event.
    pub fn new(run: Run) -> Self {
        Self {
            run,
            events: 0,
            epoch: 0,
            attempt: 0,
            barren: Barren::default(),
            tools: None,
            visible: Vec::new(),
            schemas: BTreeMap::new(),
            system: None,
            turns: Vec::new(),
            calls: Vec::new(),
            budget: Budget::default(),
            pre_tool: PreTool::default(),
            evidence: BTreeSet::new(),
            failures: BTreeMap::new(),
            unreadable: 0,
            model_failure: None,
            finalizing: Finalizing::default(),
            limit: None,
            parked: None,
            finished: None,
        }
    }

    /// Applies one event. The only way in which a conversation changes.
    pub fn apply(&mut self, entry: &Entry) {
        self.events = entry.seq;
        self.budget.work(entry.stamp.elapsed_ms);
        self.barren.apply(&entry.event);
        match &entry.event {
            Event::EpochStarted { epoch, attempt } => self.epoch_started(*epoch, *attempt),
            Event::CatalogueFixed { tools } => self.catalogue_fixed(tools),
            Event::ConversationOpened { system, goal, .. } => self.opened(system, goal),
            Event::ModelRequested { reserve } => self.budget.requested(*reserve),
            Event::ModelAnswered { answer } => self.answered(entry.seq, answer),
            Event::ModelFailed { kind, message } => self.model_failed(*kind, message),
            Event::ToolRequested { call, arguments, .. } => self.requested(call, arguments),
            Event::ToolRuled { call, verdict, reasons } => self.ruled(call, *verdict, reasons),
            Event::ToolSkipped { call, because } => {
                self.settle(call, Settlement::Skipped, &calls::skipped_text(because));
            }
            Event::ToolStarted { call } => self.started(call),
            Event::ToolCompleted { call, text } => self.completed(call, text),
            Event::ToolFailed { call, text } => self.failed(call, text),
            Event::ToolIndeterminate { call, text } => self.indeterminate(call, text),
            Event::GateRuled { ruling } => self.gate_ruled(ruling),
            Event::LimitHit { code, message } => self.limit = Some((*code, message.clone())),
            Event::Parked { reason } => self.parked = Some(*reason),
            Event::Finished { outcome, result } => self.finished = Some((outcome.clone(), result.clone())),
        }
    }

    fn epoch_started(&mut self, epoch: u64, attempt: u32) {
        self.epoch = epoch;
        self.attempt = attempt;
        self.parked = None;
        // Patience is an epoch's own: what another pod could not reach, this one may.
        self.model_failure = None;
        self.budget.abandon_request();
    }

    fn catalogue_fixed(&mut self, tools: &[CatalogueTool]) {
        self.visible = tools.iter().filter(|tool| tool.visible).cloned().collect();
        self.schemas = tools.iter().map(|tool| (tool.alias.clone(), Schema::compile(&tool.input_schema))).collect();
        self.budget
            .read(self.visible.iter().map(|tool| tool.description.len() + tool.input_schema.to_string().len()).sum());
        self.tools = Some(tools.to_vec());
    }

    fn opened(&mut self, system: &str, goal: &str) {
        self.budget.read(system.len());
        self.system = Some(system.to_owned());
        self.say(Turn::User(goal.to_owned()));
    }

    fn answered(&mut self, seq: u64, answer: &Answer) {
        self.unreadable = 0;
        self.budget.answered(answer);
        self.say(Turn::Assistant(answer.message.clone()));
        if answer.calls.is_empty() {
            self.finalizing.drafted(Draft { text: answer.text.clone(), cut: answer.cut });
        } else {
            let asked = answer.calls.iter().enumerate();
            self.calls = asked.map(|(i, asked)| Call::asked(CallId::new(seq, i), asked, answer.cut)).collect();
        }
    }

    fn model_failed(&mut self, kind: ModelFailure, message: &str) {
        self.budget.abandon_request();
        if kind == ModelFailure::Unreadable {
            self.unreadable += 1;
        }
        if kind == ModelFailure::Unavailable || self.unreadable >= MAX_UNREADABLE {
            self.model_failure = Some((kind, message.to_owned()));
        }
    }

    fn requested(&mut self, id: &CallId, arguments: &Arguments) {
        if let Some(call) = self.call_mut(id) {
            call.arguments = Some(arguments.clone());
        }
    }

    fn ruled(&mut self, id: &CallId, verdict: Verdict, reasons: &[RulingReason]) {
        let Some(call) = self.call_mut(id) else { return };
        let tool = call.tool.clone();
        call.state = CallState::Ruled;
        self.count_ruling(&tool, verdict, reasons);
        if verdict == Verdict::Deny {
            self.settle(id, Settlement::Denied, &calls::denied_text(reasons));
        }
    }

    fn count_ruling(&mut self, tool: &str, verdict: Verdict, reasons: &[RulingReason]) {
        match verdict {
            Verdict::Allow => self.pre_tool.allowed += 1,
            Verdict::Deny => self.pre_tool.denied += 1,
        }
        if self.pre_tool.last.len() == PreTool::LAST {
            self.pre_tool.last.remove(0);
        }
        self.pre_tool.last.push(Ruling {
            tool: bloomery_crds::text::bounded(tool, 128),
            verdict,
            rule: reasons.first().map(|reason| reason.layer),
            reason: reasons.first().map(|reason| bloomery_crds::text::bounded(&reason.detail, 256)),
        });
    }

    fn started(&mut self, id: &CallId) {
        let epoch = self.epoch;
        if let Some(call) = self.call_mut(id) {
            call.state = CallState::Started { epoch };
            call.tries += 1;
        }
    }

    fn completed(&mut self, id: &CallId, text: &str) {
        if let Some(key) = self.identity(id)
            && self.evidence.insert(key)
        {
            self.finalizing.evidence_found();
        }
        self.settle(id, Settlement::Completed, text);
    }

    fn failed(&mut self, id: &CallId, text: &str) {
        let identity = self.identity(id);
        // Once an answer: the model could not know better when it asked for the same thing twice at once.
        let again = self.calls.iter().any(|call| call.has_failed() && self.identity(&call.id) == identity);
        let times = identity.map_or(1, |key| {
            let times = self.failures.entry(key).or_default();
            *times += u32::from(!again);
            *times
        });
        self.settle(id, Settlement::Failed, &calls::failed_text(text, times));
    }

    fn indeterminate(&mut self, id: &CallId, text: &str) {
        let (read_only, idempotent) = self.nature(id);
        let Some(call) = self.call_mut(id) else { return };
        if read_only {
            call.tries += 1;
        }
        if (read_only || idempotent) && call.tries < calls::MAX_TRIES {
            call.state = CallState::Retry;
        } else if read_only {
            self.settle(id, Settlement::Failed, &calls::failed_text(text, 1));
        } else {
            self.settle(id, Settlement::Indeterminate, text);
        }
    }

    fn gate_ruled(&mut self, ruling: &FinalRuling) {
        let retries = self.retries();
        self.finalizing.ruled(ruling, retries);
        match ruling {
            FinalRuling::FormError(attempt) => self.say(Turn::User(feedback::form_feedback(attempt))),
            FinalRuling::Attempt(attempt) if self.finalizing.goes_on() => {
                self.say(Turn::User(feedback::attempt_feedback(attempt)));
            }
            FinalRuling::Attempt(_) | FinalRuling::NoNewEvidence => {}
        }
    }

    /// Settles a call; with the last of its answer, all results join the history in the order of the calls.
    fn settle(&mut self, id: &CallId, settlement: Settlement, text: &str) {
        let Some(call) = self.call_mut(id) else { return };
        call.state = CallState::Settled(settlement);
        text.clone_into(&mut call.result);
        if self.calls.iter().any(|call| !call.is_settled()) || settlement == Settlement::Indeterminate {
            return;
        }
        let results: Vec<Turn> = self
            .calls
            .iter()
            .map(|call| Turn::ToolResult { id: call.provider_id.clone(), text: call.result.clone() })
            .collect();
        for result in results {
            self.say(result);
        }
        if !self.calls.iter().any(|call| call.state == CallState::Settled(Settlement::Indeterminate)) {
            self.calls.clear();
        }
    }

    fn say(&mut self, turn: Turn) {
        self.budget.read(match &turn {
            Turn::User(text) | Turn::ToolResult { text, .. } => text.len(),
            Turn::Assistant(message) => message.to_string().len(),
        });
        self.turns.push(turn);
    }

    fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| &call.id == id)
    }

    fn identity(&self, id: &CallId) -> Option<(String, Digest)> {
        let call = self.calls.iter().find(|call| &call.id == id)?;
        match call.arguments.as_ref()? {
            Arguments::Canonical { digest, .. } => Some((call.tool.clone(), digest.clone())),
            Arguments::Malformed { .. } => None,
        }
    }

    fn nature(&self, id: &CallId) -> (bool, bool) {
        let call = self.calls.iter().find(|call| &call.id == id);
        call.and_then(|call| self.tool(&call.tool)).map_or((false, false), |tool| (tool.read_only, tool.idempotent))
    }
}
