//! The choices of a question, and the parsing of a typed line that selects one of them.

use crate::text::sanitized_line;

/// Returns the choice that a line selects, by its text or by its number, from 1. A text takes precedence over a number.
/// Returns `None` for any other text; the engine may still accept it as an answer.
pub fn parse<'a>(choices: &'a [String], line: &str) -> Option<&'a str> {
    let line = line.trim();
    let by_text = choices.iter().find(|choice| choice.trim().eq_ignore_ascii_case(line));
    let by_number = || choices.get(line.parse::<usize>().ok()?.checked_sub(1)?);
    by_text.or_else(by_number).map(String::as_str)
}

/// Returns a hint if the line is a number that no choice has. Returns `None` for any other line.
pub fn out_of_range_hint(choices: &[String], line: &str) -> Option<String> {
    let line = line.trim();
    let is_number = !line.is_empty() && line.chars().all(|c| c.is_ascii_digit());
    let is_unknown = !choices.is_empty() && is_number && parse(choices, line).is_none();
    is_unknown.then(|| format!("There is no choice {line}: type a number from 1 to {}, or a text.", choices.len()))
}

/// Joins choices into one line.
pub fn join(choices: &[String]) -> String {
    choices.iter().map(|choice| sanitized_line(choice)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{join, out_of_range_hint, parse};
    use rstest::rstest;

    #[rstest]
    #[case::by_number("2", Some("did not happen"))]
    #[case::by_text(" Did not happen", Some("did not happen"))]
    #[case::text_before_number("1", Some("1"))]
    #[case::no_such_number("5", None)]
    #[case::zero("0", None)]
    #[case::part_of_a_text("did", None)]
    #[case::nothing("", None)]
    fn a_line_selects_a_choice_by_its_text_or_its_number(#[case] line: &str, #[case] expected: Option<&str>) {
        let choices = ["happened", "did not happen", "1"].map(str::to_owned);
        assert_eq!(parse(&choices, line), expected);
    }

    #[rstest]
    #[case::above("7", true)]
    #[case::below(" 0", true)]
    #[case::longer_than_any_number("99999999999999999999999", true)]
    #[case::in_range("2", false)]
    #[case::words("7 EUR", false)]
    #[case::nothing("", false)]
    fn only_a_number_without_a_choice_gets_a_hint(#[case] line: &str, #[case] expected: bool) {
        let choices = ["yes", "no"].map(str::to_owned);
        assert_eq!(out_of_range_hint(&choices, line).is_some(), expected);
        assert_eq!(out_of_range_hint(&[], line), None);
    }

    #[test]
    fn joined_choices_contain_no_line_break_or_control_character() {
        let choices = ["a\nb", "c\u{1b}[2J\r"].map(str::to_owned);
        assert_eq!(join(&choices), "a b, c [2J ");
    }
}
