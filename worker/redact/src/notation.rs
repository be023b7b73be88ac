//! The notations of a value in a text: plain, with JSON escapes, or with URL escapes.
//!
//! Encoders differ in the characters that they escape (`&` in Go, `/` in PHP, `~` in forms). So the text is decoded, and compared
//! with the plain value. Each decoded byte keeps its range in the text. Line breaks are skipped, because encoders wrap long values.

use std::ops::Range;

/// A notation of values in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// Without escapes.
    Plain,
    /// JSON escapes, also of JSON within a JSON string, where backslashes are doubled.
    Json,
    /// URL escapes: `%` and two hexadecimal digits.
    Url,
}

/// The zero to four bytes that one character or escape of a text decodes to.
#[derive(Default)]
struct Decoded {
    bytes: [u8; 4],
    count: usize,
}

impl Notation {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Json, Self::Url];

    /// Returns whether a text contains escapes of this notation. Always `true` for [`Notation::Plain`].
    pub(super) fn is_used_in(self, text: &[u8]) -> bool {
        match self {
            Self::Plain => true,
            Self::Json => text.contains(&b'\\'),
            Self::Url => text.contains(&b'%'),
        }
    }

    /// Decodes a text without its line breaks. Passes each decoded byte with its range in the text.
    pub(super) fn decode_each(self, text: &[u8], mut each: impl FnMut(u8, Range<usize>)) {
        let mut at = 0;
        while let Some((decoded, length)) = self.decode_first(text.get(at..).unwrap_or_default()) {
            let range = at..at + length;
            for byte in decoded.bytes.into_iter().take(decoded.count).filter(|byte| !matches!(byte, b'\r' | b'\n')) {
                each(byte, range.clone());
            }
            at = range.end;
        }
    }

    /// Decodes a text without its line breaks.
    pub(super) fn decode(self, text: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::with_capacity(text.len());
        self.decode_each(text, |byte, _| decoded.push(byte));
        decoded
    }

    /// Decodes the first byte or escape of a text, and returns its length in the text; `None` at the end of the text.
    fn decode_first(self, text: &[u8]) -> Option<(Decoded, usize)> {
        let first = *text.first()?;
        let escaped = match (self, first) {
            (Self::Json, b'\\') => return Some(decode_json_escape(text)),
            (Self::Url, b'%') => parse_hex(text.get(1..3)),
            _ => None,
        };
        Some(match escaped.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => (Decoded::from_byte(byte), 3),
            None => (Decoded::from_byte(first), 1),
        })
    }
}

impl Decoded {
    fn from_byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], count: 1 }
    }

    fn from_char(char: char) -> Self {
        let mut bytes = [0; 4];
        let count = char.encode_utf8(&mut bytes).len();
        Self { bytes, count }
    }
}

/// Decodes the escape at the beginning of a text, with any number of backslashes, and returns its length. An unknown escape
/// decodes to the escaped character, so that no value is missed.
fn decode_json_escape(text: &[u8]) -> (Decoded, usize) {
    let (slashes, escaped) = skip_backslashes(text);
    let length = slashes + 1;
    match escaped.first() {
        None => (Decoded::default(), slashes),
        Some(b'n' | b'r') => (Decoded::default(), length),
        Some(b't') => (Decoded::from_byte(b'\t'), length),
        Some(b'b') => (Decoded::from_byte(8), length),
        Some(b'f') => (Decoded::from_byte(12), length),
        Some(b'u') => match decode_utf16(escaped) {
            Some((char, digits)) => (Decoded::from_char(char), slashes + digits),
            None => (Decoded::from_byte(b'u'), length),
        },
        Some(other) => (Decoded::from_byte(*other), length),
    }
}

/// Returns the number of backslashes at the beginning of a text, and the text after them.
fn skip_backslashes(text: &[u8]) -> (usize, &[u8]) {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    (slashes, text.get(slashes..).unwrap_or_default())
}

/// Decodes `u0041`, or a surrogate pair such as `ud83d\ude00`, and returns the character and its length in the text.
fn decode_utf16(escaped: &[u8]) -> Option<(char, usize)> {
    let first = parse_hex(escaped.get(1..5))?;
    if let Some(char) = char::from_u32(first) {
        return Some((char, 5));
    }
    let (slashes, second) = skip_backslashes(escaped.get(5..)?);
    let low = second.strip_prefix(b"u").and_then(|digits| parse_hex(digits.get(..4)))?;
    let pair = [u16::try_from(first).ok()?, u16::try_from(low).ok()?];
    let char = char::decode_utf16(pair).next()?.ok()?;
    (slashes > 0).then_some((char, 5 + slashes + 5))
}

/// Parses hexadecimal digits; `None` if a digit is invalid or missing.
fn parse_hex(digits: Option<&[u8]>) -> Option<u32> {
    digits?.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn decode(notation: Notation, text: &str) -> String {
        String::from_utf8(notation.decode(text.as_bytes())).unwrap()
    }

    #[rstest]
    #[case(Notation::Plain, "a\\u0062%63\r\nd", "a\\u0062%63d")]
    #[case(Notation::Url, "a%2Fb%2f%zz%4", "a/b/%zz%4")]
    #[case(Notation::Url, "%0d%0A%C3%A4", "ä")]
    #[case(Notation::Json, r#"\"a\\x\/c\nd\te"#, "\"ax/cd\te")]
    #[case(Notation::Json, r"\\\u0041\u00e4\ud83d\ude00\ud83d\\\ude00", "Aä😀😀")]
    #[case(Notation::Json, r"\ud83dx\u12\", "ud83dxu12")]
    fn a_text_is_decoded(#[case] notation: Notation, #[case] text: &str, #[case] expected: &str) {
        assert_eq!(decode(notation, text), expected);
    }

    proptest! {
        #[test]
        fn nested_json_strings_decode_to_the_same_value(value in any::<String>()) {
            let once = serde_json::to_string(&value).unwrap();
            let once = once.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            let twice = serde_json::to_string(once).unwrap();
            let twice = twice.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            let expected = decode(Notation::Json, &value);
            for text in [once, twice] {
                prop_assert_eq!(decode(Notation::Json, text), expected.clone());
            }
        }

        #[test]
        fn ranges_are_in_order_and_within_the_text(text in prop::collection::vec(any::<u8>(), 0..60)) {
            for notation in Notation::ALL {
                let mut last = 0..0;
                notation.decode_each(&text, |_, range| {
                    assert!(range == last || range.start >= last.end, "{last:?} {range:?}");
                    assert!(range.end <= text.len());
                    last = range;
                });
            }
        }
    }
}
