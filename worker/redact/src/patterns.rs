//! Finding secret values in texts, all at once and in linear time.

use super::forms;
use super::notation::Notation;
use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use bloomery_files::{Finder, Spot};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// How much longer than a form of a value what a text writes for it may be: `\\u0041` in JSON in JSON for one byte.
const WRITTEN: usize = 8;

/// How many more bytes may stand within it: line breaks.
const BREAKS: usize = 4 * 1024;

/// Values, made ready to be looked for.
#[derive(Default)]
pub(super) struct Patterns {
    automaton: Option<NFA>,
    /// Which secret each pattern is of.
    secrets: Vec<usize>,
    /// What stands in place of each secret.
    marks: Vec<String>,
    /// Further names of a secret, whose value is that of an earlier one.
    others: Vec<(usize, String)>,
    names: Vec<String>,
    /// Nothing can be looked for, so no text is known to be without the values.
    is_blind: bool,
    /// The longest form, in bytes.
    longest: usize,
}

/// A part of a text that is a secret's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    place: Range<usize>,
    secret: usize,
}

impl Patterns {
    /// Makes the values ready, each with the name that stands in its place. Of one value, the first name counts.
    pub(super) fn new<'a>(values: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        // It fails above two thousand million states.
        Self::built(values, |forms| NFA::builder().prefilter(false).build(forms).ok())
    }

    /// The same; where what finds them cannot be built, no text is let through.
    pub(super) fn built<'a>(
        values: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        build: impl FnOnce(&[Vec<u8>]) -> Option<NFA>,
    ) -> Self {
        let mut patterns = Self::default();
        let mut forms: Vec<Vec<u8>> = Vec::new();
        let mut known: BTreeMap<&[u8], usize> = BTreeMap::new();
        for (name, value) in values {
            let secret = patterns.names.len();
            if let Some(first) = known.get(value) {
                patterns.others.push((*first, name.to_owned()));
                continue;
            }
            known.insert(value, secret);
            for form in forms::of_all(value) {
                patterns.longest = patterns.longest.max(form.len());
                forms.push(form);
                patterns.secrets.push(secret);
            }
            patterns.names.push(name.to_owned());
        }
        if !forms.is_empty() {
            patterns.automaton = build(&forms);
            patterns.is_blind = patterns.automaton.is_none();
        }
        patterns.marks = patterns.names.iter().map(|name| patterns.mark(name)).collect();
        patterns
    }

    /// Whether nothing can be looked for: then every text counts as one that holds a value.
    pub(super) fn are_blind(&self) -> bool {
        self.is_blind
    }

    /// How much memory the values take as they are made ready, in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.automaton.as_ref().map_or(0, Automaton::memory_usage)
    }

    /// What stands in place of a secret. A value that is a word of the mark itself (some name a password `password`)
    /// makes it shorter.
    fn mark(&self, name: &str) -> String {
        let marks = [format!("[redacted: {name}]"), "[redacted]".to_owned()];
        let harmless = marks.into_iter().find(|mark| self.find(mark.as_bytes()).is_empty());
        harmless.unwrap_or_else(|| "***".to_owned())
    }

    /// What may stand in place of a secret in a text, whichever of its names is taken for it.
    pub(super) fn marks(&self) -> Vec<String> {
        let marked = self.marks.iter().enumerate().filter(|(secret, _)| self.secrets.contains(secret));
        let mut marks: Vec<String> = marked.map(|(_, mark)| mark.clone()).collect();
        let others = self.others.iter().filter(|(secret, _)| self.secrets.contains(secret));
        marks.extend(others.map(|(_, name)| self.mark(name)));
        marks.sort();
        marks.dedup();
        marks
    }

    /// Puts the marks in place of what is found.
    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.beginning(text, text.len())
    }

    /// The same for the first `most` bytes of a text. What is found there may go on behind them.
    pub(super) fn beginning<'t>(&self, text: &'t str, most: usize) -> Cow<'t, str> {
        let end = text.floor_char_boundary(most);
        let mut found = self.find(text.as_bytes()).into_iter().take_while(|found| found.place.start < end).peekable();
        if found.peek().is_none() {
            return Cow::Borrowed(text.get(..end).unwrap_or_default());
        }
        let mut redacted = String::with_capacity(end);
        let mut at = 0;
        for Found { place, secret } in found {
            redacted.push_str(text.get(at..place.start).unwrap_or_default());
            redacted.push_str(self.marked(secret));
            at = place.end;
        }
        redacted.push_str(text.get(at..end).unwrap_or_default());
        Cow::Owned(redacted)
    }

    fn marked(&self, secret: usize) -> &str {
        self.marks.get(secret).map_or("***", String::as_str)
    }

    /// Whether a text holds any of the values.
    pub(super) fn is_in(&self, text: &str) -> bool {
        !self.find(text.as_bytes()).is_empty()
    }

    /// The names of the secrets that a text holds, each once.
    pub(super) fn names_in(&self, text: &str) -> Vec<&str> {
        let mut names = Vec::new();
        for name in self.find(text.as_bytes()).iter().filter_map(|found| self.names.get(found.secret)) {
            if !names.contains(&name.as_str()) {
                names.push(name.as_str());
            }
        }
        names
    }

    /// The parts of a text that are to go: in order, apart from one another, whole characters.
    fn find(&self, text: &[u8]) -> Vec<Found> {
        if self.is_blind && !text.is_empty() {
            return vec![Found { place: 0..text.len(), secret: 0 }];
        }
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let notations = Notation::ALL.into_iter().filter(|notation| notation.is_in(text));
        let mut found: Vec<Found> = notations.flat_map(|notation| self.find_as(notation, automaton, text)).collect();
        found.sort_by_key(|found| found.place.start);
        let mut apart: Vec<Found> = Vec::with_capacity(found.len());
        for Found { place, secret } in found {
            let place = floor(text, place.start)..ceil(text, place.end);
            match apart.last_mut() {
                // Parts that touch are one: between two marks would stand nothing.
                Some(last) if place.start <= last.place.end => last.place.end = last.place.end.max(place.end),
                _ => apart.push(Found { place, secret }),
            }
        }
        apart
    }

    /// The same for one notation, where parts may begin within characters.
    fn find_as(&self, notation: Notation, automaton: &NFA, text: &[u8]) -> Vec<Found> {
        let Ok(start) = automaton.start_state(Anchored::No) else { return Vec::new() };
        let (mut state, mut read) = (start, 0_usize);
        let mut meant: Vec<Found> = Vec::new();
        notation.read(text, |byte, _| {
            read += 1;
            state = automaton.next_state(Anchored::No, state, byte);
            if automaton.is_match(state) {
                meant.extend(self.longest(automaton, state, read));
                join_last(&mut meant);
            }
        });
        places(notation, text, meant)
    }

    /// The longest pattern that ends where `read` bytes are read.
    fn longest(&self, automaton: &NFA, state: aho_corasick::automaton::StateID, read: usize) -> Option<Found> {
        let ending = (0..automaton.match_len(state)).map(|index| automaton.match_pattern(state, index));
        let pattern = ending.max_by_key(|pattern| automaton.pattern_len(*pattern))?;
        let secret = *self.secrets.get(pattern.as_usize())?;
        Some(Found { place: read.saturating_sub(automaton.pattern_len(pattern))..read, secret })
    }
}

