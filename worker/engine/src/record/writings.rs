//! The texts that people wrote or bound, indexed by the tokens in them.

use super::form::{self, MAX_VALUE_BYTES};
use super::groups;
use super::iban;
use std::collections::BTreeSet;

/// The most bytes of all texts together. A text for which there is no room is not searched at all, also if it is the first one.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// The number of bytes by which the places in a text are sorted.
const SORTED_BYTES: usize = 16;

/// The most places that one search compares in one text.
const MAX_PLACES: usize = 1_000;

/// The most characters of soft punctuation in a row.
const MAX_SOFT_CHARS: usize = 8;

/// The codes of currencies that people write directly beside an amount: `50EUR`.
const CURRENCIES: [&str; 12] = ["EUR", "USD", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "SEK", "NOK", "DKK"];

/// The length of the code of a currency.
const CURRENCY_BYTES: usize = 3;

/// The longest label before a colon after which a token begins, in bytes.
const MAX_LABEL_BYTES: usize = 16;

/// The most digits of a port.
const MAX_PORT_DIGITS: usize = 5;

/// The texts of people.
#[derive(Debug, Default)]
pub(super) struct Writings {
    texts: Vec<Writing>,
    bytes: usize,
}

/// A text of a person.
#[derive(Debug)]
struct Writing {
    text: String,
    /// The places at which a token can begin, each with the first bytes there in lower case, sorted by these bytes.
    places: Vec<(u128, u32)>,
    /// The numbers and account numbers in the text, each in one form.
    numbers: BTreeSet<String>,
}

impl Writings {
    /// Adds a text, unless there is no room for the whole text.
    pub(super) fn add(&mut self, text: &str) {
        let plain = form::plain(text);
        if plain.is_empty() || self.bytes + plain.len() > MAX_TEXT_BYTES {
            return;
        }
        self.bytes += plain.len();
        self.texts.push(Writing::new(plain.into_owned()));
    }

    /// Returns whether a value occurs in a text as a whole token.
    pub(super) fn contain(&self, value: &str) -> bool {
        let plain = form::plain(value);
        if plain.is_empty() || plain.len() > MAX_VALUE_BYTES {
            return false;
        }
        if let Some(number) = form::number_or_iban(&plain) {
            return self.texts.iter().any(|writing| writing.numbers.contains(&number));
        }
        let token = form::without_final_slash(&plain);
        self.texts.iter().any(|writing| writing.contains(token))
    }
}

impl Writing {
    fn new(text: String) -> Self {
        let (mut places, mut numbers, mut end_of_groups) = (Vec::new(), BTreeSet::new(), 0);
        let starts = text.char_indices().filter(|(at, c)| *c != ' ' && begins_token(&text, *at));
        for (at, _) in starts {
            // A group of an account number is no token.
            if at < end_of_groups {
                continue;
            }
            let (Some(rest), Ok(place)) = (text.get(at..), u32::try_from(at)) else { continue };
            places.push((first_bytes(rest, 0), place));
            let grouped = groups::length(rest);
            end_of_groups = grouped.map_or(end_of_groups, |length| at + length);
            // The first group of a card number is no amount.
            if grouped.is_none() || !begins_number(rest) {
                numbers.extend(numbers_at(&text, at));
            }
        }
        places.sort_unstable();
        Self { text, places, numbers }
    }

    fn contains(&self, token: &str) -> bool {
        let (lowest, highest) = (first_bytes(token, 0), first_bytes(token, u8::MAX));
        let first = self.places.partition_point(|(bytes, _)| *bytes < lowest);
        let candidates = self.places.iter().skip(first).take_while(|(bytes, _)| *bytes <= highest);
        candidates.take(MAX_PLACES).any(|(_, at)| self.has_token_at(*at, token))
    }

