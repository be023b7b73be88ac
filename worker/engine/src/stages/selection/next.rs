//! The steps of the tool selection.

use super::prompt::{self, Choice};
use crate::conversation::Conversation;
use crate::event::{Event, ModelFailure, SelectedBy};
use crate::stages::request;
use crate::step::Step;
use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::Stage;
use serde_json::json;

/// Returns the next step of the selection, or nothing if it is done or not needed.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let (shared, selection) = (&conversation.shared, &conversation.selection);
    if selection.is_done {
        return None;
    }
    let choice = prompt::choice(shared)?;
    let answer = &selection.answer;
    if choice.room == 0 || answer.is_given_up() {
        return Some(Step::Record(vec![selected(&choice, choice.first_tools(), SelectedBy::Order)]));
    }
    let Some(text) = answer.text() else {
        return Some(request::for_stage(shared, Stage::Selection, choice.prompt(shared), answer.error()));
    };
    Some(Step::Record(vec![match choice.read(text) {
        Ok(tools) => selected(&choice, tools, SelectedBy::Model),
        Err(error) => Event::ModelFailed { kind: ModelFailure::InvalidAnswer, message: error.to_string() },
    }]))
}

fn selected(choice: &Choice<'_>, tools: Vec<String>, by: SelectedBy) -> Event {
    Event::ToolsSelected { tools, total: choice.selectable.len(), by }
}

/// Returns the key under which the worker may cache the selection (`docs/explanation/engine.md`, section 4). It depends on the
/// Skill, goal, intent, maximum and catalogue.
pub fn cache_key(conversation: &Conversation) -> Digest {
    let shared = &conversation.shared;
    let tools: Vec<&str> = shared.catalogue.visible().iter().map(|tool| tool.digest.as_str()).collect();
    Digest::of_value(&json!({
        "skill": shared.run.skill_name,
        "goal": shared.goal_data(),
        "intent": shared.intent_id(),
        "max": prompt::max_tools(shared),
        "tools": tools,
    }))
}

/// Returns the event of a cached selection, if the Job needs a selection.
pub fn from_cache(conversation: &Conversation, tools: Vec<String>) -> Option<Event> {
    let choice = prompt::choice(&conversation.shared)?;
    Some(selected(&choice, tools, SelectedBy::Memory))
}