/// Without the values.
impl std::fmt::Debug for Patterns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Patterns")
    }
}

impl Finder for Patterns {
    fn find(&self, text: &[u8]) -> Vec<Spot> {
        let found = self.find(text).into_iter();
        found.map(|Found { place, secret }| Spot { place, mark: self.marked(secret).to_owned() }).collect()
    }

    fn reach(&self) -> usize {
        if self.longest == 0 { 0 } else { self.longest * WRITTEN + BREAKS }
    }
}

/// Where the character begins that a byte belongs to. Of what is no UTF-8, no more than a character is looked at.
fn floor(text: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at).rev().find(|at| !goes_on(text, *at)).unwrap_or(at)
}

/// Where it ends, if it does not end here.
fn ceil(text: &[u8], at: usize) -> usize {
    (at..=at + 3).find(|at| !goes_on(text, *at)).unwrap_or(at)
}

fn goes_on(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| (0x80..0xC0).contains(byte))
}

/// Makes one of the last part and those before that it overlaps: parts come in the order of their ends.
fn join_last(parts: &mut Vec<Found>) {
    let Some(mut last) = parts.pop() else { return };
    while let Some(before) = parts.pop_if(|before| before.place.end > last.place.start) {
        last = Found { place: before.place.start.min(last.place.start)..last.place.end, secret: before.secret };
    }
    parts.push(last);
}

/// Where in the text the parts stand, which are counted in bytes that it means.
fn places(notation: Notation, text: &[u8], meant: Vec<Found>) -> Vec<Found> {
    if meant.is_empty() {
        return meant;
    }
    let mut placed: Vec<Found> = Vec::with_capacity(meant.len());
    let mut meant = meant.into_iter().peekable();
    let mut read = 0;
    notation.read(text, |_, place| {
        if let Some(part) = meant.peek() {
            if read == part.place.start {
                placed.push(Found { place: place.clone(), secret: part.secret });
            }
            if let Some(last) = placed.last_mut().filter(|_| read >= part.place.start) {
                last.place.end = place.end;
            }
            if read + 1 == part.place.end {
                meant.next();
            }
        }
        read += 1;
    });
    placed
}

#[cfg(test)]
mod tests;
