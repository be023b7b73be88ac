//! The state that the stages of a conversation share, with the calls and the questions to people.

use crate::budget::Budget;
use crate::catalogue::Catalogue;
use crate::core_tools::use_skill;
use crate::event::{CallId, Event, ModelFailure, QuestionId};
use crate::history::{History, Turn};
use crate::line::Entry;
use crate::progress::ProgressTracker;
use crate::record::Record;
use crate::rules::Rules;
use crate::rules::limits::Spent;
use crate::run::Run;
use crate::stage_prompt::data;
use crate::stages::calls::{Call, Calls};
use crate::stages::questions::{Questions, RefusedReply};
use crate::tool::CatalogueTool;
use bloomery_crds::v1alpha1::{DetectedIntent, Stage};

/// The unreadable answers in a row after which the conversation ends.
pub const MAX_UNREADABLE_ANSWERS: u32 = 3;

/// The state that several stages read and change. It applies each event before the stages do.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The inputs of the conversation.
    pub run: Run,
    /// The sequence number of the latest event.
    pub seq: u64,
    /// The latest epoch; 0 before the first.
    pub epoch: u64,
    /// The attempt (the number of the pod) that began the latest epoch.
    pub attempt: u32,
    /// The UID of the Job that uses the log, if it names its run key.
    pub job: Option<String>,
    /// The goal of the log, if the Job names its run key and has another goal.
    pub other_goal: Option<String>,
    pub progress: ProgressTracker,
    pub budget: Budget,
    pub history: History,
    pub catalogue: Catalogue,
    pub rules: Rules,
    /// The facts that conditions read.
    pub record: Record,
    /// The calls that count towards `policy.limits`.
    pub spent: Spent,
    /// The calls that are known not to have happened, and that the ledger of the Skill still counts.
    pub to_give_back: Vec<CallId>,
    pub model: ModelState,
    pub calls: Calls,
    pub questions: Questions,
    /// The intent of the goal, with the entities that people added.
    pub intent: Option<DetectedIntent>,
    /// The conversation that a follow-up Job continues.
    pub earlier: Option<String>,
    /// The `seq` of the latest event with new evidence: a new tool result, or a statement of a person.
    pub evidence_at: u64,
}

/// The latest request to a model, and its failures.
#[derive(Debug, Default)]
pub(crate) struct ModelState {
    /// The stage of the latest request. `Stage::Plan` is the main loop.
    pub stage: Stage,
    /// The unreadable answers in a row.
    unreadable: u32,
    /// The failure that ends the conversation.
    pub failure: Option<(ModelFailure, String)>,
    /// The message of a model that refused the conversation as too long. Cleared when results are offloaded or a model answers.
    pub too_long: Option<String>,
}

impl Shared {
    pub(crate) fn new(run: Run) -> Self {
        Self {
            record: Record::new(&run.skill),
            run,
            seq: 0,
            epoch: 0,
            attempt: 0,
            job: None,
            other_goal: None,
            progress: ProgressTracker::default(),
            budget: Budget::default(),
            history: History::default(),
            catalogue: Catalogue::default(),
            rules: Rules::default(),
            spent: Spent::default(),
            to_give_back: Vec::new(),
            model: ModelState::default(),
            calls: Calls::default(),
            questions: Questions::default(),
            intent: None,
            earlier: None,
            evidence_at: 0,
        }
    }

    pub(crate) fn apply(&mut self, entry: &Entry) {
        self.seq = entry.seq;
        self.budget.add_work(entry.stamp.elapsed_ms);
        self.progress.apply(&entry.event);
        // The goal of a child is the text of a model.
        if !(self.run.depth > 1 && matches!(entry.event, Event::ConversationOpened { .. })) {
            self.record.apply(&entry.event);
        }
        match &entry.event {
            Event::EpochStarted { epoch, attempt, .. } => {
                self.epoch = *epoch;
                self.attempt = *attempt;
                self.budget.abandon_request();
                // The worker of a new epoch may reach a model that another pod could not reach.
                self.model.failure = None;
                self.model.too_long = None;
            }
            // The log of a Job without a named run key has no such event, unless somebody else writes it.
            Event::JobAttached { job } if self.run.job.is_some() => {
                self.job = Some(job.clone());
                self.calls.forget_uncounted_approvals();
                self.questions.restart_replies();
            }
            Event::ConversationOpened { goal, .. } if self.run.job.is_some() && *goal != self.run.goal => {
                self.other_goal = Some(goal.clone());
            }
            Event::ToolsBlocked { tools } => self.run.block_tools(tools),
            Event::ToolsRestricted { policy } => self.run.restrict_tools(policy),
            Event::LimitsLowered { limits } => self.run.limits = self.run.limits.lowered_to(Some(limits)),
            Event::ModelRequested { reserve, stage } => {
                self.model.stage = *stage;
                self.budget.open_request(*reserve, *stage, self.run.skill.model_name(*stage));
            }
            Event::ModelAnswered { answer } => {
                self.model.unreadable = 0;
                self.model.too_long = None;
                self.budget.settle_request(answer, self.model.stage);
            }
            Event::ModelFailed { kind, message } => {
                match kind {
                    ModelFailure::Unavailable | ModelFailure::TooLong => self.budget.release_request(),
                    ModelFailure::Unreadable | ModelFailure::InvalidAnswer => self.budget.abandon_request(),
                }
                self.model.record_failure(*kind, message);
            }
            _ => {}
        }
    }

