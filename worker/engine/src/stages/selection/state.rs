//! The state of the tool selection.

use super::prompt;
use crate::catalogue::prompt_bytes;
use crate::event::{Event, ModelFailure};
use crate::line::Entry;
use crate::shared::Shared;
use crate::stage_prompt::StageAnswer;
use bloomery_crds::v1alpha1::Stage;

/// The progress of the tool selection.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// The answer of the model that selects.
    pub(super) answer: StageAnswer,
    pub(super) is_done: bool,
}

impl Selection {
    pub(crate) fn apply(&mut self, entry: &Entry, shared: &mut Shared) {
        let is_current = shared.model.stage == Stage::Selection;
        match &entry.event {
            Event::ModelAnswered { answer } if is_current => self.answer.set(&answer.text),
            Event::ModelFailed { kind: ModelFailure::InvalidAnswer, message } if is_current => {
                self.answer.reject(message);
            }
            Event::ToolsSelected { tools, .. } => {
                self.is_done = true;
                show(tools, shared);
            }
            _ => {}
        }
    }
}

/// Shows the selected tools, and those that the model always sees. Unknown names are ignored: a cached selection comes from a
/// file that others may write.
fn show(names: &[String], shared: &mut Shared) {
    let Some(choice) = prompt::choice(shared) else { return };
    let selected = choice.selectable.iter().filter(|tool| names.contains(&tool.alias)).take(choice.room);
    let shown: Vec<String> = selected.chain(&choice.always_shown).map(|tool| tool.alias.clone()).collect();
    let hidden = shared.catalogue.show_only(|tool| shown.contains(&tool.alias));
    shared.budget.remove_from_prompt(hidden.iter().map(prompt_bytes).sum());
}
