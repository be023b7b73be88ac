//! Typed values of JSON literals.

/// Reads a value from JSON that the author of a test wrote.
///
/// # Panics
/// The JSON is not a valid `T`. The message has the error and the JSON.
pub fn typed<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{error}: {json:#}"))
}
