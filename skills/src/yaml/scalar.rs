//! The values of unquoted words: those of the YAML 1.2 core schema that JSON can express.

use crate::tree::Value;
use serde_json::Number;

/// Returns the value of an unquoted word.
///
/// # Errors
/// Returns the reason if JSON cannot express the value.
pub(super) fn parse_plain(word: &str) -> Result<Value, &'static str> {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(word, ".nan" | ".NaN" | ".NAN") {
        return Err("infinity and not-a-number do not exist in JSON");
    }
    Ok(parse_number(word, unsigned).map_or_else(|| Value::Text { text: word.to_owned(), plain: true }, Value::Number))
}

fn parse_number(word: &str, unsigned: &str) -> Option<Number> {
    if let Some(digits) = word.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')).map(Number::from);
    }
    if let Some(digits) = word.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().filter(|_| !digits.starts_with('+')).map(Number::from);
    }
    let first = unsigned.strip_prefix('.').unwrap_or(unsigned).bytes().next()?;
    let is_decimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    if !first.is_ascii_digit() || !unsigned.bytes().all(is_decimal) || has_leading_zero(unsigned) {
        return None;
    }
    let without_plus = word.strip_prefix('+').unwrap_or(word);
    if let Ok(whole) = without_plus.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = without_plus.parse::<u64>() {
        return Some(whole.into());
    }
    // A number beyond 64 bits would lose its last digits. It stays a text, which the schema of a number refuses.
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    without_plus.parse::<f64>().ok().and_then(Number::from_f64)
}

/// Returns whether a number has a leading zero. Some parsers read `010` as eight, others as ten.
pub(super) fn has_leading_zero(unsigned: &str) -> bool {
    let mut bytes = unsigned.bytes();
    bytes.next() == Some(b'0') && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::parse_plain;
    use crate::tree::Value;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("", json!(null))]
    #[case("~", json!(null))]
    #[case("true", json!(true))]
    #[case("500", json!(500))]
    #[case("-3", json!(-3))]
    #[case("+3", json!(3))]
    #[case("0x1F", json!(31))]
    #[case("0o17", json!(15))]
    #[case("0.7", json!(0.7))]
    #[case(".5", json!(0.5))]
    #[case("1e3", json!(1000.0))]
    #[case("18446744073709551615", json!(u64::MAX))]
    fn unquoted_words_have_the_values_of_json(#[case] word: &str, #[case] expected: serde_json::Value) {
        let found = match parse_plain(word).unwrap() {
            Value::Null => json!(null),
            Value::Bool(value) => json!(value),
            Value::Number(number) => json!(number),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("yes")]
    #[case("010")]
    #[case("1_000")]
    #[case("1,000")]
    #[case("30m")]
    #[case("2026-01-14")]
    #[case("18446744073709551616")]
    #[case("0x")]
    #[case("0x+1")]
    #[case("-")]
    #[case(".")]
    #[case("1.2.3")]
    #[case("e5")]
    fn other_words_are_texts(#[case] word: &str) {
        assert_eq!(parse_plain(word), Ok(Value::Text { text: word.to_owned(), plain: true }));
    }

    #[rstest]
    #[case(".inf")]
    #[case("-.INF")]
    #[case(".nan")]
    fn numbers_that_json_cannot_express_are_refused(#[case] word: &str) {
        parse_plain(word).unwrap_err();
    }
}
