//! Values, as programs read them.

use serde::Serialize;

/// As JSON, over several lines.
///
/// # Errors
/// What of it cannot be said in JSON.
pub fn json(what: &impl Serialize) -> Result<String, String> {
    serde_json::to_string_pretty(what).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// As YAML.
///
/// # Errors
/// What of it cannot be said in YAML.
pub fn yaml(what: &impl Serialize) -> Result<String, String> {
    serde_yaml::to_string(what).map_err(|error| error.to_string())
}
