//! Canonical JSON and the digests made of it (`docs/explanation/engine.md`, section 1, "Digests").
//!
//! Keys are sorted by code point, integers of 64 bits stay exact, floats are printed shortest. RFC 8785 maps
//! every number to a double, so 9007199254740993 and ...992 would share one digest: two orders, one approval.

mod document;
#[cfg(test)]
mod hostile;
mod number;
mod strict;

pub use document::Document;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::fmt;
pub use strict::Error;

/// A SHA-256 over canonical JSON or bytes, written `sha256:<64 hex digits>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Digest(#[schemars(length(max = 71))] String);

impl Digest {
    /// Digests bytes as they are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let hash = Sha256::digest(bytes);
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        // Not by `{byte:02x}`: a digest is made for every line of a log and every call.
        let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        text.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
        Self(text)
    }

    /// Digests the canonical form of a value.
    pub fn of_value(value: &Value) -> Self {
        Self::of_bytes(to_string(value).as_bytes())
    }

    /// The whole digest, `sha256:` included.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The SHA-256 itself, for where many are kept: it is half as long. None of a text that is no digest.
    pub fn bytes(&self) -> Option<[u8; 32]> {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits(&self.0)?.as_bytes().chunks(2)) {
            *byte = pair.iter().try_fold(0, |high, low| Some(high << 4 | digit(*low)?))?;
        }
        Some(bytes)
    }

    /// The first `n` hex digits, for names that people read.
    pub fn short(&self, n: usize) -> &str {
        let hex = self.0.strip_prefix("sha256:").unwrap_or(&self.0);
        hex.get(..n).unwrap_or(hex)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match digits(text) {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(format!("{text:?} is not a digest: expected sha256: and 64 hex digits")),
        }
    }
}

/// The digits of a text that is a digest.
fn digits(text: &str) -> Option<&str> {
    let is_good = |hex: &&str| hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    text.strip_prefix("sha256:").filter(is_good)
}

/// Reads a JSON text, refusing what has no canonical form.
pub fn parse(text: &str) -> Result<Value, Error> {
    let value = strict::parse(text)?;
    number::check(text)?;
    Ok(value)
}

/// Writes a value in canonical form.
pub fn to_string(value: &Value) -> String {
    // It cannot fail: keys are texts, and what is written to is memory.
    serde_json::to_string(&Sorted(value)).unwrap_or_else(|_| value.to_string())
}

/// Writes an object in canonical form: [`to_string`] for one that is no [`Value`] yet, and may be large.
pub fn object_to_string(object: &Map<String, Value>) -> String {
    serde_json::to_string(&SortedObject(object)).unwrap_or_else(|_| Value::Object(object.clone()).to_string())
}

/// The deepest value that is taken from outside. What we wrap it in (log lines, reports, lists of Jobs) is read by
/// parsers that stop at 128 levels: a value near that would make all of it unreadable.
pub const MAX_DEPTH: usize = 32;

/// The largest schema that is taken from outside, in bytes of JSON (`docs/explanation/engine.md`, section 3).
pub const MAX_SCHEMA: usize = 64 * 1024;

/// How many arrays and objects are nested in a value; 0 for a scalar.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => object_depth(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// How many arrays and objects are nested in an object, itself included.
pub fn object_depth(object: &Map<String, Value>) -> usize {
    1 + object.values().map(depth).max().unwrap_or(0)
}

/// A value whose keys are sorted here rather than trusted to be: a dependency may switch `serde_json` to insertion order.
struct Sorted<'a>(&'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                scalar.serialize(serializer)
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            Value::Object(map) => SortedObject(map).serialize(serializer),
        }
    }
}

/// An object whose keys are sorted here.
struct SortedObject<'a>(&'a Map<String, Value>);

impl Serialize for SortedObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
        serializer.collect_map(entries.into_iter().map(|(key, item)| (key, Sorted(item))))
    }
}

#[cfg(test)]
mod tests;
