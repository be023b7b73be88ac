//! Which of many tools the model is shown: before the main loop, once it is known what the goal means.

use super::{Step, asking};
use crate::conversation::Conversation;
use crate::event::{Event, ModelFailure, Selector};
use crate::selection::{self, Choice};
use bloomery_crds::v1alpha1::Stage;

/// The next step of the selection, or nothing where none is needed any more.
pub(super) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    if conversation.selecting().is_done() {
        return None;
    }
    let choice = selection::choice(conversation)?;
    let question = conversation.selecting().question();
    if choice.room == 0 || question.is_given_up() {
        return Some(Step::Record(vec![selected(&choice, choice.first(), Selector::Order)]));
    }
    let Some(answer) = question.answer() else {
        return Some(asking::stage(conversation, Stage::Selection, choice.prompt(conversation), question.complaint()));
    };
    Some(Step::Record(vec![match choice.read(answer) {
        Ok(tools) => selected(&choice, tools, Selector::Model),
        Err(message) => Event::ModelFailed { kind: ModelFailure::Misread, message },
    }]))
}

fn selected(choice: &Choice<'_>, tools: Vec<String>, by: Selector) -> Event {
    Event::ToolsSelected { tools, of: choice.open.len(), by }
}
