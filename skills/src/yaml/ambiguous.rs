//! Unquoted words that kubectl reads differently from YAML 1.2.

use super::scalar::has_leading_zero;

/// Returns how kubectl reads an unquoted word that is a text in YAML 1.2, or `None` if kubectl also reads a text.
pub(crate) fn kubectl_reading(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" | "on" => return Some("true"),
        "n" | "no" | "off" => return Some("false"),
        _ => {}
    }
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    let is_digit = |c: char| c.is_ascii_digit() || c == '_';
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit())
        && unsigned.chars().all(is_digit)
        && (unsigned.contains('_') || has_leading_zero(unsigned));
    is_number.then_some("a number")
}

#[cfg(test)]
mod tests {
    use super::kubectl_reading;
    use rstest::rstest;

    #[rstest]
    #[case("yes", Some("true"))]
    #[case("Off", Some("false"))]
    #[case("010", Some("a number"))]
    #[case("1_000", Some("a number"))]
    #[case("_1", None)]
    #[case("always", None)]
    #[case("1,000", None)]
    fn words_of_yaml_1_1_are_found(#[case] word: &str, #[case] expected: Option<&str>) {
        assert_eq!(kubectl_reading(word), expected);
    }
}
