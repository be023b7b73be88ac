//! Which of some choices a typed line means.

/// The choice that a line has the words of, or else its number, from 1. None where it is something else, which the engine
/// may take all the same.
pub fn meant<'a>(choices: &'a [String], line: &str) -> Option<&'a str> {
    let line = line.trim();
    let in_words = choices.iter().find(|choice| choice.trim().eq_ignore_ascii_case(line));
    let by_number = || choices.get(line.parse::<usize>().ok()?.checked_sub(1)?);
    in_words.or_else(by_number).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::meant;
    use rstest::rstest;

    #[rstest]
    #[case::by_number("2", Some("did not happen"))]
    #[case::in_words(" Did not happen", Some("did not happen"))]
    #[case::words_come_before_numbers("1", Some("1"))]
    #[case::no_such_number("5", None)]
    #[case::below_all("0", None)]
    #[case::not_whole("did", None)]
    #[case::nothing("", None)]
    fn a_line_means_a_choice_by_its_words_or_its_number(#[case] line: &str, #[case] expected: Option<&str>) {
        let choices = ["happened", "did not happen", "1"].map(str::to_owned);
        assert_eq!(meant(&choices, line), expected);
    }
}
