//! The form in which values are compared: `docs/explanation/tools.md`, section "Sources of values".

use super::iban;
use std::borrow::Cow;

/// The longest value whose source is searched, in bytes.
pub(super) const MAX_VALUE_BYTES: usize = 1024;

/// The number of digits between two commas of a number.
pub(super) const GROUP_DIGITS: usize = 3;

/// Returns a text with each run of blanks as one space, and none at its ends.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    Cow::Owned(plain)
}

/// Returns whether all blanks in a text are single spaces between words.
fn is_plain(text: &str) -> bool {
    let mut last = ' ';
    for c in text.chars() {
        if c.is_whitespace() && (c != ' ' || last == ' ') {
            return false;
        }
        last = c;
    }
    last != ' ' || text.is_empty()
}

/// Returns the form of a value that several spellings share: a decimal number without useless zeros, or an IBAN without spaces. `None`
/// for any other value.
pub(super) fn number_or_iban(value: &str) -> Option<String> {
    decimal(value).or_else(|| iban::compact(value))
}

/// Returns the key of a value. Values with the same key are the same. `None` if the value is empty or too long.
pub(super) fn key(value: &str) -> Option<String> {
    let plain = plain(value);
    if plain.is_empty() || plain.len() > MAX_VALUE_BYTES {
        return None;
    }
    if let Some(form) = number_or_iban(&plain) {
        return Some(form);
    }
    let plain = without_final_slash(&plain);
    let (head, path) = split_path(plain);
    Some(head.to_ascii_lowercase() + path)
}

/// Splits a value before its path. The case of a path matters, that of everything else does not.
pub(super) fn split_path(value: &str) -> (&str, &str) {
    // Most values have none, and the search for a text takes longer than that for a character.
    if !value.contains('/') {
        return (value, "");
    }
    let authority = value.find("://").map_or(0, |at| at + 3);
    let path = value.get(authority..).and_then(|rest| rest.find('/')).map_or(value.len(), |at| authority + at);
    value.split_at_checked(path).unwrap_or((value, ""))
}

/// Returns a URL without path and without its final slash. Other values stay the same.
pub(super) fn without_final_slash(value: &str) -> &str {
    match split_path(value) {
        (head, "/") if head.contains("://") => head,
        _ => value,
    }
}

/// Reads `12`, `-12`, `12.50`, `1,200.50`, `84,30` or `1.200,50`, and omits the separators and the zeros that change nothing.
pub(super) fn decimal(text: &str) -> Option<String> {
    let text = with_decimal_point(text);
    let text = text.as_ref();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').map_or((digits, "0"), |(whole, fraction)| (whole, fraction));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let whole = without_commas(whole)?;
    // An identifier may begin with zeros.
    let is_number = all_digits(&whole) && all_digits(fraction) && (whole == "0" || !whole.starts_with('0'));
    let sign = if text.starts_with('-') { "-" } else { "" };
    let fraction = fraction.trim_end_matches('0');
    is_number.then(|| if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

/// Returns a number with a decimal comma in the form with a decimal point: `1.200,50` is `1,200.50`. A comma before three digits is none.
fn with_decimal_point(text: &str) -> Cow<'_, str> {
    let has_comma = text.rsplit_once(',').is_some_and(|(whole, fraction)| {
        (1..GROUP_DIGITS).contains(&fraction.len()) && !fraction.contains('.') && !whole.contains(',')
    });
    if !has_comma {
        return Cow::Borrowed(text);
    }
    let swap = |c| match c {
        ',' => '.',
        '.' => ',',
        other => other,
    };
    Cow::Owned(text.chars().map(swap).collect())
}

/// Joins groups of three digits: `1,200` is `1200`. `None` if commas are at other places.
fn without_commas(whole: &str) -> Option<Cow<'_, str>> {
    let Some((first, groups)) = whole.split_once(',') else { return Some(Cow::Borrowed(whole)) };
    let is_grouped =
        (1..=GROUP_DIGITS).contains(&first.len()) && groups.split(',').all(|group| group.len() == GROUP_DIGITS);
    is_grouped.then(|| Cow::Owned(whole.replace(',', "")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::blanks(" Ada \t Lovelace\n", "ada lovelace")]
    #[case::an_address("Ada@Own.com", "ada@own.com")]
    #[case::a_url("HTTPS://Own.com/A/b", "https://own.com/A/b")]
    #[case::a_url_without_path("https://Own.com/", "https://own.com")]
    #[case::a_path("Docs/A", "docs/A")]
    #[case::a_number("12.50", "12.5")]
    #[case::a_whole_number("50.00", "50")]
    #[case::a_negative_number("-5.0", "-5")]
    #[case::a_number_with_commas("1,234,567.50", "1234567.5")]
    #[case::a_decimal_comma("84,30", "84.3")]
    #[case::a_decimal_comma_after_points("1.234.567,5", "1234567.5")]
    #[case::two_commas("12,34,56", "12,34,56")]
    #[case::points_at_other_places("12.34,5", "12.34,5")]
    #[case::a_large_first_group("1234,567", "1234,567")]
    #[case::groups_of_zeros("0,200", "0,200")]
    #[case::an_id_with_zeros("007", "007")]
    #[case::an_iban("de89 3704 0044 0532 0130 00", "DE89370400440532013000")]
    #[case::letters_outside_of_ascii("Ärzte", "Ärzte")]
    fn spellings_of_a_value_share_a_key(#[case] value: &str, #[case] expected: &str) {
        assert_eq!(key(value).as_deref(), Some(expected));
    }

    #[test]
    fn empty_and_very_long_values_have_no_key() {
        assert_eq!((key(" \n"), key(&"x".repeat(MAX_VALUE_BYTES + 1))), (None, None));
    }
}
