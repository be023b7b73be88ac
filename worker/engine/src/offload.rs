//! Offloading of large results: the model sees an excerpt, and reads more with a handle
//! (`docs/explanation/engine.md`, section 2).

use crate::event::{CallId, Event};
use crate::history::Turn;
use crate::shared::Shared;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;

/// The largest result that is not offloaded when it arrives, in bytes.
pub const MAX_INLINE_BYTES: usize = 16 * 1024;

/// The size of the excerpt of a result that is offloaded when it arrives, in bytes.
const EXCERPT_BYTES: usize = 1024;

/// The size of the excerpt of an older result, in bytes. It is small, because a long conversation has many of them.
const SHORT_EXCERPT_BYTES: usize = 256;

/// An older result is offloaded only if it is larger than this, in bytes: the excerpt of a smaller one would save little.
const MIN_SWEPT_BYTES: usize = 2 * 1024;

/// The part of the model's window that a prompt may fill before older results are offloaded, in percent.
const MAX_WINDOW_PERCENT: u64 = 80;

/// The least number of answers between two sweeps, which offload older results. Each sweep changes the prefix that providers
/// cache.
const MIN_ANSWERS_BETWEEN_SWEEPS: u32 = 20;

/// A result to offload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload<'a> {
    /// The call of the result.
    pub call: &'a CallId,
    /// The whole result.
    pub text: &'a str,
}

/// Returns the excerpt of a result that is offloaded when it arrives.
pub fn excerpt(text: &str, handle: &Digest) -> String {
    excerpt_of_bytes(text, EXCERPT_BYTES, handle)
}

/// Returns the excerpt of an older result, which is offloaded when the model's window is nearly full.
pub fn short_excerpt(text: &str, handle: &Digest) -> String {
    excerpt_of_bytes(text, SHORT_EXCERPT_BYTES, handle)
}

/// Returns the event of an offloaded result. `excerpt` is that of the whole result, and `handle` its handle.
pub fn offloaded(call: CallId, whole: &str, excerpt: String, handle: Digest) -> Event {
    let bytes = u64::try_from(whole.len()).unwrap_or(u64::MAX);
    Event::ResultOffloaded { call, handle, bytes, excerpt }
}

fn excerpt_of_bytes(text: &str, bytes: usize, handle: &Digest) -> String {
    format!(
        "{}\n[Excerpt of a result of {} bytes. Read more with focus_read, handle {handle}.]",
        bounded(text, bytes),
        text.len()
    )
}

/// Returns the results to offload now.
///
/// - If the model's window is nearly full: the large results before the latest answer, unless results were offloaded a few answers
///   ago.
/// - If the model has refused the conversation as too long: the large results before the latest answer, or if there are none, those
///   after it.
pub(crate) fn due(shared: &Shared) -> Vec<Offload<'_>> {
    if shared.model.too_long.is_some() {
        let older = large_results(shared, latest_answer(shared));
        return if older.is_empty() { large_results(shared, usize::MAX) } else { older };
    }
    let window = shared.run.context_window;
    let is_nearly_full = shared.budget.prompt_tokens().saturating_mul(100) > window.saturating_mul(MAX_WINDOW_PERCENT);
    let last_offload = shared.history.answers_at_offload();
    let swept_lately = last_offload > 0 && shared.budget.answers() < last_offload + MIN_ANSWERS_BETWEEN_SWEEPS;
    if !is_nearly_full || swept_lately {
        return Vec::new();
    }
    large_results(shared, latest_answer(shared))
}

/// Returns the index of the turn with the latest answer.
fn latest_answer(shared: &Shared) -> usize {
    shared.history.turns().iter().rposition(|turn| matches!(turn, Turn::Assistant(_))).unwrap_or_default()
}

/// Returns the results larger than [`MIN_SWEPT_BYTES`] in the turns before the index `before`.
fn large_results(shared: &Shared, before: usize) -> Vec<Offload<'_>> {
    let turns = shared.history.turns();
    let results = shared.history.results().iter().filter(|(_, turn)| **turn < before);
    results
        .filter_map(|(call, turn)| match turns.get(*turn) {
            Some(Turn::ToolResult { text, .. }) if text.len() > MIN_SWEPT_BYTES => Some(Offload { call, text }),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
