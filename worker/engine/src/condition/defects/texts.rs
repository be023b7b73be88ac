//! Texts that a part of a condition never has: `host(url) == 'Bit.ly'`.

use bloomery_cel::{Capital, Function, Pattern, is_host, is_part_of_host};
use bloomery_crds::nearest::nearest;
use serde_json::Number;
use std::collections::BTreeSet;

/// The beginning of the sentence about a text that a value never has.
const NEVER_TRUE: &str = "the comparison can never be true";

/// The form of the texts that a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The name of a host in lower case, by `host()` or `domain()`.
    Host(Function),
    /// A text without capital letters, by `lowerAscii()`.
    Lower,
}

/// The most values of a schema in a sentence.
const MAX_SHOWN_VALUES: usize = 8;

/// The way in which a text is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// With the whole value.
    Whole,
    /// With a part of the value, by `contains`, `startsWith` or `endsWith` where it holds or denies calls.
    Part,
    /// With a part of the value, by `contains` or `startsWith` where calls may pass because of it.
    PassingPart,
    /// With the end of the value, by `endsWith` where calls may pass because of it.
    End,
}

/// A text that an author probably does not mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFault {
    /// The sentence, without the text.
    pub sentence: String,
    /// Whether the value never has the text. Otherwise, it is only unlikely.
    pub is_certain: bool,
    /// The text that the author probably means.
    pub instead: Option<String>,
}

impl Form {
    /// Returns the form of the texts that a function returns. `operand` is the form of its operand.
    pub(super) fn returned_by(function: Function, operand: Option<Self>) -> Option<Self> {
        match function {
            Function::Host | Function::Domain => Some(Self::Host(function)),
            Function::LowerAscii => operand.or(Some(Self::Lower)),
            _ => None,
        }
    }

    /// Returns the reason why a value of this form never has a text.
    fn refusal(self, text: &str, comparison: Comparison) -> Option<String> {
        let may_be = match (self, comparison) {
            (Self::Host(_), Comparison::Whole) => is_host(text),
            (Self::Host(_), Comparison::Part | Comparison::PassingPart | Comparison::End) => is_part_of_host(text),
            (Self::Lower, _) => !text.bytes().any(|byte| byte.is_ascii_uppercase()),
        };
        let verb = if comparison == Comparison::Whole { "is never" } else { "never contains" };
        (!may_be).then(|| match self {
            Self::Host(function) => {
                format!("{NEVER_TRUE}: {function}() {verb} {text:?}: it returns only the name of a host, in lower case")
            }
            Self::Lower => format!("{NEVER_TRUE}: lowerAscii() {verb} {text:?}: it returns no capital letters"),
        })
    }

    fn function(self) -> Function {
        match self {
            Self::Host(function) => function,
            Self::Lower => Function::LowerAscii,
        }
    }
}

/// Returns the fault of a text with which a value of a form is compared.
pub fn text_fault(form: Option<Form>, text: &str, comparison: Comparison) -> Option<TextFault> {
    if let Some(sentence) = form.and_then(|form| form.refusal(text, comparison)) {
        let instead = form.and_then(|form| meant(form, text, comparison));
        return Some(TextFault { sentence, is_certain: true, instead });
    }
    if let Some(Form::Host(function)) = form
        && let Some(fault) = look_alike(function, text, comparison)
    {
        return Some(fault);
    }
    let trimmed = without_quotes(text);
    if comparison == Comparison::Whole && trimmed != text && !trimmed.is_empty() {
        let sentence = format!("{text:?} has blanks or quotes at its ends, and a value must have the same");
        return Some(TextFault { sentence, is_certain: false, instead: Some(trimmed.to_owned()) });
    }
    if comparison == Comparison::End && text.contains('.') && !text.starts_with('.') && is_host(text) {
        let sentence = format!(
            "a text ends with {text:?} also if it ends with \"evil-{text}\": write \"@{text}\" or \".{text}\", or compare \
             host(...) or domain(...)"
        );
        return Some(TextFault { sentence, is_certain: false, instead: None });
    }
    let is_wildcard = (text.starts_with('*') || text.ends_with('*'))
        && text.contains(|c: char| c.is_alphanumeric())
        && !text.contains(char::is_whitespace);
    is_wildcard.then(|| TextFault {
        sentence: format!(
            "{text:?} has a \"*\", which stands only for itself here: write startsWith(), endsWith() or matches()"
        ),
        is_certain: false,
        instead: None,
    })
}

