//! The state of a conversation: a fold of its events, and of nothing else.

mod barren;
mod budget;
mod calling;
mod calls;
mod drift;
mod finalizing;
#[cfg(test)]
pub(crate) mod fixture;
mod hold;
mod intention;
mod people;
mod question;
mod questions;
mod schemas;
mod selecting;
mod stages;
#[cfg(test)]
mod tests;
mod view;

pub use barren::{MAX_BARREN, Stall};
pub use budget::Budget;
pub use calls::{Call, CallState, Settlement};
pub use drift::Drift;
pub use finalizing::{CLARIFY, Draft, Finalizing};
pub use hold::Hold;
pub use intention::Intention;
pub use question::Question;
pub use questions::{OpenQuestion, Questions, StrayReply};
pub use selecting::Selecting;

use crate::bootstrap::workflows::Status;
use crate::endpoint;
use crate::event::{CallId, ContextPart, Event, ModelFailure, WholeResult};
use crate::gate::catalogue;
use crate::gate::rules::Rules;
use crate::line::Entry;
use crate::run::Run;
use crate::tool::{CatalogueTool, ListedTool};
use crate::turn::Turn;
use barren::Barren;
use bloomery_crds::Digest;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::{PreTool, Stage};
use schemas::Schemas;
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
    schemas: Schemas,
    /// The tools that the server does not list as they were fixed, by its names.
    drifted: BTreeMap<String, Drift>,
    rules: Rules,
    resources_bound: bool,
    context: Option<Vec<ContextPart>>,
    system: Option<String>,
    asking: Stage,
    intention: Intention,
    selecting: Selecting,
    turns: Vec<Turn>,
    /// Where the answers of calls stand in `turns`, until they are put aside.
    results: BTreeMap<CallId, usize>,
    swept_at: u32,
    /// How many answers of calls were put aside: each is a change of the history.
    put_aside: u32,
    calls: Vec<Call>,
    /// What the model said when it asked for them.
    said: String,
    questions: Questions,
    /// Who ended it at a call that nobody knows about.
    stopped_by: Option<String>,
    /// How the Job is to end, where it is: a person has cancelled it, or has deleted its Skill.
    to_end: Option<OutcomeCode>,
    /// Messages of people that the history has no place for yet.
    inbox: Vec<String>,
    budget: Budget,
    pre_tool: PreTool,
    /// The digests of the calls of each tool that have shown something.
    evidence: BTreeMap<String, BTreeSet<[u8; 32]>>,
    failures: BTreeMap<(String, Digest), u32>,
    unreadable: u32,
    model_failure: Option<(ModelFailure, String)>,
    too_long: Option<String>,
    finalizing: Finalizing,
    limit: Option<(bloomery_crds::outcome::OutcomeCode, String)>,
    parked: Option<ParkReason>,
    finished: Option<(Outcome, Option<WholeResult>)>,
}

