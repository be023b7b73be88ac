//! Caches the selection of tools for later Jobs of the Skill, if they would ask the model for it with the same prompt.

use crate::shared_cache::{Kind, SharedCache};
use bloomery_engine::event::SelectedBy;
use bloomery_engine::stages::selection;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::files::Files;

/// Returns the cached selection for the next request of the selection stage.
pub(super) fn from_cache(conversation: &Conversation, cache: &SharedCache, files: &impl Files) -> Option<Event> {
    selection::from_cache(conversation, cache.get(files, Kind::Selection, &selection::cache_key(conversation))?)
}

/// Stores a selection that a model made. Call it before the events are applied: the key depends on the state in which the model was asked.
pub(super) fn store(events: &[Event], conversation: &Conversation, cache: &SharedCache, files: &impl Files) {
    for event in events {
        if let Event::ToolsSelected { tools, by: SelectedBy::Model, .. } = event {
            cache.put(files, Kind::Selection, &selection::cache_key(conversation), tools);
        }
    }
}
