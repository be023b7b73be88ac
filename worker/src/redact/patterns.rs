//! Finding secret values in texts, all at once and in linear time.

use super::forms;
use super::notation::Notation;
use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use std::borrow::Cow;
use std::ops::Range;

/// Values, made ready to be looked for.
#[derive(Default)]
pub(super) struct Patterns {
    automaton: Option<NFA>,
    /// Which secret each pattern is of.
    secrets: Vec<usize>,
    /// What stands in place of each secret.
    marks: Vec<String>,
    names: Vec<String>,
    /// Nothing can be looked for, so no text is known to be without the values.
    is_blind: bool,
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
        for (name, value) in values {
            let secret = patterns.names.len();
            for form in forms::of(value) {
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

    /// What stands in place of a secret. A value that is a word of the mark itself (some name a password `password`)
    /// makes it shorter.
    fn mark(&self, name: &str) -> String {
        let marks = [format!("[redacted: {name}]"), "[redacted]".to_owned()];
        let harmless = marks.into_iter().find(|mark| self.find(mark).is_empty());
        harmless.unwrap_or_else(|| "***".to_owned())
    }

    /// What may stand in place of a secret in a text.
    pub(super) fn marks(&self) -> Vec<String> {
        let marked = self.marks.iter().enumerate().filter(|(secret, _)| self.secrets.contains(secret));
        let mut marks: Vec<String> = marked.map(|(_, mark)| mark.clone()).collect();
        marks.sort();
        marks.dedup();
        marks
    }

    /// Puts the marks in place of what is found.
    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut at = 0;
        for Found { place, secret } in found {
            redacted.push_str(text.get(at..place.start).unwrap_or_default());
            redacted.push_str(self.marks.get(secret).map_or("***", String::as_str));
            at = place.end;
        }
        redacted.push_str(text.get(at..).unwrap_or_default());
        Cow::Owned(redacted)
    }

    /// Whether a text holds any of the values.
    pub(super) fn is_in(&self, text: &str) -> bool {
        !self.find(text).is_empty()
    }

    /// The names of the secrets that a text holds, each once.
    pub(super) fn names_in(&self, text: &str) -> Vec<&str> {
        let mut names = Vec::new();
        for name in self.find(text).iter().filter_map(|found| self.names.get(found.secret)) {
            if !names.contains(&name.as_str()) {
                names.push(name.as_str());
            }
        }
        names
    }

    /// The parts of a text that are to go: in order, apart from one another, whole characters.
    fn find(&self, text: &str) -> Vec<Found> {
        if self.is_blind && !text.is_empty() {
            return vec![Found { place: 0..text.len(), secret: 0 }];
        }
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let bytes = text.as_bytes();
        let notations = Notation::ALL.into_iter().filter(|notation| notation.is_in(bytes));
        let mut found: Vec<Found> = notations.flat_map(|notation| self.find_as(notation, automaton, bytes)).collect();
        found.sort_by_key(|found| found.place.start);
        let mut apart: Vec<Found> = Vec::with_capacity(found.len());
        for Found { place, secret } in found {
            let place = text.floor_char_boundary(place.start)..text.ceil_char_boundary(place.end);
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
