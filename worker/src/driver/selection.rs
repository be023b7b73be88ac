//! A selection of tools is remembered for the next Jobs of the Skill that ask the same (seed 000, "Tool Selection Cache").

use crate::log::files::Files;
use crate::recent::{Kind, Recent};
use bloomery_engine::event::Selector;
use bloomery_engine::{Conversation, Event, selection};

/// What was selected not long ago for what is to be asked now.
pub(super) fn recalled(conversation: &Conversation, recent: &Recent, files: &impl Files) -> Option<Event> {
    let of = selection::choice(conversation)?.open.len();
    let tools = recent.get(files, Kind::Selection, &selection::key(conversation))?;
    Some(Event::ToolsSelected { tools, of, by: Selector::Memory })
}

/// Remembers what a model has selected; before the events are applied, while it is known what was asked.
pub(super) fn remember(events: &[Event], conversation: &Conversation, recent: &Recent, files: &impl Files) {
    for event in events {
        if let Event::ToolsSelected { tools, by: Selector::Model, .. } = event {
            recent.put(files, Kind::Selection, &selection::key(conversation), tools);
        }
    }
}
