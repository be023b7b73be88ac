//! The state of the reply polisher.

use crate::event::{Event, PolishOutcome};
use crate::line::Entry;
use crate::shared::Shared;
use crate::stages::finalization::Finalization;
use bloomery_crds::v1alpha1::{SkillSpec, Stage};

/// The polish of the answer that passed.
#[derive(Debug, Default)]
pub(crate) struct Polishing {
    /// The answer of the polishing model, until it is compared with the original.
    polished: Option<String>,
    outcome: Option<PolishOutcome>,
}

impl Polishing {
    pub(crate) fn apply(&mut self, entry: &Entry, finalization: &Finalization, shared: &mut Shared) {
        let is_current = shared.model.stage == Stage::Polish;
        match &entry.event {
            Event::ModelAnswered { answer } if is_current => self.polished = Some(answer.text.clone()),
            // A failed polish leaves the answer unpolished.
            Event::ModelFailed { message, .. } if is_current => {
                self.finish(PolishOutcome::Kept(format!("the reply polisher gave no answer: {message}")));
            }
            Event::LimitHit { message, .. } if finalization.passed() => {
                shared.budget.abandon_request();
                self.finish(PolishOutcome::Kept(format!("a limit was reached before it was polished: {message}")));
            }
            Event::ReplyPolished { polish } => self.finish(polish.clone()),
            _ => {}
        }
    }

    fn finish(&mut self, outcome: PolishOutcome) {
        self.polished = None;
        self.outcome = Some(outcome);
    }

    /// The polisher's answer, until it is compared with the original.
    pub(super) fn polished(&self) -> Option<&str> {
        self.polished.as_deref()
    }

    /// The outcome of the polish, once it is done.
    pub(crate) fn outcome(&self) -> Option<&PolishOutcome> {
        self.outcome.as_ref()
    }
}

/// Returns whether an answer has passed, and the enabled polisher still has to handle it.
pub(crate) fn wants_polish(polishing: &Polishing, finalization: &Finalization, skill: &SkillSpec) -> bool {
    let polisher = skill.engine.as_ref().and_then(|engine| engine.reply_polisher.as_ref());
    let enabled = polisher.and_then(|polisher| polisher.enabled).unwrap_or(true);
    enabled && finalization.passed() && polishing.outcome.is_none()
}
