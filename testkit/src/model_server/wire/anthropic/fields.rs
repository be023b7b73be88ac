//! Checks the fields of a request, except its messages and tools.

use serde_json::Value;

use super::thinking;
use crate::model_server::request::Request;
use crate::model_server::violation::{BrokenRule, Rule};

/// The header with the version of the API.
pub(in crate::model_server::wire) const VERSION: &str = "anthropic-version";

/// The versions of the API, the oldest first. The last version has no `temperature`, `top_p` and `top_k`.
const VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// The fields of `POST /v1/messages` in every version, as Anthropic documents them.
const KNOWN_FIELDS: [&str; 17] = [
    "cache_control",
    "container",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "thinking",
    "tool_choice",
    "tools",
];

/// The additional fields of the first version.
const FIRST_VERSION_FIELDS: [&str; 3] = ["temperature", "top_k", "top_p"];

/// The minimum budget for thinking, in tokens.
const MIN_THINKING_TOKENS: u64 = 1024;

pub(super) fn check(request: &Request, broken: &mut Vec<BrokenRule>) {
    let body = &request.body;
    let version = request.version.as_deref();
    match version {
        None => broken.push((Rule::RequiredFields, format!("{VERSION}: header is required"))),
        Some(version) if !VERSIONS.contains(&version) => {
            broken.push((Rule::RequiredFields, format!("{VERSION}: \"{version}\" is not a valid version")));
        }
        Some(_) => {}
    }
    let more_fields = if version == VERSIONS.last().copied() { &[] } else { FIRST_VERSION_FIELDS.as_slice() };
    check_known(body, "", &[KNOWN_FIELDS.as_slice(), more_fields].concat(), broken);
    match body.get("max_tokens") {
        None | Some(Value::Null) => broken.push((Rule::RequiredFields, "max_tokens: Field required".to_owned())),
        Some(tokens) if tokens.as_u64().is_none() => {
            broken.push((Rule::RequiredFields, "max_tokens: Input should be a valid integer".to_owned()));
        }
        Some(_) => {}
    }
    check_metadata(body, broken);
    check_thinking(body, broken);
    if let Some(config) = body.get("output_config").filter(|config| !config.is_null()) {
        check_output(config, broken);
    }
}

/// Returns Anthropic's message about an unknown field.
pub(in crate::model_server::wire) fn unknown_field(path: &str) -> String {
    format!("{path}: Extra inputs are not permitted")
}

/// Reports each field of `value` that is not in `known`. `at` is the path of `value` in the request; empty for the
/// request itself.
pub(super) fn check_known(value: &Value, at: &str, known: &[&str], broken: &mut Vec<BrokenRule>) {
    let fields = value.as_object().into_iter().flatten();
    let unknown = fields.map(|(name, _)| name).filter(|name| !known.contains(&name.as_str()));
    broken.extend(unknown.map(|name| {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        (Rule::KnownFields, unknown_field(&path))
    }));
}

fn check_metadata(body: &Value, broken: &mut Vec<BrokenRule>) {
    if let Some(metadata) = body.get("metadata") {
        check_known(metadata, "metadata", &["user_id"], broken);
    }
}

fn check_thinking(body: &Value, broken: &mut Vec<BrokenRule>) {
    let Some(config) = body.get("thinking").filter(|config| !config.is_null()) else { return };
    let mut report = |why: &str| broken.push((Rule::MessageShape, why.to_owned()));
    let is_call_forced = matches!(body.pointer("/tool_choice/type").and_then(Value::as_str), Some("any" | "tool"));
    let is_on = matches!(thinking::mode(body), Some("enabled" | "adaptive"));
    if is_on && is_call_forced {
        report("Thinking may not be enabled when tool_choice forces tool use.");
    }
    let temperature = body.get("temperature").and_then(Value::as_f64);
    if is_on && temperature.is_some_and(|temperature| (temperature - 1.0).abs() > f64::EPSILON) {
        report("`temperature` may only be set to 1 when thinking is enabled.");
    }
    match thinking::mode(body) {
        Some("enabled") => {
            let budget = config.get("budget_tokens").and_then(Value::as_u64).unwrap_or_default();
            if budget < MIN_THINKING_TOKENS {
                report("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024");
            }
            if body.get("max_tokens").and_then(Value::as_u64).is_some_and(|max_tokens| max_tokens <= budget) {
                report("`max_tokens` must be greater than `thinking.budget_tokens`.");
            }
            check_known(config, "thinking.enabled", &["type", "budget_tokens", "display"], broken);
        }
        Some("adaptive") => check_known(config, "thinking.adaptive", &["type", "display"], broken),
        Some("disabled") => check_known(config, "thinking.disabled", &["type"], broken),
        Some("between_tools") => check_known(config, "thinking.between_tools", &["type"], broken),
        _ => report("thinking.type: Input should be 'enabled', 'adaptive', 'disabled' or 'between_tools'"),
    }
}

fn check_output(config: &Value, broken: &mut Vec<BrokenRule>) {
    check_known(config, "output_config", &["effort", "format"], broken);
    let Some(format) = config.get("format").filter(|format| !format.is_null()) else { return };
    check_known(format, "output_config.format", &["type", "schema"], broken);
    let mut report = |why: &str| broken.push((Rule::OutputSchema, format!("output_config.format.{why}")));
    if format.get("type").and_then(Value::as_str) != Some("json_schema") {
        report("type: Input should be 'json_schema'");
    }
    match format.get("schema") {
        Some(schema) if schema.is_object() => {
            if !is_closed(schema) {
                report("schema: For 'object' type, 'additionalProperties' must be explicitly set to false");
            }
        }
        _ => report("schema: Field required"),
    }
}

/// Returns whether every object in a schema forbids additional properties.
fn is_closed(schema: &Value) -> bool {
    match schema {
        Value::Array(values) => values.iter().all(is_closed),
        Value::Object(object) => {
            let is_object = object.get("type").and_then(Value::as_str) == Some("object");
            let closed = object.get("additionalProperties") == Some(&Value::Bool(false));
            // Constants, defaults and enumerated values are not schemas.
            let parts = object.iter().filter(|(key, _)| !matches!(key.as_str(), "const" | "default" | "enum"));
            (!is_object || closed) && parts.map(|(_, value)| value).all(is_closed)
        }
        _ => true,
    }
}