/// The event that fixes the tools of a Job, from what its MCP server lists.
pub fn fix_catalogue(run: &Run, listed: Vec<ListedTool>) -> Event {
    Event::CatalogueFixed { tools: catalogue::fix(run, listed) }
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
            schemas: Schemas::default(),
            drifted: BTreeMap::new(),
            rules: Rules::default(),
            resources_bound: false,
            context: None,
            system: None,
            asking: Stage::default(),
            intention: Intention::default(),
            selecting: Selecting::default(),
            turns: Vec::new(),
            results: BTreeMap::new(),
            swept_at: 0,
            put_aside: 0,
            calls: Vec::new(),
            said: String::new(),
            questions: Questions::default(),
            stopped_by: None,
            to_end: None,
            inbox: Vec::new(),
            budget: Budget::default(),
            pre_tool: PreTool::default(),
            evidence: BTreeMap::new(),
            failures: BTreeMap::new(),
            unreadable: 0,
            model_failure: None,
            too_long: None,
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
            Event::ResourcesBound { .. } => self.resources_bound = true,
            Event::ContextGathered { parts } => self.context = Some(parts.clone()),
            Event::ConversationOpened { system, goal, .. } => self.opened(system, goal),
            Event::IntentDetected { intent, missing } => self.intent_detected(intent, missing),
            Event::ToolsSelected { tools, .. } => self.tools_selected(tools),
            Event::ModelRequested { reserve, stage } => self.model_requested(*reserve, *stage),
            Event::ModelAnswered { answer } => self.answered(entry.seq, answer),
            Event::ModelFailed { kind, message } => self.model_failed(*kind, message),
            Event::ToolRequested { call, arguments, .. } => self.requested(call, arguments),
            Event::ToolRuled { call, verdict, reasons } => self.ruled(call, *verdict, reasons),
            Event::ToolHeld { held } => self.hold(held),
            Event::ToolApproved { call, digest, decision } => self.approved(call, digest, &decision.approver),
            Event::ToolDenied { call, decision } => self.denied(call, decision),
            Event::ToolSkipped { call, because } => self.skipped(call, because),
            Event::ToolStarted { call } => self.started(call),
            Event::ToolCompleted { call, text } => self.completed(entry.seq, call, text),
            Event::ToolFailed { call, text } => self.failed(call, text),
            Event::ToolIndeterminate { call, text } => self.indeterminate(call, text),
            // For people to see; nothing is decided by it.
            Event::ToolProgressed { .. } => {}
            Event::CatalogueDrifted { changed, missing, .. } => self.drifted(changed, missing),
            Event::ResultOffloaded { call, excerpt, .. } => self.offloaded(entry.seq, call, excerpt),
            Event::SubgoalDone { step, evidence, not_applicable } => {
                self.rules.workflows.closed(step, closed(*evidence, *not_applicable));
            }
            Event::UserAsked { question, about } => self.user_asked(question, about),
            Event::UserReplied { question, text, by, nth } => {
                self.questions.heard(*nth);
                self.user_replied(entry.seq, question, text, (by, *nth));
            }
            Event::UserMessage { text, by: _, nth } => {
                self.questions.heard(*nth);
                self.user_message(text);
            }
            Event::GateRuled { ruling } => self.gate_ruled(ruling),
            Event::ReplyPolished { polish } => self.finalizing.polished(polish.clone()),
            Event::LimitHit { code, message } => self.limit_hit(*code, message),
            // That it parks is an event of its own.
            Event::DirectiveReceived { directive } => self.to_end = self.to_end.or(directive.ends()),
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
        self.too_long = None;
        self.budget.abandon_request();
    }

    fn catalogue_fixed(&mut self, tools: &[CatalogueTool]) {
        self.visible = tools.iter().filter(|tool| tool.visible).cloned().collect();
        self.schemas = Schemas::of(tools);
        self.budget.read(self.visible.iter().map(tool_bytes).sum());
        let unusable = endpoint::remarks(&self.run.skill.resources, &self.run.resources);
        self.rules = Rules::compile(&self.run.skill, tools).remarking(unusable);
        self.tools = Some(tools.to_vec());
    }

    fn opened(&mut self, system: &str, goal: &str) {
        self.budget.read(system.len());
        self.system = Some(system.to_owned());
        self.say(Turn::User(goal.to_owned()));
        self.take_messages();
    }

    fn say(&mut self, turn: Turn) {
        self.budget.read(match &turn {
            Turn::User(text) | Turn::ToolResult { text, .. } => text.len(),
            Turn::Assistant(said) => said.message.len(),
        });
        self.turns.push(turn);
    }
}

/// What a tool takes of a prompt.
fn tool_bytes(tool: &CatalogueTool) -> usize {
    tool.description.len() + tool.input_schema.to_string().len()
}

fn closed(evidence: u64, not_applicable: bool) -> Status {
    if not_applicable { Status::NotApplicable { evidence } } else { Status::Done { evidence } }
}
