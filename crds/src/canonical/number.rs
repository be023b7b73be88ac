//! Checks that every number of a JSON text keeps its value when it is parsed and written again.

use super::strict::Error;
use serde_json::Number;

/// Checks each number of a text that is known to be valid JSON.
///
/// # Errors
/// Returns an error for the first number that would change its value if it were parsed and written again.
pub(super) fn check(text: &str) -> Result<(), Error> {
    if may_be_inexact(text.as_bytes()) { check_each(text) } else { Ok(()) }
}

/// Returns whether a text may have a number literal that needs a check: with an exponent, of more than [`MAX_ALWAYS_EXACT_BYTES`], or
/// `-0`. Strings are searched too, so the answer may be true without such a literal. It needs no branch for each byte.
#[expect(clippy::needless_bitwise_bool, reason = "without branches, the compiler searches many bytes at once")]
fn may_be_inexact(text: &[u8]) -> bool {
    let after = |bytes: usize| text.get(bytes..).unwrap_or_default().iter();
    let has_exponent = text
        .iter()
        .zip(after(1))
        .fold(false, |found, (digit, letter)| found | (digit.is_ascii_digit() & letter.eq_ignore_ascii_case(&b'e')));
    let has_negative_zero = text.ends_with(b"-0")
        || text.iter().zip(after(1)).zip(after(2)).fold(false, |found, ((sign, zero), next)| {
            found | ((*sign == b'-') & (*zero == b'0') & !next.is_ascii_digit() & (*next != b'.'))
        });
    has_exponent || has_negative_zero || has_long_literal(text)
}

/// Returns whether a text has more than [`MAX_ALWAYS_EXACT_BYTES`] bytes of a number literal in a row.
fn has_long_literal(text: &[u8]) -> bool {
    // So many bytes contain one of these places.
    (0..text.len()).step_by(MAX_ALWAYS_EXACT_BYTES).any(|at| {
        let (before, after) = text.split_at_checked(at).unwrap_or_default();
        let length = after.iter().take_while(|byte| is_of_number(**byte)).count();
        length > 0
            && length + before.iter().rev().take_while(|byte| is_of_number(**byte)).count() > MAX_ALWAYS_EXACT_BYTES
    })
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Checks each number of a text, one after the other.
fn check_each(text: &str) -> Result<(), Error> {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9')) {
        let from = rest.get(at..).unwrap_or_default();
        let length = if from.starts_with('"') {
            string_length(from)
        } else {
            let token = number_token(from);
            if !is_exact(token) {
                return Err(Error::InexactNumber(crate::text::bounded(token, 64)));
            }
            token.len()
        };
        rest = from.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the length of the string at the start of `from`, quotes included. A quote after an odd number of backslashes is
/// part of the string.
fn string_length(from: &str) -> usize {
    let mut at = 1;
    while let Some((inside, rest)) = from.get(at..).and_then(|rest| rest.split_once('"')) {
        if inside.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0 {
            return from.len() - rest.len();
        }
        at = from.len() - rest.len();
    }
    from.len()
}

/// Reads a number literal without an exponent. Returns `None` if it is invalid, or would change its value if it were written again.
pub(super) fn read(literal: &str) -> Option<Number> {
    let digits = literal.strip_prefix('-').unwrap_or(literal);
    let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
    if whole == 0 || whole > 1 && digits.starts_with('0') {
        return None;
    }
    match digits.as_bytes().get(whole..)? {
        [] if literal == "-0" => None,
        [] if digits.len() < literal.len() => literal.parse::<i64>().ok().map(Number::from),
        [] => literal.parse::<u64>().ok().map(Number::from),
        [b'.', fraction @ ..] if !fraction.is_empty() && fraction.iter().all(u8::is_ascii_digit) => {
            let is_exact = literal.len() <= MAX_ALWAYS_EXACT_BYTES || is_exact(literal);
            literal.parse::<f64>().ok().filter(|_| is_exact).and_then(Number::from_f64)
        }
        _ => None,
    }
}

/// Returns whether a literal that [`read`] accepts is its own canonical form. May be false for one that is.
pub(super) fn is_canonical(literal: &str) -> bool {
    // A double keeps 15 significant digits, so no shorter literal has the same value.
    let is_shortest = literal.len() <= MAX_ALWAYS_EXACT_BYTES && !literal.ends_with('0');
    !literal.contains('.') || is_shortest && !literal.starts_with(['0', '-'])
}

/// Returns the number literal at the start of `from`.
pub(super) fn number_token(from: &str) -> &str {
    let end = from.bytes().position(|byte| !is_of_number(byte)).unwrap_or(from.len());
    from.get(..end).unwrap_or(from)
}

/// The longest literal without an exponent, in bytes, that needs no further check. It has a point and at most 15 digits, and a double
/// keeps 15 significant digits.
const MAX_ALWAYS_EXACT_BYTES: usize = 16;

/// Returns whether a number literal keeps its value when it is parsed and written again.
fn is_exact(token: &str) -> bool {
    if !token.contains(['.', 'e', 'E']) {
        return token != "-0" && (token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok());
    }
    if token.len() <= MAX_ALWAYS_EXACT_BYTES && !token.contains(['e', 'E']) {
        return true;
    }
    // The token is compared with the text that `serde_json` writes, not with that of the standard library. They may differ: for
    // 250704378937362.625, the shortest forms 250704378937362.62 and 250704378937362.63 are equally near.
    let written = token.parse::<f64>().ok().and_then(Number::from_f64);
    written.is_some_and(|number| decimal(token) == decimal(&number.to_string()))
}

/// Returns the value of a decimal literal as (negative, significant digits, exponent of the last digit). Equal triples are
/// equal values.
fn decimal(literal: &str) -> Option<(bool, String, i64)> {
    let (negative, unsigned) = match literal.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, literal),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let trailing = i64::try_from(digits.len() - significant.len()).ok()?;
    let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(trailing)?;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some((negative, String::new(), 0));
    }
    Some((negative, significant.to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The fast search misses no literal that the check of each one refuses.
        #[test]
        fn the_fast_search_misses_nothing(
            literals in prop::collection::vec("-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?", 0..6),
            text in "[0-9eE.+-]{0,20}",
        ) {
            let json = format!("[{text:?},{}]", literals.join(", "));
            prop_assert_eq!(check(&json), check_each(&json));
            for literal in literals {
                prop_assert_eq!(check(&literal), check_each(&literal));
            }
        }
    }
}
