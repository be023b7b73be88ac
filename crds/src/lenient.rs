//! Reads values of enums that a newer version may have extended.
//!
//! Operators and workers of two versions run at the same time during an upgrade, and after a rollback. A value that only informs
//! people must not make the whole report or status unreadable. Values that decide whether a call is allowed are not read this way, except for
//! the limits in directives (`docs/explanation/versions.md`).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads an optional value. A value that this version does not know counts as absent.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(known(Value::deserialize(deserializer)?))
}

/// Reads a list without the items that this version does not know.
pub(crate) fn items<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Value>::deserialize(deserializer)?.into_iter().filter_map(known).collect())
}

/// Reads a value, or returns its default if this version does not know it.
pub(crate) fn or<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D, default: T) -> Result<T, D::Error> {
    Ok(known(Value::deserialize(deserializer)?).unwrap_or(default))
}

fn known<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}
