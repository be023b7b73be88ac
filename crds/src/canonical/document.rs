//! A value in canonical form that is read once.

use super::{Digest, to_string};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Canonical JSON, its digest, and what it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Document {
    text: String,
    digest: Digest,
    #[serde(skip)]
    value: OnceLock<Arc<Value>>,
}

impl Document {
    /// Brings a value into canonical form.
    pub fn new(value: Value) -> Self {
        let text = to_string(&value);
        Self { digest: Digest::of_bytes(text.as_bytes()), text, value: OnceLock::from(Arc::new(value)) }
    }

    /// The canonical text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The digest of the text.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The value. Only a document that was itself read, from a log, is parsed for it, and only once.
    ///
    /// # Errors
    /// The text that was read is no JSON.
    pub fn value(&self) -> Result<&Value, String> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = serde_json::from_str(&self.text).map_err(|error| error.to_string())?;
        Ok(self.value.get_or_init(|| Arc::new(value)))
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.digest) == (&other.text, &other.digest)
    }
}

impl Eq for Document {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_written_is_read_as_the_same_document() {
        let made = Document::new(json!({"b": [1, 2.5], "a": null}));
        assert_eq!(made.text(), r#"{"a":null,"b":[1,2.5]}"#);
        assert_eq!(made.digest(), &Digest::of_bytes(made.text().as_bytes()));
        let read: Document = serde_json::from_str(&serde_json::to_string(&made).unwrap()).unwrap();
        assert_eq!(read, made);
        assert_eq!((read.value(), made.value()), (made.value(), read.value()));
    }

    #[test]
    fn a_text_that_is_no_json_has_no_value() {
        let read: Document = serde_json::from_value(json!({"text": "{", "digest": Digest::of_bytes(b"{")})).unwrap();
        assert!(read.value().is_err());
    }
}
