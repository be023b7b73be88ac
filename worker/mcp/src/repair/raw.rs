//! Deserializes parts of messages as raw JSON.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Deserializes a field to `Some` if it is present, even if its value is `null`.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
