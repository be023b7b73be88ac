//! The prompt cache of a provider whose clients mark the prefixes of the prompt to cache.

use std::collections::BTreeSet;

use bloomery_crds::Digest;
use serde_json::Value;

/// The number of parts before a mark at which a cached prefix may end, as Anthropic documents it.
const LOOK_BACK: usize = 20;

/// A part of the prompt that can be marked: a tool, or a block of the system prompt or of a message.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The place of the part: `tools`, or the role of its message.
    pub(super) role: String,
    /// The part without its mark.
    pub(super) value: Value,
    /// True if the client marks the prompt up to this part for the cache.
    pub(super) marked: bool,
}

/// The tokens of a prompt that were read from the cache or written to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cached {
    /// The tokens that the cache already had.
    pub(super) read: u64,
    /// The tokens that this prompt added to the cache.
    pub(super) written: u64,
}

/// The cached prefixes. Unlike those of a provider, they have no minimum length and never expire.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// The digests of the cached prefixes.
    kept: BTreeSet<Digest>,
}

impl Cache {
    /// Counts the tokens of a prompt that are in the cache. Then adds the prefixes that the prompt marks to the cache.
    pub(super) fn count(&mut self, model: &str, parts: &[Part]) -> Cached {
        let mut digest = Digest::of_bytes(model.as_bytes());
        let prefixes: Vec<Digest> = parts
            .iter()
            .map(|part| {
                let this = Digest::of_value(&part.value);
                digest = Digest::of_bytes(format!("{digest} {} {this}", part.role).as_bytes());
                digest.clone()
            })
            .collect();
        let marks: Vec<usize> = parts.iter().enumerate().filter(|(_, part)| part.marked).map(|(at, _)| at).collect();
        let Some(last) = marks.last() else { return Cached::default() };
        let tokens_to = |end: usize| tokens(parts.iter().take(end).map(|part| &part.value));
        let is_kept = |at: &usize| prefixes.get(*at).is_some_and(|prefix| self.kept.contains(prefix));
        let found = marks.iter().rev().find_map(|mark| (mark.saturating_sub(LOOK_BACK)..=*mark).rev().find(is_kept));
        let read = found.map_or(0, |at| tokens_to(at + 1));
        self.kept.extend(marks.iter().filter_map(|at| prefixes.get(*at).cloned()));
        Cached { read, written: tokens_to(last + 1).saturating_sub(read) }
    }
}

/// Estimates the number of tokens of JSON values, at four bytes for each token.
pub(super) fn tokens<'a>(values: impl Iterator<Item = &'a Value>) -> u64 {
    (values.map(|value| value.to_string().len()).sum::<usize>() / 4) as u64
}
