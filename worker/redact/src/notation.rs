//! How a value may stand in a text: as it is, with the escapes of JSON, with those of URLs.
//!
//! A text is read byte by byte as each notation has it, and each byte knows its place in the text. Which characters
//! are escaped differs from writer to writer (`&` in Go, `/` in PHP, `~` in forms), so escapes are read, not written.
//! Line breaks are left out: encoders wrap what is long.

use std::ops::Range;

/// A way to write a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// As it is.
    Plain,
    /// With escapes of JSON, at any depth: JSON in a string of JSON doubles its backslashes.
    Json,
    /// With `%` and two hexadecimal digits.
    Url,
}

/// The bytes that one place of a text stands for: none to four.
#[derive(Default)]
struct Unit {
    bytes: [u8; 4],
    count: usize,
}

impl Notation {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Json, Self::Url];

    /// Whether a text can say anything in this notation that it does not say as it is.
    pub(super) fn is_in(self, text: &[u8]) -> bool {
        match self {
            Self::Plain => true,
            Self::Json => text.contains(&b'\\'),
            Self::Url => text.contains(&b'%'),
        }
    }

    /// Reads a text; gives each byte that it means, and where that stands.
    pub(super) fn read(self, text: &[u8], mut each: impl FnMut(u8, Range<usize>)) {
        let mut at = 0;
        while let Some((unit, length)) = self.unit(text.get(at..).unwrap_or_default()) {
            let place = at..at + length;
            for byte in unit.bytes.into_iter().take(unit.count).filter(|byte| !matches!(byte, b'\r' | b'\n')) {
                each(byte, place.clone());
            }
            at = place.end;
        }
    }

    /// What a text means.
    pub(super) fn meaning(self, text: &[u8]) -> Vec<u8> {
        let mut meaning = Vec::with_capacity(text.len());
        self.read(text, |byte, _| meaning.push(byte));
        meaning
    }

    /// What the text begins with, and how long that is; none at its end.
    fn unit(self, text: &[u8]) -> Option<(Unit, usize)> {
        let first = *text.first()?;
        let escaped = match (self, first) {
            (Self::Json, b'\\') => return Some(json_escape(text)),
            (Self::Url, b'%') => hex(text.get(1..3)),
            _ => None,
        };
        Some(match escaped.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => (Unit::of(byte), 3),
            None => (Unit::of(first), 1),
        })
    }
}

impl Unit {
    fn of(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], count: 1 }
    }

    fn of_char(char: char) -> Self {
        let mut bytes = [0; 4];
        let count = char.encode_utf8(&mut bytes).len();
        Self { bytes, count }
    }
}

/// An escape at the beginning of a text, after however many backslashes. One that JSON does not know is what is
/// escaped: a reader must miss nothing.
fn json_escape(text: &[u8]) -> (Unit, usize) {
    let (slashes, escaped) = after_backslashes(text);
    let length = slashes + 1;
    match escaped.first() {
        None => (Unit::default(), slashes),
        Some(b'n' | b'r') => (Unit::default(), length),
        Some(b't') => (Unit::of(b'\t'), length),
        Some(b'b') => (Unit::of(8), length),
        Some(b'f') => (Unit::of(12), length),
        Some(b'u') => match utf16(escaped) {
            Some((char, digits)) => (Unit::of_char(char), slashes + digits),
            None => (Unit::of(b'u'), length),
        },
        Some(other) => (Unit::of(*other), length),
    }
}

fn after_backslashes(text: &[u8]) -> (usize, &[u8]) {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    (slashes, text.get(slashes..).unwrap_or_default())
}

/// The character of `u0041`, or of a pair such as `ud83d\ude00`, and how long that is.
fn utf16(escaped: &[u8]) -> Option<(char, usize)> {
    let first = hex(escaped.get(1..5))?;
    if let Some(char) = char::from_u32(first) {
        return Some((char, 5));
    }
    let (slashes, second) = after_backslashes(escaped.get(5..)?);
    let low = second.strip_prefix(b"u").and_then(|digits| hex(digits.get(..4)))?;
    let pair = [u16::try_from(first).ok()?, u16::try_from(low).ok()?];
    let char = char::decode_utf16(pair).next()?.ok()?;
    (slashes > 0).then_some((char, 5 + slashes + 5))
}

/// The number that hexadecimal digits stand for; none where there are no digits, or something else.
fn hex(digits: Option<&[u8]>) -> Option<u32> {
    digits?.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn meaning(notation: Notation, text: &str) -> String {
        String::from_utf8(notation.meaning(text.as_bytes())).unwrap()
    }

    #[rstest]
    #[case(Notation::Plain, "a\\u0062%63\r\nd", "a\\u0062%63d")]
    #[case(Notation::Url, "a%2Fb%2f%zz%4", "a/b/%zz%4")]
    #[case(Notation::Url, "%0d%0A%C3%A4", "ä")]
    #[case(Notation::Json, r#"\"a\\x\/c\nd\te"#, "\"ax/cd\te")]
    #[case(Notation::Json, r"\\\u0041\u00e4\ud83d\ude00\ud83d\\\ude00", "Aä😀😀")]
    #[case(Notation::Json, r"\ud83dx\u12\", "ud83dxu12")]
    fn a_text_is_read(#[case] notation: Notation, #[case] text: &str, #[case] expected: &str) {
        assert_eq!(meaning(notation, text), expected);
    }

    proptest! {
        #[test]
        fn json_means_the_same_at_any_depth(value in any::<String>()) {
            let once = serde_json::to_string(&value).unwrap();
            let once = once.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            let twice = serde_json::to_string(once).unwrap();
            let twice = twice.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            let expected = meaning(Notation::Json, &value);
            // What stands before a value does not belong to it.
            for text in [once, twice] {
                prop_assert_eq!(meaning(Notation::Json, text), expected.clone());
            }
        }

        #[test]
        fn places_are_in_order_and_within_the_text(text in prop::collection::vec(any::<u8>(), 0..60)) {
            for notation in Notation::ALL {
                let mut last = 0..0;
                notation.read(&text, |_, place| {
                    assert!(place == last || place.start >= last.end, "{last:?} {place:?}");
                    assert!(place.end <= text.len());
                    last = place;
                });
            }
        }
    }
}
