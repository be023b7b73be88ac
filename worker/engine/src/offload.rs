//! Offloading of large results: the model sees an excerpt, and reads more with a handle
//! (`docs/explanation/engine.md`, section 2).

use crate::event::CallId;
use crate::history::Turn;
use crate::shared::Shared;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;

/// The largest result that is not offloaded when it arrives, in bytes.
pub const MAX_INLINE_BYTES: usize = 16 * 1024;

/// The excerpt of a result that is offloaded when it arrives, in bytes.
const EXCERPT_BYTES: usize = 1024;

/// The excerpt of an older result, in bytes. It is short, because a long conversation has many of them.
const SHORT_EXCERPT_BYTES: usize = 256;

/// The least number of answers between two sweeps. Each sweep changes the prefix that providers cache.
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

fn excerpt_of_bytes(text: &str, bytes: usize, handle: &Digest) -> String {
    format!(
        "{}\n[Excerpt of a result of {} bytes. Read more with focus_read, handle {handle}.]",
        bounded(text, bytes),
        text.len()
    )
}

/// Returns the results to offload now.
///
/// When the model's window is nearly full, these are the large results before the latest answer. After such a sweep, the next
/// one waits for some answers. When the model has refused the conversation as too long, these are the same results without a
/// wait, or, if there are none, those of the latest answer.
pub(crate) fn due(shared: &Shared) -> Vec<Offload<'_>> {
    if shared.model.too_long.is_some() {
        let older = large_results(shared, latest_answer(shared));
        return if older.is_empty() { large_results(shared, usize::MAX) } else { older };
    }
    let window = shared.run.context_window;
    let is_tight = shared.budget.prompt_tokens().saturating_mul(10) > window.saturating_mul(8);
    let swept_at = shared.history.swept_at();
    let swept_lately = swept_at > 0 && shared.budget.answers() < swept_at + MIN_ANSWERS_BETWEEN_SWEEPS;
    if !is_tight || swept_lately {
        return Vec::new();
    }
    large_results(shared, latest_answer(shared))
}

/// Returns the turn of the latest answer.
fn latest_answer(shared: &Shared) -> usize {
    shared.history.turns().iter().rposition(|turn| matches!(turn, Turn::Assistant(_))).unwrap_or_default()
}

/// Returns the results before a turn that are larger than an excerpt with its handle.
fn large_results(shared: &Shared, before: usize) -> Vec<Offload<'_>> {
    let turns = shared.history.turns();
    let results = shared.history.results().iter().filter(|(_, at)| **at < before);
    results
        .filter_map(|(call, at)| match turns.get(*at) {
            Some(Turn::ToolResult { text, .. }) if text.len() > 2 * EXCERPT_BYTES => Some(Offload { call, text }),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