    fn has_token_at(&self, at: u32, token: &str) -> bool {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let Some(found) = self.text.get(at..).and_then(|rest| rest.get(..token.len())) else { return false };
        let (head, path) = form::split_path(token);
        let is_equal = found.get(..head.len()).is_some_and(|found| found.eq_ignore_ascii_case(head))
            && found.get(head.len()..) == Some(path);
        is_equal && (ends_token(&self.text, at + token.len()) || is_host(&self.text, at, at + token.len()))
    }
}

/// Returns the numbers and account numbers that begin at a place.
fn numbers_at(text: &str, at: usize) -> Vec<String> {
    let rest = text.get(at..).unwrap_or_default();
    // `EUR50`
    let skipped = currency_length(rest).filter(|length| rest.get(*length..).is_some_and(begins_number)).unwrap_or(0);
    let (at, rest) = (at + skipped, rest.get(skipped..).unwrap_or_default());
    let is_whole = |length: usize| ends_token(text, at + length);
    // `50EUR`
    let is_amount = |length: usize| {
        let currency = rest.get(length..).and_then(currency_length);
        is_whole(length) || currency.is_some_and(|currency| is_whole(length + currency))
    };
    let written =
        if begins_number(rest) { [length_of_number(rest, ',', '.'), length_of_number(rest, '.', ',')] } else { [0, 0] };
    let decimals = written.into_iter().filter(|length| is_amount(*length));
    let decimals = decimals.filter_map(|length| form::decimal(rest.get(..length)?));
    let ibans = iban::leading(rest).filter(|(length, _)| is_whole(*length)).map(|(_, iban)| iban);
    decimals.chain(ibans).collect()
}

fn begins_number(text: &str) -> bool {
    text.strip_prefix('-').unwrap_or(text).starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the length of the number that a text begins with. `group` separates groups of three digits, as in `1,200`, and `point` the
/// fraction. `form::decimal` checks the first group.
fn length_of_number(text: &str, group: char, point: char) -> usize {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()
    };
    let mut whole = usize::from(text.starts_with('-'));
    whole += digits(whole);
    while text.get(whole..).is_some_and(|rest| rest.starts_with(group)) && digits(whole + 1) == form::GROUP_DIGITS {
        whole += 1 + form::GROUP_DIGITS;
    }
    let has_fraction = text.get(whole..).is_some_and(|rest| rest.starts_with(point)) && digits(whole + 1) > 0;
    if has_fraction { whole + 1 + digits(whole + 1) } else { whole }
}

/// Returns the length of the code of a currency with which a text begins.
fn currency_length(text: &str) -> Option<usize> {
    let code = text.get(..CURRENCY_BYTES)?;
    CURRENCIES.iter().any(|known| code.eq_ignore_ascii_case(known)).then_some(CURRENCY_BYTES)
}

/// Returns the first bytes of a text, with ASCII letters in lower case. If the text is shorter, `filler` is in the place of the missing
/// bytes.
fn first_bytes(text: &str, filler: u8) -> u128 {
    let bytes = text.bytes().map(|byte| byte.to_ascii_lowercase()).chain(std::iter::repeat(filler));
    bytes.take(SORTED_BYTES).fold(0, |all, byte| all << 8 | u128::from(byte))
}

/// Returns whether a token can begin at a place: after a blank, after hard punctuation, after soft punctuation before which a word
/// begins, after a label (`to:ada@own.com`), or after the scheme of a URL.
fn begins_token(text: &str, at: usize) -> bool {
    let (Some(before), Some(after)) = (text.get(..at), text.get(at..)) else { return false };
    if before.ends_with("://") || follows_label(before) && after.starts_with(char::is_alphanumeric) {
        return true;
    }
    let mut rest = before.chars().rev().skip_soft();
    match rest.next() {
        None | Some(' ') => true,
        Some(',') => !(is_digit(rest.next()) && is_digit(after.chars().next())),
        Some(last) => is_hard(last),
    }
}

/// Returns whether a text ends with a label: letters at the beginning of a word, and a colon.
fn follows_label(text: &str) -> bool {
    let Some(label) = text.strip_suffix(':') else { return false };
    let rest = label.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let length = label.len() - rest.len();
    (2..=MAX_LABEL_BYTES).contains(&length) && rest.chars().next_back().is_none_or(|c| c == ' ' || is_hard(c))
}

