//! Texts that a part of a condition never has: `host(url) == 'Bit.ly'`.

use bloomery_cel::{Function, is_host, is_part_of_host};

/// The form of the texts that a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The name of a host in lower case, by `host()` or `domain()`.
    Host(Function),
    /// A text without capital letters, by `lowerAscii()`.
    Lower,
}

/// The way in which a text is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// With the whole value.
    Whole,
    /// With a part of the value, by `contains`, `startsWith` or `endsWith`.
    Part,
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
            (Self::Host(_), Comparison::Part) => is_part_of_host(text),
            (Self::Lower, _) => !text.bytes().any(|byte| byte.is_ascii_uppercase()),
        };
        let verb = if comparison == Comparison::Whole { "is never" } else { "never contains" };
        (!may_be).then(|| match self {
            Self::Host(function) => {
                format!("{function}() {verb} {text:?}: it returns only the name of a host, in lower case")
            }
            Self::Lower => format!("lowerAscii() {verb} {text:?}: it returns no capital letters"),
        })
    }
}

/// Returns the fault of a text with which a value of a form is compared.
pub fn text_fault(form: Option<Form>, text: &str, comparison: Comparison) -> Option<TextFault> {
    if let Some(sentence) = form.and_then(|form| form.refusal(text, comparison)) {
        let instead = form.and_then(|form| meant(form, text, comparison));
        return Some(TextFault { sentence, is_certain: true, instead });
    }
    let trimmed = without_quotes(text);
    let is_unlikely = comparison == Comparison::Whole && trimmed != text && !trimmed.is_empty();
    is_unlikely.then(|| TextFault {
        sentence: format!("{text:?} has blanks or quotes at its ends, and a value must have the same"),
        is_certain: false,
        instead: Some(trimmed.to_owned()),
    })
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
}
