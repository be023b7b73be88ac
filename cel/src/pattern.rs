//! The patterns of `matches()`.

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use std::fmt;

/// The largest program of a pattern, in bytes. It bounds the memory and the time of each match.
const MAX_PROGRAM_BYTES: usize = 256 * 1024;

/// The greatest depth of brackets in a pattern.
const MAX_NESTING: u32 = 24;

/// A compiled regular expression. It matches in time that is linear in the text.
#[derive(Clone)]
pub struct Pattern(Regex);

/// A capital letter of ASCII that matches of a pattern have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capital {
    /// The letter, or the first one of a class such as `[A-Z]`.
    pub letter: char,
    /// Whether each match has a capital letter. Otherwise, only the matches of a part of the pattern have one.
    pub is_in_each_match: bool,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// A sentence, if the pattern is invalid or too large.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        builder.size_limit(MAX_PROGRAM_BYTES).dfa_size_limit(MAX_PROGRAM_BYTES).nest_limit(MAX_NESTING);
        builder.build().map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => format!("its program is larger than {MAX_PROGRAM_BYTES} bytes"),
            // The other lines show the place in the pattern.
            other => other.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        })
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns whether each match begins where the text begins, or ends where the text ends.
    pub fn is_anchored(&self) -> bool {
        let Some(hir) = self.syntax() else { return false };
        let properties = hir.properties();
        properties.look_set_prefix().contains(Look::Start) || properties.look_set_suffix().contains(Look::End)
    }

    /// Returns whether each match begins with a certain letter or digit, so that any text may be before it: `own[.]com$` matches
    /// `evil-own.com`.
    pub fn begins_within_a_word(&self) -> bool {
        self.syntax().is_some_and(|hir| first_byte(&hir).is_some_and(|byte| byte.is_ascii_alphanumeric()))
    }

    /// Returns a capital letter of ASCII without which the pattern, or a part of it, does not match.
    pub fn capital(&self) -> Option<Capital> {
        let hir = self.syntax()?;
        let in_each_match = capital_of(&hir).map(|letter| Capital { letter, is_in_each_match: true });
        in_each_match.or_else(|| capital_within(&hir).map(|letter| Capital { letter, is_in_each_match: false }))
    }

    /// Returns the pattern, parsed as when it was compiled.
    fn syntax(&self) -> Option<Hir> {
        regex_syntax::parse(self.as_str()).ok()
    }

    /// Returns whether the pattern matches a part of a text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Returns the first byte of each match of a part, if it is known.
fn first_byte(hir: &Hir) -> Option<u8> {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.first().copied(),
        HirKind::Capture(capture) => first_byte(&capture.sub),
        HirKind::Concat(parts) => first_byte(parts.first()?),
        _ => None,
    }
}

/// Returns a capital letter of ASCII if each match of a part has one.
fn capital_of(hir: &Hir) -> Option<char> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            literal.0.iter().find(|byte| byte.is_ascii_uppercase()).map(|byte| char::from(*byte))
        }
        HirKind::Class(class) => {
            let ranges: Vec<(char, char)> = match class {
                Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
                Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
            };
            let are_all = ranges.iter().all(|(start, end)| start.is_ascii_uppercase() && end.is_ascii_uppercase());
            ranges.first().filter(|_| are_all).map(|(start, _)| *start)
        }
        HirKind::Repetition(repetition) if repetition.min > 0 => capital_of(&repetition.sub),
        HirKind::Capture(capture) => capital_of(&capture.sub),
        HirKind::Concat(parts) => parts.iter().find_map(capital_of),
        HirKind::Alternation(parts) => parts.iter().map(capital_of).collect::<Option<Vec<char>>>()?.first().copied(),
        HirKind::Empty | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

/// Returns a capital letter of ASCII that each match of some part within a part has.
fn capital_within(hir: &Hir) -> Option<char> {
    capital_of(hir).or_else(|| hir.kind().subs().iter().find_map(capital_within))
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::at_both_ends("^own[.]com$", true)]
    #[case::at_its_beginning("^https://own[.]com/", true)]
    #[case::at_its_end("@own[.]com$", true)]
    #[case::of_all_alternatives("^(a|b)", true)]
    #[case::in_a_group("(?:^own)", true)]
    #[case::nowhere("own[.]com", false)]
    #[case::of_one_alternative_each("^a|b$", false)]
    #[case::of_lines("(?m)^own$", false)]
    #[case::within_brackets("[^a]b[$]", false)]
    #[case::an_optional_anchor("(^a)?b", false)]
    fn the_anchors_of_a_pattern_are_known(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(Pattern::compile(text).unwrap().is_anchored(), expected);
    }

    #[rstest]
    #[case::a_name("own[.]com$", true)]
    #[case::a_name_in_a_group("(own)[.]com$", true)]
    #[case::after_a_dot("[.]own[.]com$", false)]
    #[case::after_a_dot_or_nothing("(^|[.])own[.]com$", false)]
    #[case::at_the_beginning("^own[.]com$", false)]
    #[case::after_an_at_sign("@own[.]com$", false)]
    #[case::after_any_name("[a-z]+[.]own[.]com$", false)]
    fn the_beginning_of_a_pattern_is_known(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(Pattern::compile(text).unwrap().begins_within_a_word(), expected);
    }

    #[rstest]
    #[case::a_literal("HTTP:", Some(('H', true)))]
    #[case::a_class("[A-Z]{2}[0-9]+", Some(('A', true)))]
    #[case::all_alternatives("^(HTTP|[F-G]tp):", Some(('H', true)))]
    #[case::one_alternative("http:|HTTP:", Some(('H', false)))]
    #[case::an_optional_class("x[X-Z]*", Some(('X', false)))]
    #[case::a_name_of_a_group("(?P<A>x)", None)]
    #[case::both_cases("(?i)HTTP|[A-Za-z]x", None)]
    #[case::all_but_some("[^a-z]", None)]
    #[case::an_escape("\\W\\S+", None)]
    fn the_capital_letters_of_a_pattern_are_known(#[case] text: &str, #[case] expected: Option<(char, bool)>) {
        let found = Pattern::compile(text).unwrap().capital();
        assert_eq!(found.map(|found| (found.letter, found.is_in_each_match)), expected);
    }
}