/// Returns the fault of a name of a host that the names of others contain too, if it lets a call pass. `function` returns the value. It is
/// not certain for a part without a dot, such as `internal`.
fn look_alike(function: Function, text: &str, comparison: Comparison) -> Option<TextFault> {
    let name = text.trim_matches('.');
    let (verb, other, is_certain) = match comparison {
        Comparison::End if !text.starts_with('.') && text.contains('.') => ("ends with", format!("evil-{text}"), true),
        Comparison::PassingPart if !name.is_empty() => {
            let before = if text.starts_with('.') { "a." } else { "" };
            ("contains", format!("{before}{name}.evil.org"), name.contains('.'))
        }
        _ => return None,
    };
    let sentence = format!(
        "{function}() {verb} {text:?} also for {other:?}: write {function}(...) == '{name}' || \
         {function}(...).endsWith('.{name}')"
    );
    Some(TextFault { sentence, is_certain, instead: None })
}

/// Returns the fault of a text that is not among the values that a schema allows.
pub fn value_fault(path: &str, text: &str, allowed: &BTreeSet<String>) -> TextFault {
    let shown: Vec<String> = allowed.iter().take(MAX_SHOWN_VALUES).map(|value| format!("{value:?}")).collect();
    TextFault {
        sentence: format!("{NEVER_TRUE}: {path} is never {text:?}, only {}", shown.join(", ")),
        is_certain: true,
        instead: nearest(text, allowed.iter().map(String::as_str)).map(str::to_owned),
    }
}

/// Returns the fault of a number that is not among those that a schema allows.
pub(super) fn number_fault(path: &str, number: f64, allowed: &[Number]) -> TextFault {
    let shown: Vec<String> = allowed.iter().take(MAX_SHOWN_VALUES).map(Number::to_string).collect();
    TextFault {
        sentence: format!("{NEVER_TRUE}: {path} is never {number}, only {}", shown.join(", ")),
        is_certain: true,
        instead: None,
    }
}

/// Returns the fault of a number that is written as a text, if values are ordered by it. A number with a leading zero, such as `09`, is
/// no fault: its author means texts of one length. A year is a fault, because an amount may have as many digits.
pub(super) fn order_fault(text: &str) -> Option<TextFault> {
    text.trim().parse::<f64>().ok().filter(|_| text.contains(|c: char| c.is_ascii_digit()))?;
    if text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let sentence = format!(
        "the comparison is that of texts, letter by letter, and \"1000\" comes before {text:?}: compare numbers, as in \
         double(...) > 500.0, or whole dates, as in ... >= '2026-01-01'"
    );
    Some(TextFault { sentence, is_certain: true, instead: None })
}

/// Returns the fault of a pattern that demands a capital letter, for a value that has none. It is certain only if each match has the
/// letter.
pub(super) fn pattern_fault(form: Form, pattern: &Pattern) -> Option<TextFault> {
    let Capital { letter, is_in_each_match } = pattern.capital()?;
    let text = pattern.as_str();
    let function = form.function();
    let consequence =
        if is_in_each_match { "so the pattern never matches" } else { "so a part of the pattern never matches" };
    let sentence = format!("{function}() returns no capital letter such as {letter:?}, {consequence}");
    let instead = Some(text.to_ascii_lowercase()).filter(|_| !text.contains('\\'));
    Some(TextFault { sentence, is_certain: is_in_each_match, instead })
}

/// Returns the text that an author probably means, if a value of the form can have it.
fn meant(form: Form, text: &str, comparison: Comparison) -> Option<String> {
    let lower = without_quotes(text).to_ascii_lowercase();
    let without_scheme = lower.split_once("://").map_or(lower.as_str(), |(_, rest)| rest);
    let host = without_scheme.trim_start_matches('@').trim_end_matches('/');
    let candidates = [lower.as_str(), host];
    let is_possible = |candidate: &&str| form.refusal(candidate, comparison).is_none() && !candidate.is_empty();
    candidates.into_iter().find(is_possible).map(str::to_owned)
}