/// Returns whether a token can end at a place.
fn ends_token(text: &str, at: usize) -> bool {
    let (Some(before), Some(after)) = (text.get(..at), text.get(at..)) else { return false };
    let mut rest = after.chars().skip_soft();
    match rest.next() {
        None | Some(' ') => true,
        Some(',') => !(is_digit(before.chars().next_back()) && is_digit(rest.next())),
        Some(next) => is_hard(next),
    }
}

/// Returns whether a part of a text is the whole host of a URL, or a host before its port: `own.com` in `https://own.com:8443/a` and in
/// `own.com:8443`. Without a scheme, only a name with a dot is a host: in `ada:50`, there is none.
fn is_host(text: &str, start: usize, end: usize) -> bool {
    let (Some(before), Some(host)) = (text.get(..start), text.get(start..end)) else { return false };
    let is_after_scheme = before.ends_with("://");
    let Some(port) = port_length(text, end) else { return is_after_scheme && begins_path(text, end) };
    let is_name = host.contains('.') && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    // Before `@`, it is the user and the password of a URL.
    let is_user = text.get(end + port..).is_some_and(|after| after.starts_with('@'));
    let is_whole = begins_path(text, end + port) || ends_token(text, end + port) && !is_user;
    is_whole && (is_after_scheme || is_name)
}

/// Returns the length of the port at a place, with its colon.
fn port_length(text: &str, at: usize) -> Option<usize> {
    let port = text.get(at..)?.strip_prefix(':')?;
    let digits = port.len() - port.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (1..=MAX_PORT_DIGITS).contains(&digits).then_some(1 + digits)
}

/// Returns whether the path, the query or the fragment of a URL begins at a place.
fn begins_path(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|after| after.starts_with(['/', '?', '#']))
}

fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}

/// Returns whether a character ends a token, wherever it is.
fn is_hard(c: char) -> bool {
    matches!(
        c,
        '"' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ';' | '|' | '`' | '“' | '”' | '„' | '«' | '»' | '‹' | '›'
    ) || matches!(c, '。' | '、' | '，' | '；' | '（' | '）' | '「' | '」')
}

/// Returns whether a character ends a token only at the end of a word: `own.com.` ends before the last dot.
fn is_soft(c: char) -> bool {
    matches!(
        c,
        '.' | ':' | '!' | '?' | '\'' | '*' | '_' | '~' | '#' | '@' | '$' | '%' | '/' | '’' | '‘' | '€' | '£' | '¥'
    ) || matches!(c, '…' | '–' | '—')
}

/// Skips soft punctuation.
trait SkipSoft: Iterator<Item = char> + Sized {
    /// Skips at most [`MAX_SOFT_CHARS`] characters of soft punctuation.
    fn skip_soft(self) -> impl Iterator<Item = char> {
        let mut skipped = 0;
        self.skip_while(move |c| {
            skipped += 1;
            skipped <= MAX_SOFT_CHARS && is_soft(*c)
        })
    }
}

impl<I: Iterator<Item = char>> SkipSoft for I {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn writings(text: &str) -> Writings {
        let mut writings = Writings::default();
        writings.add(text);
        writings
    }

