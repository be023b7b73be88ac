//! Typed values of JSON literals.

/// Reads a value from JSON that the author of a test wrote.
///
/// # Panics
/// The JSON is no such value. The message names both.
pub fn typed<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{error}: {json:#}"))
}
