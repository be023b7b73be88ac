//! How far a conversation is with its answer.

use super::Question;
use crate::event::{FinalRuling, Polish};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{Finalization, FinalizationAttempt, SuggestedAction};

/// Why an answer is given up that only a person could mend.
pub const CLARIFY: &str = "the gate needs an answer that only a person has";

/// An answer that the gate has to rule on, or has ruled on last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// What the model said.
    pub text: String,
    /// It was cut off at a length limit.
    pub cut: bool,
}

/// What has to come after a failed attempt before another answer counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Owed {
    #[default]
    Nothing,
    /// Something that was not known: of a tool, or of a person.
    Evidence,
    /// What only a person can tell about the draft.
    Word,
}

/// The answers so far, and what the gate said of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finalizing {
    draft: Option<Draft>,
    ruled: bool,
    form_errors: u32,
    attempts: Vec<FinalizationAttempt>,
    skipped: bool,
    /// What the model that rules is asked about the latest draft.
    pub(super) question: Question,
    owed: Owed,
    given_up: Option<(OutcomeCode, String)>,
    polishing: Option<String>,
    polish: Option<Polish>,
}

impl Finalizing {
    pub(super) fn drafted(&mut self, draft: Draft) {
        self.draft = Some(draft);
        self.ruled = false;
        self.question = Question::default();
    }

    pub(super) fn evidence_found(&mut self) {
        if self.owed == Owed::Evidence {
            self.owed = Owed::Nothing;
        }
    }

    pub(super) fn ruled(&mut self, ruling: &FinalRuling, retries: u32) {
        self.ruled = true;
        match ruling {
            FinalRuling::FormError(_) => self.form_errors += 1,
            FinalRuling::Skipped => {
                self.skipped = true;
                self.attempts.push(FinalizationAttempt { passed: true, ..FinalizationAttempt::default() });
            }
            FinalRuling::NoNewEvidence => {
                let why = "the model came back from a failed attempt without new evidence".to_owned();
                self.given_up = Some((OutcomeCode::GateFailed, why));
            }
            FinalRuling::Attempt(attempt) => {
                self.attempts.push(attempt.clone());
                self.given_up = if attempt.passed { None } else { self.end_of_attempts(attempt, retries) };
                let asks = attempt.suggested_action == Some(SuggestedAction::ClarifyUser) && self.given_up.is_none();
                self.owed = match (attempt.passed, asks) {
                    (true, _) => Owed::Nothing,
                    (false, true) => Owed::Word,
                    (false, false) => Owed::Evidence,
                };
            }
        }
    }

    fn end_of_attempts(&self, attempt: &FinalizationAttempt, retries: u32) -> Option<(OutcomeCode, String)> {
        let failed = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        match attempt.suggested_action {
            Some(SuggestedAction::Escalate) => {
                Some((OutcomeCode::GateFailed, "the gate leaves the answer to a person".to_owned()))
            }
            // Another attempt is what the person would be asked for.
            Some(SuggestedAction::ClarifyUser) => {
                (failed > retries).then(|| (OutcomeCode::UserNeeded, CLARIFY.to_owned()))
            }
            Some(SuggestedAction::ToolCall | SuggestedAction::Rewrite) | None => (failed > retries).then(|| {
                let why = format!("{failed} attempts failed, of {} that it may have", retries + 1);
                (OutcomeCode::GateFailed, why)
            }),
        }
    }

    pub(super) fn clarified(&mut self) {
        self.owed = Owed::Nothing;
    }

    /// Takes the draft back that the gate has not ruled on.
    pub(super) fn withdraw(&mut self) {
        self.ruled = true;
    }

    pub(super) fn polish_answered(&mut self, text: &str) {
        self.polishing = Some(text.to_owned());
    }

    pub(super) fn polished(&mut self, polish: Polish) {
        self.polishing = None;
        self.polish = Some(polish);
    }

    /// The draft that waits for its ruling.
    pub fn pending(&self) -> Option<&Draft> {
        self.draft.as_ref().filter(|_| !self.ruled)
    }

    /// The latest draft.
    pub fn draft(&self) -> Option<&Draft> {
        self.draft.as_ref()
    }

    /// What the model that rules is asked about the latest draft.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// How often the form was sent back.
    pub fn form_errors(&self) -> u32 {
        self.form_errors
    }

    /// Whether an answer counts only after new evidence.
    pub fn awaits_evidence(&self) -> bool {
        self.owed == Owed::Evidence
    }

    /// Whether the loop waits for what only a person can tell about the latest draft.
    pub fn is_clarifying(&self) -> bool {
        self.owed == Owed::Word
    }

    /// Whether an answer has passed.
    pub fn passed(&self) -> bool {
        self.ruled && self.attempts.last().is_some_and(|attempt| attempt.passed)
    }

    /// What the reply polisher said of the answer that passed.
    pub fn polishing(&self) -> Option<&str> {
        self.polishing.as_deref()
    }

    /// What became of the answer that passed, once the reply polisher is done with it.
    pub fn polish(&self) -> Option<&Polish> {
        self.polish.as_ref()
    }

    /// With which code and why no answer will pass any more.
    pub fn given_up(&self) -> Option<(OutcomeCode, &str)> {
        self.given_up.as_ref().map(|(code, why)| (*code, why.as_str()))
    }

    /// Whether the loop goes on after the latest ruling.
    pub fn goes_on(&self) -> bool {
        !self.passed() && self.given_up.is_none() && !self.is_clarifying()
    }

    /// The attempts so far.
    pub fn attempts(&self) -> &[FinalizationAttempt] {
        &self.attempts
    }

    /// What stands in status.
    pub fn projection(&self) -> Finalization {
        Finalization {
            form_errors: self.form_errors,
            attempts: self.attempts.clone(),
            passed: self.passed(),
            skipped: self.skipped,
        }
    }
}
