//! Account numbers in the international form (IBAN). People write them in groups of four, and tools expect them without spaces.

/// The lengths of an IBAN without spaces.
pub(super) const LENGTHS: std::ops::RangeInclusive<usize> = 15..=34;

/// The longest IBAN with spaces, in bytes.
const MAX_SPACED_BYTES: usize = 42;

/// Returns an IBAN without spaces and in capitals. `None` if the text is not one, or its check digits are wrong.
pub(super) fn compact(text: &str) -> Option<String> {
    if text.len() > MAX_SPACED_BYTES || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ') {
        return None;
    }
    let compact: String = text.split(' ').collect::<String>().to_ascii_uppercase();
    let bytes = compact.as_bytes();
    let has_form = LENGTHS.contains(&bytes.len()) && begins(bytes);
    (has_form && remainder(bytes) == 1).then_some(compact)
}

/// Returns the IBANs that a text begins with: each number of groups that is one.
pub(super) fn leading(text: &str) -> impl Iterator<Item = (usize, String)> {
    // Most texts are none, and their groups are not read.
    let text = if begins(text.as_bytes()) { text } else { "" };
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b' ';
    let length = text.as_bytes().iter().take(MAX_SPACED_BYTES + 1).take_while(is_part).count();
    let groups = text.get(..length).unwrap_or_default();
    let ends = groups.match_indices(' ').map(|(at, _)| at).chain([groups.len()]);
    ends.filter_map(|end| Some((end, compact(groups.get(..end)?)?)))
}

/// Returns whether a text begins with the letters of a country and two check digits.
pub(super) fn begins(text: &[u8]) -> bool {
    matches!(text, [a, b, c, d, ..] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() && c.is_ascii_digit() && d.is_ascii_digit())
}

/// Returns the remainder of the digits modulo 97, with the first four characters at the end. Letters count as 10 to 35.
fn remainder(compact: &[u8]) -> u32 {
    let (head, tail) = compact.split_at_checked(4).unwrap_or((compact, &[]));
    tail.iter().chain(head).fold(0, |rest, &byte| match char::from(byte).to_digit(36) {
        Some(digit) if digit < 10 => (rest * 10 + digit) % 97,
        Some(letter) => (rest * 100 + letter) % 97,
        None => rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::in_groups("DE89 3704 0044 0532 0130 00", Some("DE89370400440532013000"))]
    #[case::in_small_letters("gb82west12345698765432", Some("GB82WEST12345698765432"))]
    #[case::a_wrong_digit("DE89 3704 0044 0532 0130 01", None)]
    #[case::too_short("DE89 3704", None)]
    #[case::words("meet ada at noon today", None)]
    fn only_valid_account_numbers_are_recognized(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(compact(text).as_deref(), expected);
    }

    #[test]
    fn the_text_after_an_account_number_is_not_part_of_it() {
        let found = |text: &str| leading(text).map(|(end, _)| end).collect::<Vec<_>>();
        assert_eq!(found("DE89 3704 0044 0532 0130 00 by noon"), [27]);
        assert_eq!(found("ES9121000418450200051332 from me"), [24]);
        assert_eq!(found("ES91 2100 0418 4502 0005 1332 from me"), [29]);
    }
}
