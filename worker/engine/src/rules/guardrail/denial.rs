//! Sentences that forbid a tool.

use super::{Compiled, Fault, RuleEffect, RuleList, Sentence, is_any_of, is_use, plain, reads_as_tool};
use std::collections::BTreeSet;

/// Words before a prohibition that change nothing.
const POLITE: [&str; 4] = ["please", "kindly", "you", "always"];

/// Words that forbid the tool after them.
const AVOID: [&str; 3] = ["avoid", "no", "stop"];

/// Words between a prohibition and its tool, beside those of [`is_use`] and [`is_filler`].
const USING: [&str; 7] = ["using", "calling", "invoking", "running", "executing", "of", "ever"];

/// Words that are a prohibition before [`NOT`].
const MODALS: [&str; 5] = ["must", "may", "should", "shall", "can"];
const NOT: [&str; 2] = ["not", "never"];
const ARE: [&str; 2] = ["is", "are"];
const ALLOWED: [&str; 2] = ["allowed", "permitted"];

/// Words that forbid the tool before them.
const FORBIDDEN: [&str; 4] = ["forbidden", "prohibited", "disallowed", "banned"];
const USED: [&str; 5] = ["used", "called", "invoked", "run", "executed"];

impl Sentence<'_> {
    /// Compiles `Never use deleteFile`, `Do not call the deleteFile tool` and `Never deleteFile`, and under `never` also `deleteFile` and
    /// `*`.
    pub(super) fn compile_tool_deny(&self, catalogue: &BTreeSet<&str>) -> Option<Compiled> {
        let effect = |tool| RuleEffect::ToolDeny { tool };
        let is_under_never = self.list == RuleList::Never;
        if is_under_never && matches!(self.words.as_slice(), ["*"]) {
            return Some(Compiled::of_tools("*", catalogue, effect));
        }
        let prohibited = after_prohibition(&self.words);
        let words = match prohibited {
            Some(words) => words,
            None if is_under_never => self.words.as_slice(),
            None => return None,
        };
        let (verb, words) = match words {
            [verb, rest @ ..] if is_use(verb) => (Some(verb), rest),
            _ => (None, words),
        };
        if verb.is_some() && means_every_tool(words, catalogue) {
            return Some(Compiled::not_enforced(Fault::NoName));
        }
        let tool = only_name(words)?;
        let compiled = Compiled::of_word(tool, catalogue, effect);
        let is_meant = match (prohibited, verb) {
            // The sentence has the form of a rule, whatever its last word is.
            (Some(_), Some(verb)) if verb.eq_ignore_ascii_case("use") && words.len() == 1 => true,
            // `Never search` is about searching, and not about a tool of that name.
            (Some(_), None) => reads_as_tool(plain(tool)),
            // A word that is no tool may be prose, as in `Lie` or `Never call customers`.
            _ => compiled.fault.is_none() || reads_as_tool(plain(tool)),
        };
        is_meant.then_some(compiled)
    }

    /// Compiles `Avoid deleteFile`, `Please do not use deleteFile` and `deleteFile is forbidden`. The word must be the name of a tool:
    /// `Avoid snake_case` is about a style.
    pub(super) fn compile_softer_deny(&self, catalogue: &BTreeSet<&str>) -> Option<Compiled> {
        let words = softly_forbidden(&self.words)?;
        let introduces = |word: &str| is_use(word) || is_filler(word) || is_any_of(word, &USING);
        let start = words.iter().position(|word| !introduces(word)).unwrap_or_default();
        let (before, words) = words.split_at_checked(start)?;
        let tool = only_name(words)?;
        let is_meant = reads_as_tool(plain(tool)) || before.iter().any(|word| !is_filler(word));
        let compiled = Compiled::of_word(tool, catalogue, |tool| RuleEffect::ToolDeny { tool });
        (is_meant && compiled.fault.is_none()).then_some(compiled)
    }
}

/// Returns the words that a sentence forbids, also if it does so less strictly than `Never`.
fn softly_forbidden<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    let is = |word: &str, known: &[&str]| is_any_of(plain(word), known);
    let start = words.iter().position(|word| !is(word, &POLITE)).unwrap_or_default();
    let words = words.get(start..)?;
    match words {
        [avoid, rest @ ..] if is(avoid, &AVOID) => Some(rest),
        [refrain, from, rest @ ..] if is(refrain, &["refrain"]) && is(from, &["from"]) => Some(rest),
        [must, not, rest @ ..] if is(must, &MODALS) && is(not, &NOT) => Some(rest),
        [are, not, allowed, to, rest @ ..]
            if is(are, &ARE) && is(not, &NOT) && is(allowed, &ALLOWED) && is(to, &["to"]) =>
        {
            Some(rest)
        }
        [rest @ .., must, not, be, used]
            if is(must, &MODALS) && is(not, &NOT) && is(be, &["be"]) && is(used, &USED) =>
        {
            Some(rest)
        }
        [rest @ .., are, not, allowed] if is(are, &ARE) && is(not, &NOT) && is(allowed, &ALLOWED) => Some(rest),
        [rest @ .., are, forbidden] if is(are, &ARE) && is(forbidden, &FORBIDDEN) => Some(rest),
        _ => after_prohibition(words),
    }
}

/// Returns the only word of a phrase that is not a filler, as in `the deleteFile tool`.
fn only_name<'a>(words: &[&'a str]) -> Option<&'a str> {
    let names: Vec<&str> = words.iter().copied().filter(|word| !is_filler(word)).collect();
    match (names.as_slice(), words) {
        ([name], _) | ([], [name]) => Some(*name),
        _ => None,
    }
}

/// Returns whether a phrase means every tool, and names none: `any tool`, `any of the tools`, `tools`.
fn means_every_tool(words: &[&str], catalogue: &BTreeSet<&str>) -> bool {
    let is_part = |word: &str| is_filler(word) || is_any_of(plain(word), &["any", "a", "of", "your"]);
    words.iter().any(|word| is_any_of(plain(word), &["tool", "tools"]))
        && words.iter().all(|word| is_part(word) && !catalogue.contains(plain(word)))
}

/// Returns the words after `Never`, `Never ever`, `Do not` or `Don't`.
pub(crate) fn after_prohibition<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    let is = |word: &str, known: &[&str]| is_any_of(plain(word), known);
    match words {
        [never, ever, rest @ ..] if is(never, &["never"]) && is(ever, &["ever"]) => Some(rest),
        [never, rest @ ..] if is(never, &["never", "don't", "don\u{2019}t"]) => Some(rest),
        [verb, not, rest @ ..] if is(verb, &["do"]) && is(not, &["not"]) => Some(rest),
        _ => None,
    }
}

/// Returns whether a word beside the name of a tool changes nothing: `the deleteFile tool`.
pub(crate) fn is_filler(word: &str) -> bool {
    is_any_of(plain(word), &["the", "tool", "tools"])
}
