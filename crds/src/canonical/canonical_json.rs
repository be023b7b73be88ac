//! A value in canonical form.

use super::{Digest, Error, MAX_DEPTH, depth, reader, to_string};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Canonical JSON with its digest. The parsed value is cached.
///
/// If it is deserialized, the digest is computed again: a stored digest proves nothing about the text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct CanonicalJson {
    text: String,
    digest: Digest,
    #[serde(skip)]
    value: OnceLock<Arc<Value>>,
}

/// The stored form of a [`CanonicalJson`]. The stored digest is ignored.
#[derive(Deserialize)]
struct Stored {
    text: String,
}

impl From<Stored> for CanonicalJson {
    fn from(Stored { text }: Stored) -> Self {
        Self { digest: Digest::of_bytes(text.as_bytes()), text, value: OnceLock::new() }
    }
}

impl CanonicalJson {
    /// Returns the canonical form of a value.
    pub fn new(value: Value) -> Self {
        Self::with_text(to_string(&value), value)
    }

    /// Parses a JSON text.
    ///
    /// # Errors
    /// Those of [`super::parse`], and [`Error::TooDeep`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        if let Some((value, text)) = reader::read(text) {
            return Ok(Self::with_text(text, value));
        }
        let value = super::parse(text)?;
        // What the reader reads is never too deep.
        if depth(&value) > MAX_DEPTH { Err(Error::TooDeep(MAX_DEPTH)) } else { Ok(Self::new(value)) }
    }

    /// Returns the canonical form of a value, whose canonical text is known.
    fn with_text(text: String, value: Value) -> Self {
        Self { digest: Digest::of_bytes(text.as_bytes()), text, value: OnceLock::from(Arc::new(value)) }
    }

    /// Returns the canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the digest of the text.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns the value. If this object was deserialized, for example from a log, the first call parses the text.
    ///
    /// # Errors
    /// Returns an error if a deserialized text is not JSON.
    pub fn value(&self) -> Result<&Value, Error> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = serde_json::from_str(&self.text).map_err(|error| Error::Syntax(error.to_string()))?;
        Ok(self.value.get_or_init(|| Arc::new(value)))
    }
}

impl PartialEq for CanonicalJson {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.digest) == (&other.text, &other.digest)
    }
}

impl Eq for CanonicalJson {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_serialized_value_is_deserialized_unchanged() {
        let made = CanonicalJson::new(json!({"b": [1, 2.5], "a": null}));
        assert_eq!(made.text(), r#"{"a":null,"b":[1,2.5]}"#);
        assert_eq!(made.digest(), &Digest::of_bytes(made.text().as_bytes()));
        let read: CanonicalJson = serde_json::from_str(&serde_json::to_string(&made).unwrap()).unwrap();
        assert_eq!(read, made);
        assert_eq!((read.value(), made.value()), (made.value(), read.value()));
    }

    #[test]
    fn an_invalid_text_has_no_value() {
        let read: CanonicalJson =
            serde_json::from_value(json!({"text": "{", "digest": Digest::of_bytes(b"{")})).unwrap();
        assert!(read.value().is_err());
    }

    #[test]
    fn a_stored_digest_of_another_text_does_not_count() {
        let stored = json!({"text": r#"{"amount":25.9}"#, "digest": Digest::of_bytes(br#"{"amount":5}"#)});
        let read: CanonicalJson = serde_json::from_value(stored).unwrap();
        assert_eq!(read.digest(), &Digest::of_bytes(read.text().as_bytes()));
    }
}
