//! Writes canonical JSON.

use serde_json::{Map, Value};
use std::fmt::Write;
use std::sync::LazyLock;

/// Whether the maps of `serde_json` sort their keys. They do not if a dependency enables the feature `preserve_order`.
static MAPS_ARE_SORTED: LazyLock<bool> = LazyLock::new(|| {
    let map: Map<String, Value> = ["b", "a"].map(|key| (key.to_owned(), Value::Null)).into_iter().collect();
    map.keys().is_sorted()
});

/// The number of bytes that are searched together for characters that need an escape.
const SEARCHED_BYTES: usize = 32;

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
fn write_string(text: &str, out: &mut String) {
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
    // A chunk without such a character is recognised without a branch for each byte.
    let has_escape = |chunk: &[u8]| chunk.iter().fold(false, |found, byte| found | needs_escape(*byte));
    let chunk = text.as_bytes().chunks(SEARCHED_BYTES).position(has_escape)? * SEARCHED_BYTES;
    let at = chunk + text.as_bytes().get(chunk..)?.iter().position(|byte| needs_escape(*byte))?;
    let (before, from) = text.split_at_checked(at)?;
    let mut characters = from.chars();
    Some((before, characters.next()?, characters.as_str()))
}

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}
