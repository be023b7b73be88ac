//! The byte sequences that are searched for one secret value: its forms.

use super::credential_names::may_be_credential_field;
use super::notation::Notation;
use serde_json::Value;
use std::collections::BTreeSet;

/// The shortest value that is searched for, in bytes. Shorter values also occur in harmless texts.
pub const MIN_VALUE_BYTES: usize = 8;

/// The largest value that is searched for, in bytes. The search takes up to about 240 times as much memory as the value.
pub const MAX_VALUE_BYTES: usize = 16 * 1024;

const BASE64_STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the forms of a value and of its parts. In a value of several lines, each line is a part, because programs print files
/// line by line. In a JSON value, such as the key file of a cloud account, each secret string is a part, too.
pub(super) fn all_forms(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let value = value.get(..MAX_VALUE_BYTES).unwrap_or(value);
    let json = value.strip_prefix("\u{feff}".as_bytes()).unwrap_or(value);
    let documents = serde_json::Deserializer::from_slice(json).into_iter::<Value>().map_while(Result::ok);
    let texts: Vec<String> = documents.flat_map(|document| find_credentials("", document)).collect();
    let values = texts.iter().map(String::as_bytes).chain([value]);
    values.flat_map(|value| secret_lines(value).map(forms).chain([forms(value)])).flatten().collect()
}

/// Returns the secret lines of a text with several lines.
fn secret_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| matches!(byte, b'\r' | b'\n')).map(<[u8]>::trim_ascii);
    lines.filter(|line| line.len() < text.len() && is_secret_line(line))
}

/// Returns the secret strings of a JSON value: those with several lines, like keys, and those whose field has the name of a
/// credential, except URLs. Other strings, such as the name of a project or a server, are not secret, and Skills need to read them.
fn find_credentials(name: &str, json: Value) -> Vec<String> {
    match json {
        Value::String(text) if text.trim().contains('\n') || may_be_credential_field(name) && !text.contains("://") => {
            vec![text]
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        Value::Array(items) => items.into_iter().flat_map(|item| find_credentials(name, item)).collect(),
        Value::Object(fields) => fields.into_iter().flat_map(|(name, field)| find_credentials(&name, field)).collect(),
    }
}

/// Returns whether a line can be secret. The first and last lines of a PEM file and lines of one repeated character cannot.
fn is_secret_line(line: &[u8]) -> bool {
    let is_pem_boundary =
        line.ends_with(b"-----") && (line.starts_with(b"-----BEGIN ") || line.starts_with(b"-----END "));
    !is_pem_boundary && line.iter().any(|byte| line.first() != Some(byte))
}

/// Returns the forms that a value has in a decoded text: the value itself, its base64, and its hexadecimal digits. A value that is too
/// short has none.
fn forms(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let value = value.get(..MAX_VALUE_BYTES).unwrap_or(value);
    let plain = Notation::Plain.decode(value);
    if plain.len() < MIN_VALUE_BYTES {
        return BTreeSet::new();
    }
    // HTML forms encode a space as `+`.
    let with_plus = plain.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect();
    let base64 =
        (0..3).flat_map(|before| [BASE64_STANDARD, BASE64_URL_SAFE].map(|digits| base64_digits(value, before, digits)));
    let hex = [b"0123456789abcdef", b"0123456789ABCDEF"].map(|digits| hex_digits(value, digits));
    let forms = [Notation::Json.decode(value), plain, with_plus].into_iter().chain(base64).chain(hex);
    forms.filter(|form| form.len() >= MIN_VALUE_BYTES).collect()
}

/// Returns the base64 digits that depend on the value alone, if the value is encoded as a part of a longer text. `before` is the
/// number of bytes before the value, modulo three. A first or last digit that also depends on a neighbouring byte is left out.
fn base64_digits(value: &[u8], before: usize, digits: &[u8; 64]) -> Vec<u8> {
    let bit = |at: usize| value.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let digit = |at: usize| (at..at + 6).fold(0_usize, |digit, at| digit * 2 + usize::from(bit(at)));
    // The first bit of the value at which a base64 digit begins.
    let first_bit = (6 - before * 8 % 6) % 6;
    let digit_count = (value.len() * 8).saturating_sub(first_bit) / 6;
    (0..digit_count).filter_map(|n| digits.get(digit(first_bit + n * 6)).copied()).collect()
}

/// Returns the hexadecimal digits of a value.
fn hex_digits(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let both = value.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    both.filter_map(|digit| digits.get(usize::from(digit)).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Encodes bytes as RFC 4648 requires, with padding, independently of the implementation under test.
    fn encode_base64(bytes: &[u8], digits: &[u8; 64]) -> String {
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
    fn the_encoder_of_these_tests_is_correct() {
        assert_eq!(encode_base64(b"foobar", BASE64_STANDARD), "Zm9vYmFy");
        assert_eq!(encode_base64(b"foob", BASE64_STANDARD), "Zm9vYg==");
        assert_eq!(encode_base64(&[0xfb, 0xff], BASE64_URL_SAFE), "-_8=");
    }

    #[test]
    fn short_values_have_no_forms() {
        assert!(forms(b"1234567").is_empty() && forms(b"1234\n567").is_empty());
        assert!(forms(b"12345678").contains(&b"12345678"[..]));
    }

    #[test]
    fn credentials_in_json_and_their_lines_have_forms() {
        let value = br#"{"type":"service_account","project_id":"acme-production-eu-1","token_uri":"https://oauth2.example/token",
            "auths":{"registry":{"auth":"a2V5LW9mLXJlZ2lzdHJ5\u0021","password":"Passw0rd-123","tokens":["one-of-two"]}},
            "private_key":"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END PRIVATE KEY-----\n"}"#;
        let with_byte_order_mark = ["\u{feff}".as_bytes(), value].concat();
        let second_document = [b"{}\n", &value[..]].concat();
        for value in [&value[..], &with_byte_order_mark, &second_document] {
            let forms = all_forms(value);
            for secret in ["a2V5LW9mLXJlZ2lzdHJ5!", "Passw0rd-123", "one-of-two", "MIIEvQIBADANBg", "kqhkiG9w0BAQ"] {
                assert!(forms.contains(secret.as_bytes()), "{secret}");
            }
            for innocent in ["service_account", "acme-production-eu-1", "https://oauth2.example/token", "private_key"] {
                assert!(!forms.contains(innocent.as_bytes()), "{innocent}");
            }
        }
    }

    #[test]
    fn hexadecimal_digits_are_a_form() {
        let forms = forms(b"token\xff/:");
        for form in [&b"746f6b656eff2f3a"[..], b"746F6B656EFF2F3A"] {
            assert!(forms.contains(form), "{}", String::from_utf8_lossy(form));
        }
    }

    proptest! {
        #[test]
        fn base64_of_a_longer_text_contains_a_form(
            value in prop::collection::vec(any::<u8>(), 8..40),
            before in prop::collection::vec(any::<u8>(), 0..7),
            after in prop::collection::vec(any::<u8>(), 0..7),
        ) {
            let text = [before, value.clone(), after].concat();
            let forms = forms(&value);
            prop_assume!(!forms.is_empty());
            for digits in [BASE64_STANDARD, BASE64_URL_SAFE] {
                let text = encode_base64(&text, digits);
                let contains = |form: &Vec<u8>| text.as_bytes().windows(form.len()).any(|part| part == form);
                prop_assert!(forms.iter().any(contains), "{text}");
            }
        }
    }
}
