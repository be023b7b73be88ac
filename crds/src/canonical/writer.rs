//! Writes canonical JSON.

use serde_json::{Map, Value};
use std::fmt::Write;
use std::sync::LazyLock;

/// Whether the maps of `serde_json` sort their keys. They do not if a dependency enables the feature `preserve_order`.
static MAPS_ARE_SORTED: LazyLock<bool> = LazyLock::new(|| {
    let map: Map<String, Value> = ["b", "a"].map(|key| (key.to_owned(), Value::Null)).into_iter().collect();
    map.keys().is_sorted()
});

/// The number with the lowest bit of each byte.
const ONES: u64 = u64::MAX / 255;

/// Writes a value with sorted keys.
pub(super) fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => {
            // This cannot fail: the output is memory.
            let _ = write!(out, "{number}");
        }
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => write_object(fields, out),
    }
}

/// Writes an object.
pub(super) fn write_object(fields: &Map<String, Value>, out: &mut String) {
    if *MAPS_ARE_SORTED {
        return write_fields(fields.iter(), out);
    }
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_unstable_by(|a, b| a.0.cmp(b.0));
    write_fields(sorted.into_iter(), out);
}

fn write_fields<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut String) {
    out.push('{');
    for (at, (name, value)) in fields.enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_string(name, out);
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

/// Writes a string with the shortest escapes, and only where JSON needs them.
pub(super) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some((plain, escaped, after)) = split_at_escape(rest) {
        out.push_str(plain);
        match escaped {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other => {
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out.push('"');
}

/// Splits a text at the first character that needs an escape: into the text before it, the character, and the text after it.
fn split_at_escape(text: &str) -> Option<(&str, char, &str)> {
    let (before, from) = text.split_at_checked(plain_length(text.as_bytes()))?;
    let mut characters = from.chars();
    Some((before, characters.next()?, characters.as_str()))
}

/// Returns the length of the part of a text before the first byte that needs an escape.
pub(super) fn plain_length(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let marks = escape_marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return at * word.len() + usize::try_from(marks.trailing_zeros() / 8).unwrap_or_default();
        }
    }
    text.len() - rest.len() + rest.iter().take_while(|byte| !needs_escape(**byte)).count()
}

/// Returns the highest bit of each of eight bytes that needs an escape. The bits of bytes after the first such byte may be wrong.
fn escape_marks(word: u64) -> u64 {
    let less = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equal = |byte: u8| less(word ^ (ONES * u64::from(byte)), 1);
    (less(word, b' ') | equal(b'"') | equal(b'\\')) & (ONES << 7)
}

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_byte_that_needs_an_escape_is_found(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let expected = text.iter().position(|byte| needs_escape(*byte)).unwrap_or(text.len());
            prop_assert_eq!(plain_length(&text), expected);
        }

        /// These bytes are near those that need an escape.
        #[test]
        fn bytes_that_differ_in_one_bit_are_distinguished(
            text in prop::collection::vec(prop::sample::select(b"\x1f !\"#\\]\xa2\xdc\x9f".to_vec()), 0..40),
        ) {
            let expected = text.iter().position(|byte| needs_escape(*byte)).unwrap_or(text.len());
            prop_assert_eq!(plain_length(&text), expected);
        }
    }
}
