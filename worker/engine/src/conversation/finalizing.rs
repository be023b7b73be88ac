//! How far a conversation is with its answer.

use crate::event::FinalRuling;
use bloomery_crds::v1alpha1::{Finalization, FinalizationAttempt};

/// An answer that the gate has to rule on, or has ruled on last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// What the model said.
    pub text: String,
    /// It was cut off at a length limit.
    pub cut: bool,
}

/// The answers so far, and what the gate said of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finalizing {
    draft: Option<Draft>,
    ruled: bool,
    form_errors: u32,
    attempts: Vec<FinalizationAttempt>,
    awaits_evidence: bool,
    given_up: Option<String>,
}

impl Finalizing {
    pub(super) fn drafted(&mut self, draft: Draft) {
        self.draft = Some(draft);
        self.ruled = false;
    }

    pub(super) fn evidence_found(&mut self) {
        self.awaits_evidence = false;
    }

    pub(super) fn ruled(&mut self, ruling: &FinalRuling, retries: u32) {
        self.ruled = true;
        match ruling {
            FinalRuling::FormError(_) => self.form_errors += 1,
            FinalRuling::NoNewEvidence => {
                self.given_up = Some("the model came back from a failed attempt without new evidence".to_owned());
            }
            FinalRuling::Attempt(attempt) => {
                self.attempts.push(attempt.clone());
                let failed = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
                if !attempt.passed && failed > retries {
                    self.given_up = Some(format!("{failed} attempts failed, of {} that it may have", retries + 1));
                }
                self.awaits_evidence = !attempt.passed;
            }
        }
    }

    /// The draft that waits for its ruling.
    pub fn pending(&self) -> Option<&Draft> {
        self.draft.as_ref().filter(|_| !self.ruled)
    }

    /// The latest draft.
    pub fn draft(&self) -> Option<&Draft> {
        self.draft.as_ref()
    }

    /// How often the form was sent back.
    pub fn form_errors(&self) -> u32 {
        self.form_errors
    }

    /// Whether an answer counts only after new evidence.
    pub fn awaits_evidence(&self) -> bool {
        self.awaits_evidence
    }

    /// Whether an answer has passed.
    pub fn passed(&self) -> bool {
        self.attempts.last().is_some_and(|attempt| attempt.passed)
    }

    /// Why no answer will pass any more.
    pub fn given_up(&self) -> Option<&str> {
        self.given_up.as_deref()
    }

    /// Whether the loop goes on after the latest ruling.
    pub fn goes_on(&self) -> bool {
        !self.passed() && self.given_up.is_none()
    }

    /// The attempts so far.
    pub fn attempts(&self) -> &[FinalizationAttempt] {
        &self.attempts
    }

    /// What stands in status.
    pub fn projection(&self) -> Finalization {
        Finalization { form_errors: self.form_errors, attempts: self.attempts.clone(), passed: self.passed() }
    }
}
