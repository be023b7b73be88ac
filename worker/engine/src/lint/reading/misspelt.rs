//! Words that seem to name a tool which does not exist.

use crate::rules::guardrail::{after_prohibition, asks_for_approval, is_filler, is_use, reads_as_tool};
use bloomery_crds::nearest::{has_same_letters, is_near, nearest};
use std::collections::BTreeSet;

/// The shortest word without the form of a name that is compared with the names of tools, in bytes.
const MIN_WORD_BYTES: usize = 6;

/// A word that seems to name a tool.
pub(super) struct Misspelt<'a> {
    pub(super) word: &'a str,
    /// The nearest tool.
    near: Option<&'a str>,
    /// Whether the author certainly means a tool.
    pub(super) is_certain: bool,
}

impl Misspelt<'_> {
    pub(super) fn hint(&self) -> String {
        match self.near {
            Some(near) => format!("did you mean {near:?}?"),
            None => "to have it enforced, write \"Never use <tool>\" with the name of a tool".to_owned(),
        }
    }
}

/// Returns the word that a sentence forbids or holds, if it means several tools: `send_money,send_email` of
/// `Never call send_money,send_email`. `begins_as_tool` says whether a word is no name, and begins as that of a tool.
pub(super) fn several<'a>(words: &[&'a str], begins_as_tool: impl Fn(&str) -> bool) -> Option<Misspelt<'a>> {
    let words = after_prohibition(words).unwrap_or(words);
    let words = match words {
        [rest @ .., needs, approval] if asks_for_approval(needs, approval) => rest,
        _ => words,
    };
    let mut names = words.iter().copied().filter(|word| !is_use(word) && !is_filler(word));
    let word = names.next().filter(|word| names.next().is_none() && begins_as_tool(word))?;
    Some(Misspelt { word, near: None, is_certain: true })
}

/// Returns the first word of a sentence that seems to name a tool, but is none. `forbids` says whether the sentence forbids something,
/// and `is_known` whether a word is the name of a tool or of an argument.
pub(super) fn find<'a>(
    words: &[&'a str],
    tools: &BTreeSet<&'a str>,
    forbids: bool,
    is_known: impl Fn(&str) -> bool,
) -> Option<Misspelt<'a>> {
    let is_alone = words.len() == 1;
    let spaced = if forbids { with_blanks(words, tools) } else { None };
    let spaced = spaced.map(|tool| Misspelt { word: tool, near: Some(tool), is_certain: true });
    spaced.or_else(|| one_word(words, tools, is_alone, is_known))
}

/// Returns the tool whose name is written with blanks after a word such as `use`, or alone: `send_money` of `Never call send money` and
/// `Never send money`.
fn with_blanks<'a>(words: &[&'a str], tools: &BTreeSet<&'a str>) -> Option<&'a str> {
    let name = match words.iter().rposition(|word| is_use(word)) {
        Some(verb) => words.get(verb + 1..)?,
        None => after_prohibition(words).unwrap_or(words),
    };
    let name: Vec<&str> = name.iter().copied().filter(|word| !is_filler(word)).collect();
    if name.len() < 2 {
        return None;
    }
    let letters = name.concat();
    // Most sentences are longer than every name, and the comparison takes long.
    let length = letters.chars().filter(|c| c.is_alphanumeric()).count();
    tools.iter().copied().find(|tool| tool.len() >= length && has_same_letters(&letters, tool))
}

/// Returns the first word that seems to name a tool.
fn one_word<'a>(
    words: &[&'a str],
    tools: &BTreeSet<&'a str>,
    is_alone: bool,
    is_known: impl Fn(&str) -> bool,
) -> Option<Misspelt<'a>> {
    words.iter().enumerate().filter(|(_, word)| !is_known(word)).find_map(|(at, &word)| {
        let is_used = at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|verb| is_use(verb));
        let has_form = has_form_of_tool(word);
        // Most words are prose, and the comparison with all tools takes long.
        if !(has_form || is_used || is_alone) {
            return None;
        }
        let near = nearest(word.trim_end_matches('*'), tools.iter().copied());
        let is_typo = near.is_some_and(|near| is_near(word, near));
        let (is_meant, is_certain) = if has_form {
            (is_used || near.is_some(), is_typo || near.is_some_and(|near| has_same_letters(word, near)))
        } else {
            let is_same = near.is_some_and(|near| has_same_letters(word, near));
            let is_near_alone = is_alone && is_typo && word.len() >= MIN_WORD_BYTES;
            (is_same && (is_used || is_alone) || is_near_alone, is_same)
        };
        is_meant.then_some(Misspelt { word, near, is_certain })
    })
}

/// Returns whether a word has the form of a tool's name, and not that of an emphasis, such as `_never_` and `*ever*`.
fn has_form_of_tool(word: &str) -> bool {
    reads_as_tool(word) && !word.starts_with(['*', '_']) && (!word.contains('*') || is_prefix(word))
}

/// Returns whether a word is a prefix of names with `*` at its end.
pub(super) fn is_prefix(word: &str) -> bool {
    word.strip_suffix('*').is_some_and(|prefix| !prefix.is_empty() && !prefix.contains('*'))
}
