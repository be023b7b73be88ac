use super::*;
use proptest::prelude::*;
use rstest::rstest;

fn patterns(values: &[(&'static str, &'static str)]) -> Patterns {
    Patterns::new(values.iter().map(|(name, value)| (*name, value.as_bytes())))
}

#[rstest]
#[case::nothing("a text without it", "a text without it")]
#[case::raw("key=s3cr\"t/pass word!", "key=[redacted: token]")]
#[case::twice("s3cr\"t/pass word and s3cr\"t/pass word", "[redacted: token] and [redacted: token]")]
#[case::json(r#"{"key":"s3cr\"t/pass word"}"#, r#"{"key":"[redacted: token]"}"#)]
#[case::json_of_php(r#"{"key":"s3cr\"t\/pass word"}"#, r#"{"key":"[redacted: token]"}"#)]
#[case::json_in_json(r#"{"key":"{\"key\":\"s3cr\\\"t/pass word\"}"}"#, r#"{"key":"{\"key\":\"[redacted: token]\"}"}"#)]
#[case::json_wholly_escaped(r"x\u00733cr\u0022t/pass word", "x[redacted: token]")]
#[case::url("?key=s3cr%22t%2Fpass%20word&x=1", "?key=[redacted: token]&x=1")]
#[case::url_in_lower_case("?key=s3cr%22t%2fpass%20word&x=1", "?key=[redacted: token]&x=1")]
#[case::form("key=s3cr%22t%2Fpass+word&x=1", "key=[redacted: token]&x=1")]
#[case::base64("Basic czNjciJ0L3Bhc3Mgd29yZA==", "Basic [redacted: token]A==")]
#[case::base64_after_a_byte("Basic OnMzY3IidC9wYXNzIHdvcmQ=", "Basic On[redacted: token]Q=")]
#[case::wrapped("s3cr\"t/\r\npass\n word", "[redacted: token]")]
#[case::wrapped_in_json(r#""s3cr\"t/\r\npass\n word""#, r#""[redacted: token]""#)]
fn a_value_is_found_in_every_notation(#[case] text: &str, #[case] expected: &str) {
    let patterns = patterns(&[("token", "s3cr\"t/pass word")]);
    // A `!` after the value is kept.
    let expected = if text.ends_with('!') { format!("{expected}!") } else { expected.to_owned() };
    assert_eq!(patterns.redact(text), expected);
}

#[test]
fn overlapping_values_get_one_mark() {
    let patterns = patterns(&[("one", "12345678"), ("other", "5678abcdefgh"), ("inner", "45678abc")]);
    assert_eq!(patterns.redact("<12345678abcdefgh>"), "<[redacted: one]>");
    assert_eq!(patterns.redact("<5678abcdefgh>"), "<[redacted: other]>");
    assert_eq!(patterns.redact("12345678 5678abcdefgh"), "[redacted: one] [redacted: other]");
    assert_eq!(patterns.names_in("5678abcdefgh 12345678 12345678"), ["other", "one"]);
}

#[test]
fn a_mark_does_not_contain_a_value() {
    for (name, value, mark) in [("password", "password", "[redacted]"), ("it", "redacted", "***")] {
        let patterns = patterns(&[(name, value)]);
        assert_eq!(patterns.redact(value), mark);
    }
}

#[test]
fn a_value_that_is_not_utf_8_is_replaced_with_whole_characters() {
    let value = [b'a', b'b', b'c', b'd', b'e', b'f', b'g', 0xc3];
    let patterns = Patterns::new([("binary", value.as_slice())]);
    assert_eq!(patterns.redact("abcdefgé!"), "[redacted: binary]!");
}

#[test]
fn many_overlapping_matches_get_one_mark() {
    let value = "a".repeat(200);
    let patterns = Patterns::new([("it", value.as_bytes())]);
    // A match ends at every byte, and all matches overlap. The search must take linear time nevertheless.
    assert_eq!(patterns.redact(&"a".repeat(1 << 20)), "[redacted: it]");
    assert_eq!(patterns.redact(&format!("{}b", "a".repeat(199))), format!("{}b", "a".repeat(199)));
}

proptest! {
    #[test]
    fn no_value_stays_in_any_form(
        values in prop::collection::vec("[ -~äß€😀\\n]{8,24}", 1..4),
        parts in prop::collection::vec(("[a-z\"\\\\%\\n]{0,6}", 0_usize..4, 0_usize..4), 0..6),
    ) {
        let named: Vec<(String, Vec<u8>)> = values.iter().enumerate()
            .map(|(n, value)| (n.to_string(), value.trim().as_bytes().to_owned())).collect();
        let patterns = Patterns::new(named.iter().map(|(name, value)| (name.as_str(), value.as_slice())));
        let mut text = String::new();
        for (filling, value, form) in parts {
            text.push_str(&filling);
            let Some(value) = values.get(value).map(|value| value.trim()) else { continue };
            match form {
                0 => text.push_str(value),
                1 => text.push_str(serde_json::to_string(value).unwrap().trim_matches('"')),
                2 => text.push_str(&serde_json::to_string(&serde_json::to_string(value).unwrap()).unwrap()),
                _ => text = value.bytes().fold(text, |text, byte| text + &format!("%{byte:02x}")),
            }
        }
        let redacted = patterns.redact(&text);
        prop_assert!(!patterns.is_in(&redacted), "{redacted}");
        for value in values.iter().map(|value| value.trim()).filter(|value| value.replace('\n', "").len() >= 8) {
            prop_assert!(!redacted.contains(value), "{redacted}");
        }
    }
}
