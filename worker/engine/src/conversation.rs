//! The state of a conversation: a fold of its events.

#[cfg(test)]
mod tests;
mod view;

use crate::line::Entry;
use crate::run::Run;
use crate::shared::Shared;
use crate::stages::approval;
use crate::stages::calls;
use crate::stages::ending::Ending;
use crate::stages::finalization::Finalization;
use crate::stages::intent::IntentStage;
use crate::stages::lost_call::LostCall;
use crate::stages::opening::Opening;
use crate::stages::polish::Polishing;
use crate::stages::questions;
use crate::stages::selection::Selection;
use crate::stages::validation::Validation;

/// A conversation: the shared state, and the state of each stage.
#[derive(Debug)]
pub struct Conversation {
    pub(crate) shared: Shared,
    pub(crate) opening: Opening,
    pub(crate) intent: IntentStage,
    pub(crate) selection: Selection,
    pub(crate) lost_call: LostCall,
    pub(crate) finalization: Finalization,
    pub(crate) polishing: Polishing,
    pub(crate) validation: Validation,
    pub(crate) ending: Ending,
}

impl Conversation {
    /// Returns the conversation before its first event.
    pub fn new(run: Run) -> Self {
        Self {
            validation: Validation::new(&run.skill),
            shared: Shared::new(run),
            opening: Opening::default(),
            intent: IntentStage::default(),
            selection: Selection::default(),
            lost_call: LostCall::default(),
            finalization: Finalization::default(),
            polishing: Polishing::default(),
            ending: Ending::default(),
        }
    }

    /// Applies one event. A conversation changes in no other way.
    ///
    /// Each part sees every event. The order of the parts matters: a later part relies on the changes of an earlier one.
    pub fn apply(&mut self, entry: &Entry) {
        let shared = &mut self.shared;
        shared.apply(entry);
        self.opening.apply(entry, shared);
        questions::apply(entry, shared);
        self.intent.apply(entry, shared);
        self.selection.apply(entry, shared);
        calls::apply(entry, shared);
        approval::apply(entry, shared);
        self.lost_call.apply(entry, shared);
        self.finalization.apply(entry, shared);
        self.polishing.apply(entry, &self.finalization, shared);
        self.validation.apply(entry);
        self.ending.apply(entry, &self.finalization);
    }
}
