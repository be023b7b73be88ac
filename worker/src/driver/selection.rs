//! A selection of tools is remembered for the next Jobs of the Skill that ask the same (seed 000, "Tool Selection Cache").

use crate::recent::{Kind, Recent};
use bloomery_engine::event::SelectedBy;
use bloomery_engine::stages::selection;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::files::Files;

/// Returns the selection that was remembered for the question that is due.
pub(super) fn recalled(conversation: &Conversation, recent: &Recent, files: &impl Files) -> Option<Event> {
    selection::from_cache(conversation, recent.get(files, Kind::Selection, &selection::cache_key(conversation))?)
}

/// Remembers what a model has selected; before the events are applied, while it is known what was asked.
pub(super) fn remember(events: &[Event], conversation: &Conversation, recent: &Recent, files: &impl Files) {
    for event in events {
        if let Event::ToolsSelected { tools, by: SelectedBy::Model, .. } = event {
            recent.put(files, Kind::Selection, &selection::cache_key(conversation), tools);
        }
    }
}
