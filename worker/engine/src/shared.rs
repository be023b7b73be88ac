//! The state that the stages of a conversation share.

use crate::budget::Budget;
use crate::catalogue::Catalogue;
use crate::event::{Event, ModelFailure, QuestionId};
use crate::history::{History, Turn};
use crate::line::Entry;
use crate::progress::ProgressTracker;
use crate::rules::Rules;
use crate::run::Run;
use crate::stage_prompt::goal_data;
use crate::stages::calls::{Call, Calls};
use crate::stages::questions::{Questions, Refused};
use bloomery_crds::v1alpha1::{DetectedIntent, Stage};

/// How many unreadable answers in a row a model may give.
pub const MAX_UNREADABLE_ANSWERS: u32 = 3;

/// The state that several stages read and change. Each event reaches it before the stages.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The inputs of the attempt.
    pub run: Run,
    /// The sequence number of the latest event.
    pub seq: u64,
    /// The latest epoch; 0 before the first.
    pub epoch: u64,
    /// The attempt of the latest epoch.
    pub attempt: u32,
    pub progress: ProgressTracker,
    pub budget: Budget,
    pub history: History,
    pub catalogue: Catalogue,
    pub rules: Rules,
    pub model: ModelState,
    pub calls: Calls,
    pub questions: Questions,
    /// The intent of the goal, with the entities that people added.
    pub intent: Option<DetectedIntent>,
    /// The conversation that a follow-up Job continues.
    pub earlier: Option<String>,
    /// The latest event with new evidence: a tool result that was not known, or words of a person.
    pub evidence_at: u64,
}

/// The latest request to a model, and its failures.
#[derive(Debug, Default)]
pub(crate) struct ModelState {
    /// The stage of the latest request.
    pub stage: Stage,
    /// The unreadable answers in a row.
    unreadable: u32,
    /// The failure that ends the conversation.
    pub failure: Option<(ModelFailure, String)>,
    /// The model's message that the conversation is too long, until it is shorter.
    pub too_long: Option<String>,
}

impl Shared {
    pub(crate) fn new(run: Run) -> Self {
        Self {
            run,
            seq: 0,
            epoch: 0,
            attempt: 0,
            progress: ProgressTracker::default(),
            budget: Budget::default(),
            history: History::default(),
            catalogue: Catalogue::default(),
            rules: Rules::default(),
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
        match &entry.event {
            Event::EpochStarted { epoch, attempt } => {
                self.epoch = *epoch;
                self.attempt = *attempt;
                self.budget.abandon_request();
                // A new epoch has its own patience: it may reach what another pod could not.
                self.model.failure = None;
                self.model.too_long = None;
            }
            Event::ModelRequested { reserve, stage } => {
                self.model.stage = *stage;
                self.budget.requested(*reserve, *stage);
            }
            Event::ModelAnswered { answer } => {
                self.model.unreadable = 0;
                self.model.too_long = None;
                self.budget.answered(answer, self.model.stage);
            }
            Event::ModelFailed { kind, message } => {
                self.budget.abandon_request();
                self.model.failed(*kind, message);
            }
            _ => {}
        }
    }

    /// Adds a turn to the history.
    pub(crate) fn say(&mut self, turn: Turn) {
        self.history.add(turn, &mut self.budget);
    }

    /// Adds the waiting messages of people to the history, unless calls are under way.
    pub(crate) fn join_messages(&mut self) {
        if self.calls.is_empty() {
            self.history.join_messages(self.seq, &mut self.budget);
        }
    }

    /// Records that the present event brings new evidence.
    pub(crate) fn found_evidence(&mut self) {
        self.evidence_at = self.seq;
    }

    /// Closes a question whose reply was taken, which is evidence; keeps it open if the reply was refused.
    pub(crate) fn settle_question(&mut self, id: &QuestionId, taken: Result<(), Refused>) {
        if taken.is_ok() {
            self.found_evidence();
        }
        self.questions.settle(id, taken);
    }

    /// Returns whether a call with effect was sent and has no result yet.
    pub(crate) fn is_under_way(&self, call: &Call) -> bool {
        call.is_sent() && !self.catalogue.tool(&call.tool).is_some_and(|tool| tool.read_only)
    }

    /// The id of the detected intent.
    pub(crate) fn intent_id(&self) -> Option<&str> {
        self.intent.as_ref()?.id.as_deref()
    }

    /// Returns the goal as data for a prompt, with the earlier conversation of a follow-up Job.
    pub(crate) fn goal_data(&self) -> String {
        goal_data(&self.run.goal, self.earlier.as_deref())
    }
}

impl ModelState {
    fn failed(&mut self, kind: ModelFailure, message: &str) {
        match (kind, self.stage) {
            // The stage asks again, and an answer that passed does not fail because of its polish.
            (ModelFailure::InvalidAnswer, _) | (_, Stage::Polish) => return,
            (ModelFailure::TooLong, Stage::Plan) => return self.too_long = Some(message.to_owned()),
            (ModelFailure::Unreadable, _) => self.unreadable += 1,
            (ModelFailure::Unavailable | ModelFailure::TooLong, _) => {}
        }
        if kind != ModelFailure::Unreadable || self.unreadable >= MAX_UNREADABLE_ANSWERS {
            self.failure = Some((kind, message.to_owned()));
        }
    }
}
