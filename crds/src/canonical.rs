//! Canonical JSON and digests of it (`docs/explanation/engine.md`, section 1).
//!
//! Keys are sorted by code point, 64-bit integers stay exact, and floats are written in their shortest form.
//!
//! This is not RFC 8785, which converts every number to a double. With RFC 8785, the integers 9007199254740993 and 9007199254740992
//! would have the same digest, so an approval of a call for one order would also approve the call for the other.

mod canonical_json;
#[cfg(test)]
mod hostile;
mod number;
mod reader;
mod strict;
mod writer;

pub use canonical_json::CanonicalJson;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::fmt;
pub use strict::Error;

/// A SHA-256 digest of canonical JSON or of bytes, written `sha256:<64 hex digits>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Digest(#[schemars(length(max = 71))] String);

impl Digest {
    /// Returns the digest of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let hash = Sha256::digest(bytes);
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        // Faster than `{byte:02x}`: every line of a log and every call needs a digest.
        let half_bytes = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        text.extend(half_bytes.filter_map(|half| char::from_digit(half.into(), 16)));
        Self(text)
    }

    /// Returns the digest of the canonical form of a value.
    pub fn of_value(value: &Value) -> Self {
        Self::of_bytes(to_string(value).as_bytes())
    }

    /// Returns the whole digest, including `sha256:`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the 32 bytes of the SHA-256, which take half the memory of the text. Returns `None` if the deserialized text is not a
    /// digest.
    pub fn bytes(&self) -> Option<[u8; 32]> {
        let value_of = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex_digits(&self.0)?.as_bytes().chunks(2)) {
            *byte = pair.iter().try_fold(0, |high, low| Some(high << 4 | value_of(*low)?))?;
        }
        Some(bytes)
    }

    /// Returns the first `n` hex digits. Names of objects contain them.
    pub fn short(&self, n: usize) -> &str {
        let hex = self.0.strip_prefix("sha256:").unwrap_or(&self.0);
        hex.get(..n).unwrap_or(hex)
    }
}

/// A text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest: expected sha256: and 64 hex digits")]
pub struct InvalidDigest(String);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match hex_digits(text) {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(InvalidDigest(text.to_owned())),
        }
    }
}

/// Returns the hex digits of a digest, or `None` if the text is not a digest.
fn hex_digits(text: &str) -> Option<&str> {
    let is_sha256 = |hex: &&str| hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    text.strip_prefix("sha256:").filter(is_sha256)
}

/// Parses a JSON text.
///
/// # Errors
/// Returns an error if the text has no canonical form: it is not JSON, repeats a key, or has a number that would change if it
/// were written again.
pub fn parse(text: &str) -> Result<Value, Error> {
    let value = strict::parse(text)?;
    number::check(text)?;
    Ok(value)
}

/// The length of most texts, in bytes. Longer ones are moved while they are written.
const USUAL_BYTES: usize = 128;

/// Writes a value in canonical form.
pub fn to_string(value: &Value) -> String {
    let mut text = String::with_capacity(USUAL_BYTES);
    writer::write(value, &mut text);
    text
}

/// Writes an object in canonical form. Unlike [`to_string`], it needs no copy of the object as a [`Value`].
pub fn object_to_string(object: &Map<String, Value>) -> String {
    let mut text = String::with_capacity(USUAL_BYTES);
    writer::write_object(object, &mut text);
    text
}

/// The deepest allowed nesting of a JSON value from a model, a server or a person. Log lines, reports and lists of Jobs
/// contain these values, and their parsers stop at 128 levels.
pub const MAX_DEPTH: usize = 32;

/// The largest JSON schema of a tool or an output contract, in bytes (`docs/explanation/engine.md`, section 3).
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// Returns the nesting depth of a value: the number of arrays and objects around its deepest scalar.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => object_depth(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Returns the nesting depth of an object, itself included.
pub fn object_depth(object: &Map<String, Value>) -> usize {
    1 + object.values().map(depth).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
