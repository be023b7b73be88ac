//! How what models answer changes a conversation, stage by stage.

use super::{Call, Conversation, Draft, MAX_UNREADABLE};
use crate::event::{Answer, CallId, FinalRuling, ModelFailure, Polish};
use crate::gate::feedback;
use crate::turn::{Said, Turn};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{DetectedIntent, Stage};

impl Conversation {
    pub(super) fn intent_detected(&mut self, intent: &DetectedIntent, missing: &[String]) {
        self.intention.detected(intent, missing);
    }

    pub(super) fn model_requested(&mut self, reserve: u64, stage: Stage) {
        self.asking = stage;
        self.budget.requested(reserve, stage);
    }

    pub(super) fn answered(&mut self, seq: u64, answer: &Answer) {
        self.unreadable = 0;
        self.too_long = None;
        self.budget.answered(answer, self.asking);
        match self.asking {
            Stage::Intent => self.intention.question.answered(&answer.text),
            Stage::Selection => self.selecting.question.answered(&answer.text),
            Stage::Plan => self.planned(seq, answer),
            Stage::Finalization => self.finalizing.question.answered(&answer.text),
            Stage::Polish => self.finalizing.polish_answered(&answer.text),
        }
    }

    fn planned(&mut self, seq: u64, answer: &Answer) {
        self.say(Turn::Assistant(Said::of(answer)));
        if answer.calls.is_empty() {
            self.finalizing.drafted(Draft { text: answer.text.clone(), cut: answer.cut });
        } else {
            self.said.clone_from(&answer.text);
            let asked = answer.calls.iter().enumerate();
            self.calls = asked.map(|(i, asked)| Call::asked(CallId::new(seq, i), asked, answer.cut)).collect();
        }
    }

    pub(super) fn model_failed(&mut self, kind: ModelFailure, message: &str) {
        self.budget.abandon_request();
        // An answer that has passed does not fail for its looks.
        if self.asking == Stage::Polish {
            return self.finalizing.polished(Polish::Kept(format!("the reply polisher gave no answer: {message}")));
        }
        match (kind, self.asking) {
            (ModelFailure::Misread, Stage::Intent) => return self.intention.question.misread(message),
            (ModelFailure::Misread, Stage::Selection) => return self.selecting.question.misread(message),
            (ModelFailure::Misread, _) => return self.finalizing.question.misread(message),
            (ModelFailure::TooLong, Stage::Plan) => return self.too_long = Some(message.to_owned()),
            (ModelFailure::Unreadable, _) => self.unreadable += 1,
            (ModelFailure::Unavailable | ModelFailure::TooLong, _) => {}
        }
        if kind != ModelFailure::Unreadable || self.unreadable >= MAX_UNREADABLE {
            self.model_failure = Some((kind, message.to_owned()));
        }
    }

    pub(super) fn gate_ruled(&mut self, ruling: &FinalRuling) {
        let retries = self.retries();
        self.finalizing.ruled(ruling, retries);
        match ruling {
            FinalRuling::FormError(attempt) => self.say(Turn::User(feedback::form_feedback(attempt))),
            FinalRuling::Attempt(attempt) if self.finalizing.goes_on() => {
                self.say(Turn::User(feedback::attempt_feedback(attempt)));
            }
            FinalRuling::Attempt(_) | FinalRuling::Skipped | FinalRuling::NoNewEvidence => {}
        }
    }

    pub(super) fn limit_hit(&mut self, code: OutcomeCode, message: &str) {
        if self.finalizing.passed() {
            self.budget.abandon_request();
            self.finalizing.polished(Polish::Kept(format!("a budget was spent before it was polished: {message}")));
        } else {
            self.limit = Some((code, message.to_owned()));
        }
    }
}
