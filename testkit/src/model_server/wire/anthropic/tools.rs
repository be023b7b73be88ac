//! Checks the tools of a request.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fields::check_known;
use crate::model_server::request::Request;
use crate::model_server::violation::{BrokenRule, Rule};

/// The fields of a tool that the client defines.
const KNOWN_FIELDS: [&str; 9] = [
    "type",
    "name",
    "description",
    "input_schema",
    "cache_control",
    "strict",
    "defer_loading",
    "eager_input_streaming",
    "allowed_callers",
];

pub(super) fn check(request: &Request, broken: &mut Vec<BrokenRule>) {
    let mut names = BTreeSet::new();
    let tools = request.body.get("tools").and_then(Value::as_array).into_iter().flatten();
    for (index, tool) in tools.enumerate() {
        let mut report = |rule: Rule, why: &str| broken.push((rule, format!("tools.{index}.{why}")));
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        if !is_valid_name(name) {
            report(Rule::ToolNames, "custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'");
        }
        match tool.get("input_schema") {
            Some(schema) if schema.get("type").and_then(Value::as_str) == Some("object") => {}
            Some(_) => report(Rule::MessageShape, "custom.input_schema.type: Input should be 'object'"),
            None => report(Rule::RequiredFields, "custom.input_schema: Field required"),
        }
        if !matches!(tool.get("type").map(Value::as_str), None | Some(Some("custom"))) {
            report(Rule::MessageShape, "type: this server has no tools of its own");
        }
        check_known(tool, &format!("tools.{index}.custom"), &KNOWN_FIELDS, broken);
        if !names.insert(name) {
            broken.push((Rule::ToolNames, format!("tools: Tool names must be unique: `{name}`")));
        }
    }
}

/// Returns whether Anthropic accepts the name of a tool or the id of a call.
pub(super) fn is_valid_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
