//! Numbers that people write in groups: account numbers and card numbers. Their groups are no values of their own.

use super::iban;

/// The lengths of a group of digits. A single digit is rather a part of a list.
const GROUP_DIGITS: std::ops::RangeInclusive<usize> = 2..=6;

/// The fewest groups of digits that are one number.
const MIN_GROUPS: usize = 3;

/// The fewest digits of a number in groups. A date has fewer.
const MIN_DIGITS: usize = 10;

/// The length of a group of an IBAN. The last one may be shorter.
const IBAN_GROUP_BYTES: usize = 4;

/// The most groups of an IBAN.
const MAX_IBAN_GROUPS: usize = 9;

/// Returns the length of the number in groups that a text begins with, if it begins with one: an IBAN, also with wrong check digits, or
/// groups of digits such as those of a card number. A word directly after groups of digits that has the form of a group belongs to them.
pub(super) fn length(text: &str) -> Option<usize> {
    if iban::begins(text.as_bytes()) {
        return iban::leading(text).map(|(end, _)| end).max().or_else(|| length_of_iban(text));
    }
    let is_digits =
        |group: &str| GROUP_DIGITS.contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_digit());
    let (count, digits) = measure(leading(text, is_digits));
    (count >= MIN_GROUPS && digits >= MIN_DIGITS).then(|| length_with_spaces(count, digits))
}

/// Returns the length of the groups that have the form of an IBAN, whatever the check digits are.
fn length_of_iban(text: &str) -> Option<usize> {
    let has_digit = |group: &str| group.bytes().any(|byte| byte.is_ascii_digit());
    let is_capital = |group: &str| group.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_full = |group: &str| group.len() == IBAN_GROUP_BYTES && (has_digit(group) || is_capital(group));
    let is_last = |group: &str| (1..IBAN_GROUP_BYTES).contains(&group.len()) && has_digit(group);
    let mut is_complete = false;
    let groups = leading(text, move |group| is_full(group) || is_last(group)).take(MAX_IBAN_GROUPS);
    let groups = groups.take_while(|group| !std::mem::replace(&mut is_complete, group.len() < IBAN_GROUP_BYTES));
    let (count, bytes) = measure(groups);
    iban::LENGTHS.contains(&bytes).then(|| length_with_spaces(count, bytes))
}

/// Returns the words at the beginning of a text that are groups. Punctuation after a group ends them.
fn leading(text: &str, is_group: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
    let mut is_end = false;
    text.split(' ').map_while(move |word| {
        let length = word.len() - word.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
        let group = word.get(..length).filter(|group| !is_end && is_group(group));
        is_end = length < word.len();
        group
    })
}

/// Returns the number of groups, and of their bytes.
fn measure<'a>(groups: impl Iterator<Item = &'a str>) -> (usize, usize) {
    groups.fold((0, 0), |(count, bytes), group| (count + 1, bytes + group.len()))
}

/// Returns the length of groups with a space between them.
fn length_with_spaces(count: usize, bytes: usize) -> usize {
    bytes + count.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::an_iban("FR14 2004 1010 0505 0001 3M02 606 by noon", Some(33))]
    #[case::an_iban_before_an_amount("ES91 2100 0418 4502 0005 1332 50 EUR", Some(29))]
    #[case::an_iban_in_other_groups("FR14 20041 01005 0500013M026 06", Some(31))]
    #[case::an_iban_with_wrong_check_digits("FR15 2004 1010 0505 0001 3M02 606.", Some(33))]
    #[case::an_iban_with_letters("GB83 WEST 1234 5698 7654 32 EUR 50", Some(27))]
    #[case::the_beginning_of_an_iban("DE89 3704 50", None)]
    #[case::a_reference_before_words("AB12 from 1200 till 1300", None)]
    #[case::a_card("4111 1111 1111 1111, please", Some(19))]
    #[case::a_card_of_three_groups("3782 822463 10005", Some(17))]
    #[case::a_telephone_number("0664 123 45 67", Some(14))]
    #[case::a_date("12 05 2026", None)]
    #[case::two_groups("123456 654321", None)]
    #[case::a_list("1 2 3 4 5 6 7 8 9 10 11 12", None)]
    #[case::words("50 to ada", None)]
    #[case::nothing("", None)]
    fn a_number_in_groups_ends_after_its_last_group(#[case] text: &str, #[case] expected: Option<usize>) {
        assert_eq!(length(text), expected);
    }
}
