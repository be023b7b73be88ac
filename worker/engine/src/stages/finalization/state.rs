//! The state of the finalization gate.

use super::feedback;
use crate::event::{Answer, Event, FinalizationRuling, ModelFailure, QuestionSubject};
use crate::history::Turn;
use crate::line::Entry;
use crate::run::Run;
use crate::shared::Shared;
use crate::stage_prompt::StageAnswer;
use crate::stages::questions::RefusedReply;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{
    self, FinalizationAttempt, FinalizationCode, FinalizationReason, Stage, SuggestedAction,
};

/// The reason to give up if only a person can say what the answer lacks.
pub(crate) const NEEDS_PERSON: &str = "the gate needs an answer that only a person has";

/// The number of attempts after the first one, if the Skill sets no `finalizationGate.maxRetries`.
const DEFAULT_RETRIES: u32 = 2;

/// An answer of the main loop without calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    /// The text of the answer.
    pub text: String,
    /// Whether it was cut off at a length limit.
    pub cut: bool,
}

/// The input that the gate needs, after a failed attempt, before it checks the next answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Needed {
    #[default]
    Nothing,
    /// New evidence, from a tool or a person.
    Evidence,
    /// The same answer in other words. New evidence permits another answer.
    Rewording(Reworded),
    /// A person's clarification of the draft.
    Clarification,
}

/// A draft that failed only for its wording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reworded {
    /// The draft.
    pub draft: Draft,
    /// Whether the next answer may add content, because the draft was incomplete.
    pub may_add: bool,
}

impl Reworded {
    /// Returns the draft of an attempt if its wording is the only fault.
    fn of(attempt: &FinalizationAttempt, draft: &Draft) -> Option<Self> {
        let has_code = |code| attempt.reasons.iter().any(|reason| reason.code == code);
        let is_wording = |reason: &FinalizationReason| {
            matches!(reason.code, FinalizationCode::ToneMismatch | FinalizationCode::OutputIncomplete)
        };
        let only_wording = attempt.missing_fields.is_empty() && attempt.reasons.iter().all(is_wording);
        only_wording.then(|| Self { draft: draft.clone(), may_add: has_code(FinalizationCode::OutputIncomplete) })
    }
}

/// The latest draft, and the rulings of the gate so far.
#[derive(Debug, Default)]
pub(crate) struct Finalization {
    draft: Option<Draft>,
    /// Whether the gate still has to rule on the draft. A message of a person withdraws the draft.
    needs_ruling: bool,
    form_errors: u32,
    attempts: Vec<FinalizationAttempt>,
    /// Whether the Skill has no judging model.
    skipped: bool,
    /// The answer of the judging model about the draft.
    judgement: StageAnswer,
    needed: Needed,
    /// The outcome code and the reason, if no further attempt is possible.
    given_up: Option<(OutcomeCode, String)>,
}

impl Finalization {
    pub(crate) fn apply(&mut self, entry: &Entry, shared: &mut Shared) {
        match &entry.event {
            Event::ModelAnswered { answer } => self.take_answer(answer, shared.model.stage),
            Event::ModelFailed { kind: ModelFailure::InvalidAnswer, message } => {
                self.reject_judgement(message, shared.model.stage);
            }
            Event::GateRuled { ruling } => self.apply_ruling(ruling, shared),
            Event::UserReplied { question, text, .. } => {
                if let Some(QuestionSubject::Draft) = shared.questions.about(question) {
                    let reply = self.take_clarification(text, shared);
                    shared.settle_question(question, reply);
                }
            }
            _ => {}
        }
        if shared.evidence_at == entry.seq && matches!(self.needed, Needed::Evidence | Needed::Rewording(_)) {
            self.needed = Needed::Nothing;
        }
        if shared.history.messages_joined_with(entry.seq) {
            // The draft was written before the message, so the model answers again.
            self.needs_ruling = false;
        }
    }

    fn take_answer(&mut self, answer: &Answer, stage: Stage) {
        match stage {
            Stage::Plan if answer.calls.is_empty() => {
                self.draft = Some(Draft { text: answer.text.clone(), cut: answer.cut });
                self.needs_ruling = true;
                self.judgement = StageAnswer::default();
            }
            Stage::Finalization => self.judgement.set(&answer.text),
            Stage::Plan | Stage::Intent | Stage::Selection | Stage::Polish => {}
        }
    }

    fn reject_judgement(&mut self, message: &str, stage: Stage) {
        match stage {
            Stage::Finalization | Stage::Plan => self.judgement.reject(message),
            Stage::Intent | Stage::Selection | Stage::Polish => {}
        }
    }

    fn apply_ruling(&mut self, ruling: &FinalizationRuling, shared: &mut Shared) {
        self.needs_ruling = false;
        match ruling {
            FinalizationRuling::FormError(attempt) => {
                self.form_errors += 1;
                shared.add_turn(Turn::User(feedback::form_feedback(attempt)));
            }
            FinalizationRuling::Skipped => {
                self.skipped = true;
                self.attempts.push(FinalizationAttempt { passed: true, ..FinalizationAttempt::default() });
            }
            FinalizationRuling::NoNewEvidence => {
                let why = "the model answered again after a failed attempt, without new evidence".to_owned();
                self.given_up = Some((OutcomeCode::GateFailed, why));
            }
            FinalizationRuling::Attempt(attempt) => {
                self.add_attempt(attempt, retries(&shared.run));
                if !self.passed() && self.given_up.is_none() && !self.is_clarifying() {
                    let feedback = match self.reworded() {
                        Some(reworded) => feedback::rewording_feedback(attempt, reworded.may_add),
                        None => feedback::attempt_feedback(attempt),
                    };
                    shared.add_turn(Turn::User(feedback));
                }
            }
        }
    }