/// Returns a text without blanks and one pair of quotes around it, and without the dash of a YAML list.
fn without_quotes(text: &str) -> &str {
    let text = text.trim();
    let text = text.strip_prefix("- ").unwrap_or(text).trim();
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const HOST: Option<Form> = Some(Form::Host(Function::Host));

    #[rstest]
    #[case::capitals(HOST, "Bit.ly", Comparison::Whole, Some((true, Some("bit.ly"))))]
    #[case::an_at_sign(Some(Form::Host(Function::Domain)), "@evil.com", Comparison::Whole, Some((true, Some("evil.com"))))]
    #[case::a_url(HOST, "https://own.com/", Comparison::Whole, Some((true, Some("own.com"))))]
    #[case::a_path(HOST, "own.com/a", Comparison::Whole, Some((true, None)))]
    #[case::a_blank(HOST, "own.com ", Comparison::Whole, Some((true, Some("own.com"))))]
    #[case::quotes(HOST, "\"own.com\"", Comparison::Whole, Some((true, Some("own.com"))))]
    #[case::an_item_of_yaml(HOST, "- own.com", Comparison::Whole, Some((true, Some("own.com"))))]
    #[case::a_host(HOST, "own.com", Comparison::Whole, None)]
    #[case::the_end_of_an_address(HOST, "@own.com", Comparison::Part, Some((true, Some("own.com"))))]
    #[case::the_end_of_a_host(HOST, ".own.com", Comparison::Part, None)]
    #[case::capitals_in_lower_case(Some(Form::Lower), "HTTP", Comparison::Part, Some((true, Some("http"))))]
    #[case::a_blank_in_a_part(Some(Form::Lower), "pay ", Comparison::Part, None)]
    #[case::quotes_of_a_plain_text(None, "'ada'", Comparison::Whole, Some((false, Some("ada"))))]
    #[case::a_blank_of_a_plain_text(None, " ada", Comparison::Whole, Some((false, Some("ada"))))]
    #[case::a_plain_text(None, "Ada", Comparison::Whole, None)]
    #[case::the_end_of_another_host(HOST, "own.com", Comparison::End, Some((true, None)))]
    #[case::the_end_after_a_dot(HOST, ".own.com", Comparison::End, None)]
    #[case::a_top_level_domain(HOST, "com", Comparison::End, None)]
    #[case::a_part_of_another_host(HOST, "own.com", Comparison::PassingPart, Some((true, None)))]
    #[case::a_part_after_a_dot(HOST, ".own.com", Comparison::PassingPart, Some((true, None)))]
    #[case::a_part_without_a_dot(HOST, "own", Comparison::PassingPart, Some((false, None)))]
    #[case::a_part_of_a_plain_text(None, "own.com", Comparison::PassingPart, None)]
    #[case::the_end_of_another_address(None, "own.com", Comparison::End, Some((false, None)))]
    #[case::the_end_of_an_own_address(None, "@own.com", Comparison::End, None)]
    #[case::the_end_of_a_file(None, ".md", Comparison::End, None)]
    #[case::a_wildcard(None, "*@own.com", Comparison::Whole, Some((false, None)))]
    #[case::a_wildcard_in_a_part(None, "own.*", Comparison::Part, Some((false, None)))]
    #[case::only_a_star(None, "**", Comparison::Part, None)]
    #[case::a_statement(None, "SELECT *", Comparison::Part, None)]
    #[case::only_a_blank(None, " ", Comparison::Whole, None)]
    fn a_text_that_a_value_never_has_is_a_fault(
        #[case] form: Option<Form>,
        #[case] text: &str,
        #[case] comparison: Comparison,
        #[case] expected: Option<(bool, Option<&str>)>,
    ) {
        let fault = text_fault(form, text, comparison);
        assert_eq!(fault.as_ref().map(|fault| (fault.is_certain, fault.instead.as_deref())), expected, "{fault:?}");
    }

    #[rstest]
    #[case::a_number("500", true)]
    #[case::a_fraction("0.5", true)]
    #[case::zero("0", true)]
    #[case::a_year("2026", true)]
    #[case::a_date("2026-01-01", false)]
    #[case::a_month("2026-01", false)]
    #[case::a_time("09:00", false)]
    #[case::an_hour_of_two_digits("09", false)]
    #[case::a_word("a9", false)]
    fn texts_are_not_ordered_by_a_number(#[case] text: &str, #[case] is_fault: bool) {
        assert_eq!(order_fault(text).is_some(), is_fault);
    }

    #[rstest]
    #[case::a_capital("HTTP:", Some(true))]
    #[case::an_alternative("http:|HTTP:", Some(false))]
    #[case::an_optional_part("(HTTP)?:", Some(false))]
    #[case::a_class("[A-Z]+", Some(true))]
    #[case::both_cases("[A-Za-z]+", None)]
    #[case::an_escape("\\W\\S+", None)]
    #[case::the_case_does_not_matter("(?i)HTTP:", None)]
    #[case::a_group("(?:HTTP)", Some(true))]
    fn a_capital_letter_in_a_pattern_is_never_in_a_text_without_any(
        #[case] text: &str,
        #[case] is_certain: Option<bool>,
    ) {
        let condition = crate::condition::Condition::compile(&format!("x.matches(r'{text}')")).unwrap();
        let nodes = condition.nodes();
        let pattern = nodes.iter().find_map(|node| match node {
            bloomery_cel::Node::Matches(_, pattern) => Some(pattern),
            _ => None,
        });
        let fault = pattern_fault(Form::Lower, pattern.unwrap());
        assert_eq!(fault.map(|fault| fault.is_certain), is_certain);
    }
}
