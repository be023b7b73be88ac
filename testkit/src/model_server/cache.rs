//! The prompt cache of a provider that is told what to keep: marks on parts of the prompt, and what they save.

use std::collections::BTreeSet;

use bloomery_crds::Digest;
use serde_json::Value;

/// How many parts before a mark are looked at for an entry that is kept, as Anthropic documents it.
const LOOK_BACK: usize = 20;

/// A part of the prompt that can be marked: a tool, or a block of the system prompt or of a message.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Whose part it is: `tools`, or a role.
    pub(super) role: String,
    /// The part without its mark.
    pub(super) value: Value,
    /// Whether all up to here is to be kept.
    pub(super) marked: bool,
}

/// How many tokens of a prompt had to do with the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cached {
    /// Those that were there.
    pub(super) read: u64,
    /// Those that were put there.
    pub(super) written: u64,
}

/// The prefixes that are kept. Unlike a provider, it keeps short ones too, and for ever.
#[derive(Debug, Default)]
pub(super) struct Cache {
    kept: BTreeSet<Digest>,
}

impl Cache {
    /// Counts what the cache has of a prompt, and keeps what the prompt marks.
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

/// Estimates the tokens of JSON.
pub(super) fn tokens<'a>(values: impl Iterator<Item = &'a Value>) -> u64 {
    (values.map(|value| value.to_string().len()).sum::<usize>() / 4) as u64
}
