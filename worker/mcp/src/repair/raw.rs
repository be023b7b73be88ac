//! Parts of messages that are not parsed.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Deserializes a field that is present, even if it is `null`.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
