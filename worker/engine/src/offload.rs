//! Large results, put aside: the model sees an excerpt and reads more by a handle (`engine.md`, section 2).

use crate::conversation::Conversation;
use crate::event::CallId;
use crate::turn::Turn;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;

/// The largest result that stands in the history whole, in bytes.
pub const INLINE_BYTES: usize = 16 * 1024;

/// How much of a result that is put aside when it comes stays in sight, in bytes.
const EXCERPT_BYTES: usize = 1024;

/// How much of an older one stays: what it was about. A long conversation has many of them.
const REMINDER_BYTES: usize = 256;

/// Answers between two sweeps: each changes the prefix that providers cache.
const STEPS_BETWEEN: u32 = 20;

/// A result that is to be put aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload<'a> {
    /// The call that it answers.
    pub call: &'a CallId,
    /// All of it.
    pub text: &'a str,
}

/// What the model sees of a result that is put aside when it comes.
pub fn excerpt(text: &str, handle: &Digest) -> String {
    beginning(text, EXCERPT_BYTES, handle)
}

/// What the model sees of a result from when its window is full.
pub fn reminder(text: &str, handle: &Digest) -> String {
    beginning(text, REMINDER_BYTES, handle)
}

fn beginning(text: &str, bytes: usize, handle: &Digest) -> String {
    format!(
        "{}\n[Excerpt of a result of {} bytes. Read more with focus_read, handle {handle}.]",
        bounded(text, bytes),
        text.len()
    )
}

/// The results that are put aside because the window of the model is full, or nearly so: all of them but those of the
/// latest answer. None, where there was a sweep lately; but where the model has refused the conversation as too long,
/// at once, and those of the latest answer too where there are no others.
pub fn due(conversation: &Conversation) -> Vec<Offload<'_>> {
    if conversation.too_long().is_some() {
        let older = larger_ones(conversation, latest(conversation));
        return if older.is_empty() { larger_ones(conversation, usize::MAX) } else { older };
    }
    let window = conversation.run().context_window;
    let is_tight = conversation.budget().prompt_tokens().saturating_mul(10) > window.saturating_mul(8);
    let answers = conversation.budget().answers();
    let swept = conversation.swept_at();
    if !is_tight || (swept > 0 && answers < swept + STEPS_BETWEEN) {
        return Vec::new();
    }
    larger_ones(conversation, latest(conversation))
}

/// Where the latest answer stands.
fn latest(conversation: &Conversation) -> usize {
    conversation.turns().iter().rposition(|turn| matches!(turn, Turn::Assistant(_))).unwrap_or_default()
}

/// The results before a place that are larger than excerpts, which name what they are excerpts of.
fn larger_ones(conversation: &Conversation, before: usize) -> Vec<Offload<'_>> {
    let turns = conversation.turns();
    let results = conversation.results().iter().filter(|(_, at)| **at < before);
    results
        .filter_map(|(call, at)| match turns.get(*at) {
            Some(Turn::ToolResult { text, .. }) if text.len() > 2 * EXCERPT_BYTES => Some(Offload { call, text }),
            _ => None,
        })
        .collect()
}
