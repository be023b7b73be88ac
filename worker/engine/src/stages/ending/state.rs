//! The state of the ending.

use crate::event::{Event, FullResult};
use crate::line::Entry;
use crate::stages::finalization::Finalization;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report::ParkReason;

/// The end of the conversation, and the reasons for it; or the reason why it is parked.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// The outcome code that a directive demands: a person has cancelled the Job or deleted its Skill.
    pub demanded: Option<OutcomeCode>,
    /// The code of the limit that was hit, and a message about it.
    pub limit: Option<(OutcomeCode, String)>,
    /// The reason why the conversation is parked, until the next epoch.
    pub parked: Option<ParkReason>,
    /// The outcome, and the answer or the latest draft.
    pub finished: Option<(Outcome, Option<FullResult>)>,
}

impl Ending {
    pub(crate) fn apply(&mut self, entry: &Entry, finalization: &Finalization) {
        match &entry.event {
            Event::EpochStarted { .. } => self.parked = None,
            // After an answer has passed, a limit only prevents its polish.
            Event::LimitHit { code, message } if !finalization.passed() => {
                self.limit = Some((*code, message.clone()));
            }
            // A directive to park has no outcome code: the worker also records `parked`.
            Event::DirectiveReceived { directive } => self.demanded = self.demanded.or(directive.outcome_code()),
            Event::Parked { reason } => self.parked = Some(*reason),
            Event::Finished { outcome, result } => self.finished = Some((outcome.clone(), result.clone())),
            _ => {}
        }
    }
}
