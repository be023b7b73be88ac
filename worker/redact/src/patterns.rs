//! Finds all secret values in a text, in linear time.
//!
//! A form is a byte sequence that stands for a value, such as its base64. A notation is a way to write a form in a text: plain, or with
//! JSON or URL escapes. The text is decoded from each notation, and all forms are searched for in the decoded text.

use super::forms;
use super::notation::Notation;
use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use bloomery_files::{SecretFinder, SecretMatch};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// The largest number of bytes of a text that encode one byte of a form. JSON within a JSON string needs seven: `\\u0041`.
const MAX_ESCAPE_BYTES: usize = 8;

/// The number of line-break bytes that [`SecretFinder::max_secret_length`] allows within one value.
const MAX_LINE_BREAK_BYTES: usize = 4 * 1024;

/// The secret values, compiled for the search.
#[derive(Default)]
pub(super) struct Patterns {
    /// The automaton that finds all forms; `None` without values, or if they are too large.
    automaton: Option<NFA>,
    /// For each form, the index of its secret.
    secrets: Vec<usize>,
    /// The mark of each secret.
    marks: Vec<String>,
    /// Further names of values that have several names: the index of the secret, and the name.
    other_names: Vec<(usize, String)>,
    /// The first name of each secret. A secret is identified by its index in this list.
    names: Vec<String>,
    /// Whether the values are too large to search for. If so, every text counts as one secret.
    is_too_large: bool,
    /// The length of the longest form, in bytes.
    longest_form: usize,
}

/// The range of a secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    range: Range<usize>,
    secret: usize,
}

impl Patterns {
    /// Compiles named values. If several names have the same value, the first name is used for its mark.
    pub(super) fn new<'a>(values: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        // The build fails above 2^31 states.
        Self::build(values, |forms| NFA::builder().prefilter(false).build(forms).ok())
    }

    /// Compiles named values with `build`. If that fails, every text is redacted completely.
    pub(super) fn build<'a>(
        values: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        build: impl FnOnce(&[Vec<u8>]) -> Option<NFA>,
    ) -> Self {
        let mut patterns = Self::default();
        let mut forms: Vec<Vec<u8>> = Vec::new();
        let mut known: BTreeMap<&[u8], usize> = BTreeMap::new();
        for (name, value) in values {
            let secret = patterns.names.len();
            if let Some(first) = known.get(value) {
                patterns.other_names.push((*first, name.to_owned()));
                continue;
            }
            known.insert(value, secret);
            for form in forms::all_forms(value) {
                patterns.longest_form = patterns.longest_form.max(form.len());
                forms.push(form);
                patterns.secrets.push(secret);
            }
            patterns.names.push(name.to_owned());
        }
        if !forms.is_empty() {
            patterns.automaton = build(&forms);
            patterns.is_too_large = patterns.automaton.is_none();
        }
        patterns.marks = patterns.names.iter().map(|name| patterns.mark(name)).collect();
        patterns
    }

    /// Returns whether the values are too large to search for.
    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Returns the memory use of the automaton, in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.automaton.as_ref().map_or(0, Automaton::memory_usage)
    }

    /// Returns the mark of a secret. The mark is shorter if it would contain a value, such as the value `password` of the secret
    /// `password`.
    fn mark(&self, name: &str) -> String {
        let candidates = [format!("[redacted: {name}]"), "[redacted]".to_owned()];
        let without_value = candidates.into_iter().find(|mark| self.find_all(mark.as_bytes()).is_empty());
        without_value.unwrap_or_else(|| "***".to_owned())
    }

    /// Returns the marks of all secrets that have forms: a mark for each name of such a secret.
    pub(super) fn marks(&self) -> Vec<String> {
        let searched = self.marks.iter().enumerate().filter(|(secret, _)| self.secrets.contains(secret));
        let mut marks: Vec<String> = searched.map(|(_, mark)| mark.clone()).collect();
        let others = self.other_names.iter().filter(|(secret, _)| self.secrets.contains(secret));
        marks.extend(others.map(|(_, name)| self.mark(name)));
        marks.sort();
        marks.dedup();
        marks
    }

    /// Replaces all values in a text by their marks.
    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_beginning(text, text.len())
    }

    /// Returns the first `max_bytes` bytes of a text with all values replaced, including a value that crosses the cut.
    pub(super) fn redact_beginning<'t>(&self, text: &'t str, max_bytes: usize) -> Cow<'t, str> {
        let end = text.floor_char_boundary(max_bytes);
        let found = self.find_all(text.as_bytes());
        let mut found = found.into_iter().take_while(|found| found.range.start < end).peekable();
        if found.peek().is_none() {
            return Cow::Borrowed(text.get(..end).unwrap_or_default());
        }
        let mut redacted = String::with_capacity(end);
        let mut at = 0;
        for Found { range, secret } in found {
            redacted.push_str(text.get(at..range.start).unwrap_or_default());
            redacted.push_str(self.mark_of_secret(secret));
            at = range.end;
        }
        redacted.push_str(text.get(at..end).unwrap_or_default());
        Cow::Owned(redacted)
    }

    fn mark_of_secret(&self, secret: usize) -> &str {
        self.marks.get(secret).map_or("***", String::as_str)
    }

    /// Returns whether a text contains a secret value.
    pub(super) fn is_in(&self, text: &str) -> bool {
        !self.find_all(text.as_bytes()).is_empty()
    }

    /// Returns the names of the secrets in a text, each once.
    pub(super) fn names_in(&self, text: &str) -> Vec<&str> {
        let mut names = Vec::new();
        for name in self.find_all(text.as_bytes()).iter().filter_map(|found| self.names.get(found.secret)) {
            if !names.contains(&name.as_str()) {
                names.push(name.as_str());
            }
        }
        names
    }

    /// Finds the values in a text, in all notations. The ranges are in order, do not touch, and consist of whole characters.
    fn find_all(&self, text: &[u8]) -> Vec<Found> {
        if self.is_too_large && !text.is_empty() {
            return vec![Found { range: 0..text.len(), secret: 0 }];
        }
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let notations = Notation::ALL.into_iter().filter(|notation| notation.is_used_in(text));
        let mut found: Vec<Found> =
            notations.flat_map(|notation| self.find_in_notation(notation, automaton, text)).collect();
        found.sort_by_key(|found| found.range.start);
        let mut separate: Vec<Found> = Vec::with_capacity(found.len());
        for Found { range, secret } in found {
            let range = floor_char(text, range.start)..ceil_char(text, range.end);
            match separate.last_mut() {
                // Ranges that touch get one mark.
                Some(last) if range.start <= last.range.end => last.range.end = last.range.end.max(range.end),
                _ => separate.push(Found { range, secret }),
            }
        }
        separate
    }

    /// Finds the values in one notation. Ranges may begin or end within a character.
    fn find_in_notation(&self, notation: Notation, automaton: &NFA, text: &[u8]) -> Vec<Found> {
        let Ok(start) = automaton.start_state(Anchored::No) else { return Vec::new() };
        let (mut state, mut count) = (start, 0_usize);
        let mut decoded: Vec<Found> = Vec::new();
        notation.decode_each(text, |byte, _| {
            count += 1;
            state = automaton.next_state(Anchored::No, state, byte);
            if automaton.is_match(state) {
                decoded.extend(self.longest_match(automaton, state, count));
                join_last(&mut decoded);
            }
        });
        ranges_in_text(notation, text, decoded)
    }

    /// Returns the longest match that ends after the first `count` decoded bytes.
    fn longest_match(&self, automaton: &NFA, state: aho_corasick::automaton::StateID, count: usize) -> Option<Found> {
        let ending = (0..automaton.match_len(state)).map(|index| automaton.match_pattern(state, index));
        let pattern = ending.max_by_key(|pattern| automaton.pattern_len(*pattern))?;
        let secret = *self.secrets.get(pattern.as_usize())?;
        Some(Found { range: count.saturating_sub(automaton.pattern_len(pattern))..count, secret })
    }
}

