//! What is looked for, for one secret value.

use super::credential_names::may_be_of_field;
use super::notation::Notation;
use serde_json::Value;
use std::collections::BTreeSet;

/// The least that is looked for, in bytes: anything shorter stands in innocent texts too.
pub const MIN_VALUE_BYTES: usize = 8;

/// The most of a value that is looked for, in bytes: what is made ready for it takes up to some 240 times as much memory.
pub const MAX_VALUE_BYTES: usize = 16 * 1024;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The forms of a value and of its parts: of each line of several, since what shows a file line by line shows a key so; and
/// where it is JSON, as credentials of clouds are, of each text in it that is one by its name, and of its lines.
pub(super) fn of_all(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let value = value.get(..MAX_VALUE_BYTES).unwrap_or(value);
    let json = value.strip_prefix("\u{feff}".as_bytes()).unwrap_or(value);
    let documents = serde_json::Deserializer::from_slice(json).into_iter::<Value>().map_while(Result::ok);
    let texts: Vec<String> = documents.flat_map(|document| credentials("", document)).collect();
    let wholes = texts.iter().map(String::as_bytes).chain([value]);
    wholes.flat_map(|whole| lines(whole).map(of).chain([of(whole)])).flatten().collect()
}

/// The lines of a text that has several, where they say something.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| matches!(byte, b'\r' | b'\n')).map(<[u8]>::trim_ascii);
    lines.filter(|line| line.len() < text.len() && says_something(line))
}

/// The texts of a JSON value that are secret: those of several lines, as keys are, and those whose field is called so.
/// What stands beside them, a project or a server, is what a Skill works with.
fn credentials(name: &str, json: Value) -> Vec<String> {
    match json {
        Value::String(text) if text.trim().contains('\n') || may_be_of_field(name) && !text.contains("://") => {
            vec![text]
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        Value::Array(items) => items.into_iter().flat_map(|item| credentials(name, item)).collect(),
        Value::Object(fields) => fields.into_iter().flat_map(|(name, field)| credentials(&name, field)).collect(),
    }
}

/// Whether a line is a value's own: not what PEM has around every value, and no rule of one character.
fn says_something(line: &[u8]) -> bool {
    let is_mark = line.ends_with(b"-----") && (line.starts_with(b"-----BEGIN ") || line.starts_with(b"-----END "));
    !is_mark && line.iter().any(|byte| line.first() != Some(byte))
}

/// The forms of a value, as a text means them in one notation or another: itself, in base64, and in hexadecimal digits.
/// None of a value that is too short.
fn of(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let value = value.get(..MAX_VALUE_BYTES).unwrap_or(value);
    if Notation::Plain.meaning(value).len() < MIN_VALUE_BYTES {
        return BTreeSet::new();
    }
    let plain = Notation::Plain.meaning(value);
    // Forms write a space so.
    let with_plus = plain.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect();
    let base64 = (0..3).flat_map(|before| [STANDARD, URL_SAFE].map(|digits| base64(value, before, digits)));
    let hex = [b"0123456789abcdef", b"0123456789ABCDEF"].map(|digits| hex(value, digits));
    let forms = [Notation::Json.meaning(value), plain, with_plus].into_iter().chain(base64).chain(hex);
    forms.filter(|form| form.len() >= MIN_VALUE_BYTES).collect()
}

/// The digits that are a value's alone in the base64 of a longer text, in which `before` more bytes than a multiple of
/// three come before it. A digit at either end may be made of a neighbour too, and is not among them.
fn base64(value: &[u8], before: usize, digits: &[u8; 64]) -> Vec<u8> {
    let bit = |at: usize| value.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let digit = |at: usize| (at..at + 6).fold(0_usize, |digit, at| digit * 2 + usize::from(bit(at)));
    let first = (6 - before * 8 % 6) % 6;
    let whole = (value.len() * 8).saturating_sub(first) / 6;
    (0..whole).filter_map(|n| digits.get(digit(first + n * 6)).copied()).collect()
}

fn hex(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let both = value.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    both.filter_map(|digit| digits.get(usize::from(digit)).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 4648, with padding; written down differently from the above.
    fn encoded(bytes: &[u8], digits: &[u8; 64]) -> String {
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let number =
                three.iter().chain(&[0, 0]).take(3).fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
            for place in 0..4 {
                let digit = char::from(digits[number >> (18 - 6 * place) & 63]);
                text.push(if place > three.len() { '=' } else { digit });
            }
        }
        text
    }

    #[test]
    fn the_encoder_of_these_tests_is_right() {
        assert_eq!(encoded(b"foobar", STANDARD), "Zm9vYmFy");
        assert_eq!(encoded(b"foob", STANDARD), "Zm9vYg==");
        assert_eq!(encoded(&[0xfb, 0xff], URL_SAFE), "-_8=");
    }

    #[test]
    fn short_values_have_no_forms() {
        assert!(of(b"1234567").is_empty() && of(b"1234\n567").is_empty());
        assert!(of(b"12345678").contains(&b"12345678"[..]));
    }

    #[test]
    fn credentials_in_json_and_their_lines_have_forms() {
        let value = br#"{"type":"service_account","project_id":"acme-production-eu-1","token_uri":"https://oauth2.example/token",
            "auths":{"registry":{"auth":"a2V5LW9mLXJlZ2lzdHJ5\u0021","password":"Passw0rd-123","tokens":["one-of-two"]}},
            "private_key":"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END PRIVATE KEY-----\n"}"#;
        let marked = ["\u{feff}".as_bytes(), value].concat();
        let second = [b"{}\n", &value[..]].concat();
        for value in [&value[..], &marked, &second] {
            let forms = of_all(value);
            for held in ["a2V5LW9mLXJlZ2lzdHJ5!", "Passw0rd-123", "one-of-two", "MIIEvQIBADANBg", "kqhkiG9w0BAQ"] {
                assert!(forms.contains(held.as_bytes()), "{held}");
            }
            for innocent in ["service_account", "acme-production-eu-1", "https://oauth2.example/token", "private_key"] {
                assert!(!forms.contains(innocent.as_bytes()), "{innocent}");
            }
        }
    }

    #[test]
    fn hexadecimal_digits_are_a_form() {
        let forms = of(b"token\xff/:");
        for form in [&b"746f6b656eff2f3a"[..], b"746F6B656EFF2F3A"] {
            assert!(forms.contains(form), "{}", String::from_utf8_lossy(form));
        }
    }

    proptest! {
        #[test]
        fn base64_of_a_longer_text_holds_a_form(
            value in prop::collection::vec(any::<u8>(), 8..40),
            before in prop::collection::vec(any::<u8>(), 0..7),
            after in prop::collection::vec(any::<u8>(), 0..7),
        ) {
            let text = [before, value.clone(), after].concat();
            let forms = of(&value);
            prop_assume!(!forms.is_empty());
            for digits in [STANDARD, URL_SAFE] {
                let text = encoded(&text, digits);
                let holds = |form: &Vec<u8>| text.as_bytes().windows(form.len()).any(|part| part == form);
                prop_assert!(forms.iter().any(holds), "{text}");
            }
        }
    }
}