    #[rstest]
    #[case::at_the_end("Mail ada@own.com.", "ada@own.com")]
    #[case::in_brackets("Ada <ada@own.com>, please", "ada@own.com")]
    #[case::in_json(r#"{"to":"ada@own.com"}"#, "ada@own.com")]
    #[case::in_a_list("ada@own.com,bob@own.com", "bob@own.com")]
    #[case::in_another_case("Mail Ada@Own.com", "ada@own.com")]
    #[case::several_words("Pay Ada   Lovelace\n50", "Ada Lovelace")]
    #[case::a_reference("Close #1234!", "1234")]
    #[case::a_mention("Ask @ada, please", "ada")]
    #[case::a_number("Pay $50.", "50")]
    #[case::a_number_with_zeros("Pay 12.50 EUR", "12.5")]
    #[case::a_number_in_another_form("Pay 50 EUR", "50.00")]
    #[case::a_number_with_commas("Pay 1,200 EUR", "1200")]
    #[case::a_number_with_commas_and_cents("Pay $1,234,567.50.", "1234567.5")]
    #[case::a_value_with_commas("Pay 1200 EUR", "1,200.00")]
    #[case::an_iban_in_groups("to DE89 3704 0044 0532 0130 00 by noon", "DE89370400440532013000")]
    #[case::an_iban_without_groups("to DE89370400440532013000.", "DE89 3704 0044 0532 0130 00")]
    #[case::a_currency_after_a_number("Pay 50EUR", "50")]
    #[case::a_currency_before_a_number("Pay EUR50, please", "50")]
    #[case::a_decimal_comma("Pay 84,30 EUR", "84.3")]
    #[case::a_decimal_comma_and_points("Pay 1.234,56 EUR", "1234.56")]
    #[case::a_decimal_comma_and_a_currency("Pay 84,30EUR.", "84.30")]
    #[case::after_a_label("Mail to:ada@own.com", "ada@own.com")]
    #[case::a_url("See [this](https://own.com/A).", "https://own.com/A")]
    #[case::the_scheme_in_another_case("See https://own.com/A", "HTTPS://Own.com/A")]
    #[case::a_final_slash("See https://own.com", "https://own.com/")]
    #[case::the_host_of_a_url("See https://own.com/a?b", "own.com")]
    #[case::the_host_of_a_url_with_a_port("Open https://intranet.own.com:8443/a", "intranet.own.com")]
    #[case::the_host_of_a_url_that_ends_with_its_port("Open http://localhost:8080.", "localhost")]
    #[case::a_host_with_a_port("Open intranet.own.com:8443, please", "intranet.own.com")]
    #[case::a_host_with_a_port_and_a_path("Open intranet.own.com:8443/a", "intranet.own.com")]
    #[case::an_iban_with_wrong_check_digits(
        "to FR15 2004 1010 0505 0001 3M02 606",
        "FR15 2004 1010 0505 0001 3M02 606"
    )]
    #[case::a_card("Use 4111 1111 1111 1234, please", "4111 1111 1111 1234")]
    #[case::an_amount_before_an_iban("Pay 50 to FR14 2004 1010 0505 0001 3M02 606", "50")]
    #[case::an_amount_after_an_iban("Pay FR14 2004 1010 0505 0001 3M02 606 50 EUR", "50")]
    #[case::the_year_of_a_date("Pay on 12 May 2026", "2026")]
    fn a_whole_token_of_a_text_is_found(#[case] text: &str, #[case] value: &str) {
        assert!(writings(text).contain(value));
    }

    #[rstest]
    #[case::the_end_of_a_token("Mail ada@own.com", "a@own.com")]
    #[case::the_beginning_of_a_token("Mail ada@own.com.evil.org", "ada@own.com")]
    #[case::the_domain_of_an_address("Mail ada@own.com", "own.com")]
    #[case::two_addresses("Mail ada@own.com and x@own.com", "ada@own.com,x@own.com")]
    #[case::another_path("See https://bit.ly/AbC", "https://bit.ly/abc")]
    #[case::more_of_a_url("See https://own.com/a", "https://own.com/a?q=secret")]
    #[case::less_of_a_url("See https://own.com/a", "https://own.com")]
    #[case::the_user_of_a_url("See https://own.com@evil.com/", "own.com")]
    #[case::the_user_of_a_url_with_a_password("See https://own.com:8443@evil.com/", "own.com")]
    #[case::the_user_of_a_url_with_an_ip_address("See https://own.com:8443@[::1]/", "own.com")]
    #[case::a_longer_port("See https://own.com:123456/", "own.com")]
    #[case::a_word_before_a_number("Pay ada:50", "ada")]
    #[case::an_address_before_a_number("Pay ada@own.com:50", "ada@own.com")]
    #[case::a_part_of_a_number("Pay 1,000.50", "1")]
    #[case::another_part_of_a_number("Pay 1,000", "000")]
    #[case::digits_of_a_number("Pay 500", "50")]
    #[case::groups_of_a_list("Close 12,345,67", "12345")]
    #[case::a_longer_group("Pay 1,2000", "12000")]
    #[case::another_sign("Pay -50", "50")]
    #[case::an_iban_with_another_digit("to DE89 3704 0044 0532 0130 00", "DE89370400440532013001")]
    #[case::a_unit_after_a_number("Buy 50kg", "50")]
    #[case::a_fraction_of_a_decimal_comma("Pay 84,30", "30")]
    #[case::the_port_of_a_host("See own.com:8080", "8080")]
    #[case::the_password_of_a_url("See https://user:pw@evil.com", "pw@evil.com")]
    #[case::after_a_time("At 10:30", "30")]
    #[case::a_homoglyph("Mail ada@own.com", "аda@own.com")]
    #[case::a_group_of_an_iban("Pay 50 to FR14 2004 1010 0505 0001 3M02 606", "606")]
    #[case::a_middle_group_of_an_iban("Pay 50 to FR14 2004 1010 0505 0001 3M02 606", "2004")]
    #[case::a_group_of_an_iban_after_a_label("IBAN:FR15 2004 1010 0505 0001 3M02 606.", "606")]
    #[case::some_groups_of_an_iban("to DE89 3704 0044 0532 0130 00", "0044 0532")]
    #[case::the_first_group_of_a_card("Use 4111 1111 1111 1234", "4111")]
    #[case::the_last_group_of_a_card("Use 4111 1111 1111 1234.", "1234")]
    #[case::nothing("Mail ada@own.com", " ")]
    fn anything_else_is_not_found(#[case] text: &str, #[case] value: &str) {
        assert!(!writings(text).contain(value));
    }

    #[test]
    fn a_token_does_not_span_two_texts() {
        let mut writings = writings("Ada");
        writings.add("Lovelace");
        assert!(!writings.contain("Ada Lovelace") && writings.contain("Lovelace"));
    }

    #[test]
    fn texts_beyond_the_room_are_not_searched() {
        let mut writings = writings(&("x".repeat(1023) + " ").repeat(MAX_TEXT_BYTES / 1024));
        writings.add("ada");
        assert!(writings.contain(&"x".repeat(1023)) && !writings.contain("ada"));
    }

    #[test]
    fn a_text_that_is_larger_than_the_room_is_not_searched_and_takes_no_room() {
        let mut writings = writings(&("ada".to_owned() + &" x".repeat(MAX_TEXT_BYTES / 2)));
        writings.add("bob");
        assert!(!writings.contain("ada") && writings.contain("bob"));
    }

    proptest! {
        /// The index finds what a search of every place finds.
        #[test]
        fn the_index_finds_what_a_search_finds(text in "[aAb@.,/: \"1-]{0,40}", value in "[aAb@./1-]{1,6}") {
            let writings = writings(&text);
            let plain = form::plain(&text);
            let token = form::without_final_slash(&value);
            let whole = Writing { places: Vec::new(), numbers: BTreeSet::new(), text: plain.clone().into_owned() };
            let found = (0..plain.len()).any(|at| {
                plain.is_char_boundary(at) && begins_token(&plain, at) && whole.has_token_at(u32::try_from(at).unwrap(), token)
            });
            if form::number_or_iban(&value).is_none() {
                prop_assert_eq!(writings.contain(&value), found, "{:?} in {:?}", value, text);
            }
        }

        /// A word that is added between other words is found.
        #[test]
        fn every_word_is_found(before in ".{0,20}", word in "[a-z]{1,8}@[a-z]{1,8}\\.com", after in ".{0,20}") {
            let text = format!("{before} {word} {after}");
            prop_assert!(writings(&text).contain(&word), "{:?}", text);
        }
    }
}
