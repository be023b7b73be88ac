//! Checks the fields of a request and the schema of its answer.

use serde_json::Value;

use super::tools::is_valid_name;
use crate::model_server::request::Request;
use crate::model_server::violation::{BrokenRule, Rule};

/// The fields of `POST /v1/chat/completions`, as OpenAI documents them.
const KNOWN_FIELDS: [&str; 37] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

pub(super) fn check(request: &Request, broken: &mut Vec<BrokenRule>) {
    let fields = request.body.as_object().into_iter().flatten();
    let unknown = fields.map(|(name, _)| name).filter(|name| !KNOWN_FIELDS.contains(&name.as_str()));
    broken.extend(unknown.map(|name| (Rule::KnownFields, unknown_field(name))));
    if request.has("stream_options") && !request.stream {
        let why = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        broken.push((Rule::KnownFields, why.to_owned()));
    }
    if let Some(format) = request.body.get("response_format").filter(|format| !format.is_null()) {
        check_format(request, format, broken);
    }
}

/// Returns OpenAI's message about an unknown field.
pub(in crate::model_server::wire) fn unknown_field(path: &str) -> String {
    format!("Unrecognized request argument supplied: {path}")
}

fn check_format(request: &Request, format: &Value, broken: &mut Vec<BrokenRule>) {
    let mut report = |why: String| broken.push((Rule::OutputSchema, why));
    match format.get("type").and_then(Value::as_str) {
        Some("text") => {}
        Some("json_object") => {
            if !request.items.iter().any(|item| item.text.to_lowercase().contains("json")) {
                report(
                    "'messages' must contain the word 'json' in some form, to use 'response_format' of type \
                     'json_object'."
                        .to_owned(),
                );
            }
        }
        Some("json_schema") => {
            let name = format.pointer("/json_schema/name").and_then(Value::as_str).unwrap_or_default();
            if !is_valid_name(name) {
                report(format!("Invalid 'response_format.json_schema.name': `{name}`"));
            }
            // A missing schema is allowed.
            let schema = format.pointer("/json_schema/schema").unwrap_or(&Value::Null);
            let strict = format.pointer("/json_schema/strict") == Some(&Value::Bool(true));
            if !schema.is_null() && !schema.is_object() {
                report("Invalid type for 'response_format.json_schema.schema': expected an object".to_owned());
            } else if strict && let Err(NotStrict(message)) = check_strict(schema, &mut Vec::new()) {
                report(format!("Invalid schema for response_format '{name}': {message}"));
            }
        }
        _ => report("Invalid value for 'response_format.type': expected text, json_object or json_schema".to_owned()),
    }
}

/// The error of a schema that `strict` does not allow. Contains OpenAI's message.
struct NotStrict(String);

/// Checks the rules of `strict` for every object in a schema: no additional properties, and all properties required.
fn check_strict(schema: &Value, path: &mut Vec<String>) -> Result<(), NotStrict> {
    let Some(object) = schema.as_object() else { return Ok(()) };
    let context = || format!("In context=({})", path.join(", "));
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        if object.get("additionalProperties") != Some(&Value::Bool(false)) {
            let context = context();
            return Err(NotStrict(format!(
                "{context}, 'additionalProperties' is required to be supplied and to be false."
            )));
        }
        let required = object.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
        if let Some(name) = properties.keys().find(|name| !is_required(name)) {
            return Err(NotStrict(format!(
                "{}, 'required' is required to be supplied and to be an array including every key in properties. \
                 Missing '{name}'.",
                context()
            )));
        }
    }
    for (key, value) in object {
        path.push(format!("'{key}'"));
        match value {
            Value::Array(values) => values.iter().try_for_each(|value| check_strict(value, path))?,
            // Constants, defaults and enumerated values are not schemas.
            _ if matches!(key.as_str(), "const" | "default" | "enum" | "examples") => {}
            value => check_strict(value, path)?,
        }
        path.pop();
    }
    Ok(())
}