    fn add_attempt(&mut self, attempt: &FinalizationAttempt, retries: u32) {
        self.attempts.push(attempt.clone());
        if attempt.passed {
            self.given_up = None;
            self.needed = Needed::Nothing;
            return;
        }
        self.given_up = self.reason_to_give_up(attempt, retries);
        let asks_person = attempt.suggested_action == Some(SuggestedAction::ClarifyUser) && self.given_up.is_none();
        self.needed = if asks_person { Needed::Clarification } else { self.needed_after(attempt) };
    }

    /// Returns what the answer after a failed attempt needs. A draft without a ruling of the judging model does not replace the
    /// draft that is to be reworded.
    fn needed_after(&mut self, attempt: &FinalizationAttempt) -> Needed {
        let judged = self.draft.as_ref().filter(|_| self.judgement.text().is_some());
        match (judged, std::mem::take(&mut self.needed)) {
            (None, Needed::Rewording(earlier)) => Needed::Rewording(earlier),
            (draft, _) => {
                draft.and_then(|draft| Reworded::of(attempt, draft)).map_or(Needed::Evidence, Needed::Rewording)
            }
        }
    }

    fn reason_to_give_up(&self, attempt: &FinalizationAttempt, retries: u32) -> Option<(OutcomeCode, String)> {
        let attempts = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        match attempt.suggested_action {
            Some(SuggestedAction::Escalate) => {
                Some((OutcomeCode::GateFailed, "the gate leaves the answer to a person".to_owned()))
            }
            // A person is asked only if a further attempt can use the clarification.
            Some(SuggestedAction::ClarifyUser) => {
                (attempts > retries).then(|| (OutcomeCode::UserNeeded, NEEDS_PERSON.to_owned()))
            }
            Some(SuggestedAction::ToolCall | SuggestedAction::Rewrite) | None => (attempts > retries).then(|| {
                let why = format!("{attempts} attempts failed, and at most {} are allowed", retries + 1);
                (OutcomeCode::GateFailed, why)
            }),
        }
    }

    fn take_clarification(&mut self, text: &str, shared: &mut Shared) -> Result<(), RefusedReply> {
        if text.trim().is_empty() {
            return Err(RefusedReply::new("the answer is empty"));
        }
        if let Some(attempt) = self.attempts.last() {
            shared.add_turn(Turn::User(feedback::clarification_feedback(attempt, text)));
        }
        self.needed = Needed::Nothing;
        Ok(())
    }

    /// The draft, if the gate has to rule on it.
    pub(crate) fn pending(&self) -> Option<&Draft> {
        self.draft.as_ref().filter(|_| self.needs_ruling)
    }

    /// The latest draft.
    pub(crate) fn draft(&self) -> Option<&Draft> {
        self.draft.as_ref()
    }

    /// The answer of the model that judges the latest draft.
    pub(super) fn judgement(&self) -> &StageAnswer {
        &self.judgement
    }

    /// The number of drafts with form errors that did not count as attempts.
    pub(super) fn form_errors(&self) -> u32 {
        self.form_errors
    }

    /// Returns whether the next answer needs new evidence.
    pub(crate) fn needs_evidence(&self) -> bool {
        self.needed == Needed::Evidence
    }

    /// The earlier draft, if the next answer may only reword it.
    pub(super) fn reworded(&self) -> Option<&Reworded> {
        match &self.needed {
            Needed::Rewording(reworded) => Some(reworded),
            Needed::Nothing | Needed::Evidence | Needed::Clarification => None,
        }
    }

    /// Returns whether the main loop waits until a person has clarified the latest draft.
    pub(crate) fn is_clarifying(&self) -> bool {
        self.needed == Needed::Clarification
    }

    /// Returns whether the latest draft has passed.
    pub(crate) fn passed(&self) -> bool {
        !self.needs_ruling && self.attempts.last().is_some_and(|attempt| attempt.passed)
    }

    /// The outcome code and the reason, if no further attempt is possible.
    pub(crate) fn given_up(&self) -> Option<(OutcomeCode, &str)> {
        self.given_up.as_ref().map(|(code, why)| (*code, why.as_str()))
    }

    /// The attempts so far.
    pub(crate) fn attempts(&self) -> &[FinalizationAttempt] {
        &self.attempts
    }

    /// Returns the gate's part of the status.
    pub(crate) fn projection(&self) -> v1alpha1::Finalization {
        v1alpha1::Finalization {
            form_errors: self.form_errors,
            attempts: self.attempts.clone(),
            passed: self.passed(),
            skipped: self.skipped,
        }
    }
}

/// Returns the number of attempts that the gate allows after the first one.
fn retries(run: &Run) -> u32 {
    let gate = run.skill.engine.as_ref().and_then(|engine| engine.finalization_gate.as_ref());
    gate.and_then(|gate| gate.max_retries).unwrap_or(DEFAULT_RETRIES)
}