    /// Adds a turn to the history.
    pub(crate) fn add_turn(&mut self, turn: Turn) {
        self.history.add(turn, &mut self.budget);
    }

    /// Adds the waiting messages of people to the history, unless calls are under way.
    pub(crate) fn join_messages(&mut self) {
        if self.calls.is_empty() {
            self.history.join_messages(self.seq, &mut self.budget);
        }
    }

    /// Records that the current event brings new evidence.
    pub(crate) fn record_evidence(&mut self) {
        self.evidence_at = self.seq;
    }

    /// Closes a question whose reply was accepted: the reply is new evidence. After a refused reply, the question stays open.
    pub(crate) fn settle_question(&mut self, id: &QuestionId, reply: Result<(), RefusedReply>) {
        if reply.is_ok() {
            self.record_evidence();
        }
        self.questions.settle(id, reply);
    }

    /// Returns whether a call changes nothing.
    pub(crate) fn is_read(&self, call: &Call) -> bool {
        let only_lists = |tool: &CatalogueTool| use_skill::only_lists(tool, call.read_arguments().ok());
        self.catalogue.tool(&call.tool).is_some_and(|tool| tool.read_only || only_lists(tool))
    }

    /// Returns whether a call may start a child.
    pub(crate) fn is_invocation(&self, call: &Call) -> bool {
        self.catalogue.tool(&call.tool).is_some_and(use_skill::is_use_skill) && !self.is_read(call)
    }

    /// Returns whether a call with effect was sent and has no result yet.
    pub(crate) fn is_effect_under_way(&self, call: &Call) -> bool {
        call.is_sent() && !self.catalogue.tool(&call.tool).is_some_and(|tool| tool.read_only)
    }

    /// Counts a call towards `policy.limits`.
    pub(crate) fn count_towards_limits(&mut self, id: &CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let Some(tool) = self.catalogue.tool(&call.tool) else { return };
        let Ok(arguments) = call.read_arguments() else { return };
        self.spent.count(id, self.rules.limited_amounts(tool, arguments));
    }

    /// Returns the amounts of a call that is known not to have happened.
    pub(crate) fn give_back(&mut self, id: &CallId) {
        self.spent.give_back(id);
        let answer = self.calls.get(id).and_then(|call| call.reservation.as_ref());
        if answer.is_some_and(|answer| answer.reserved) && !self.to_give_back.contains(id) {
            self.to_give_back.push(id.clone());
        }
    }

    /// The id of the detected intent.
    pub(crate) fn intent_id(&self) -> Option<&str> {
        self.intent.as_ref()?.id.as_deref()
    }

    /// Returns the goal as data for the prompt of a stage, with the earlier conversation of a follow-up Job.
    pub(crate) fn goal_data(&self) -> String {
        let goal = data("goal", &self.run.goal);
        match &self.earlier {
            None => goal,
            Some(earlier) => {
                format!("{goal}\n\nThe goal continues this earlier conversation:\n\n{}", data("earlier", earlier))
            }
        }
    }
}

impl ModelState {
    fn record_failure(&mut self, kind: ModelFailure, message: &str) {
        match (kind, self.stage) {
            // After an invalid answer, the stage asks again. A failed polish leaves the answer unpolished.
            (ModelFailure::InvalidAnswer, _) | (_, Stage::Polish) => return,
            // The main loop (`Plan`) may go on after results were offloaded.
            (ModelFailure::TooLong, Stage::Plan) => return self.too_long = Some(message.to_owned()),
            (ModelFailure::Unreadable, _) => self.unreadable += 1,
            (ModelFailure::Unavailable | ModelFailure::TooLong, _) => {}
        }
        if kind != ModelFailure::Unreadable || self.unreadable >= MAX_UNREADABLE_ANSWERS {
            self.failure = Some((kind, message.to_owned()));
        }
    }
}