/// Hides the values.
impl std::fmt::Debug for Patterns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Patterns")
    }
}

impl SecretFinder for Patterns {
    fn find(&self, text: &[u8]) -> Vec<SecretMatch> {
        let found = self.find_all(text).into_iter();
        found
            .map(|Found { range, secret }| SecretMatch { range, mark: self.mark_of_secret(secret).to_owned() })
            .collect()
    }

    fn max_secret_length(&self) -> usize {
        if self.longest_form == 0 { 0 } else { self.longest_form * MAX_ESCAPE_BYTES + MAX_LINE_BREAK_BYTES }
    }
}

/// Returns the start of the character that the byte at `at` belongs to; `at` itself in invalid UTF-8.
fn floor_char(text: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at).rev().find(|at| !is_continuation(text, *at)).unwrap_or(at)
}

/// Returns the first character boundary at or after `at`; `at` itself in invalid UTF-8.
fn ceil_char(text: &[u8], at: usize) -> usize {
    (at..=at + 3).find(|at| !is_continuation(text, *at)).unwrap_or(at)
}

/// Returns whether the byte at `at` continues a UTF-8 character.
fn is_continuation(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| (0x80..0xC0).contains(byte))
}

/// Joins the last match with earlier ones that it overlaps. Matches arrive in the order of their ends.
fn join_last(matches: &mut Vec<Found>) {
    let Some(mut last) = matches.pop() else { return };
    while let Some(before) = matches.pop_if(|before| before.range.end > last.range.start) {
        last = Found { range: before.range.start.min(last.range.start)..last.range.end, secret: before.secret };
    }
    matches.push(last);
}

/// Turns ranges of decoded bytes into ranges of the text.
fn ranges_in_text(notation: Notation, text: &[u8], decoded: Vec<Found>) -> Vec<Found> {
    if decoded.is_empty() {
        return decoded;
    }
    let mut in_text: Vec<Found> = Vec::with_capacity(decoded.len());
    let mut decoded = decoded.into_iter().peekable();
    let mut index = 0;
    notation.decode_each(text, |_, range| {
        if let Some(found) = decoded.peek() {
            if index == found.range.start {
                in_text.push(Found { range: range.clone(), secret: found.secret });
            }
            if let Some(last) = in_text.last_mut().filter(|_| index >= found.range.start) {
                last.range.end = range.end;
            }
            if index + 1 == found.range.end {
                decoded.next();
            }
        }
        index += 1;
    });
    in_text
}

#[cfg(test)]
mod tests;
