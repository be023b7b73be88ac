//! Checks the tools of a request, and their names.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model_server::request::Request;
use crate::model_server::violation::{BrokenRule, Rule};

pub(super) fn check(request: &Request, broken: &mut Vec<BrokenRule>) {
    let mut names = BTreeSet::new();
    for (index, tool) in request.tools.iter().enumerate() {
        let Some(name) = tool.pointer(request.tool_name).and_then(Value::as_str) else {
            broken.push((Rule::ToolNames, format!("tools[{index}]: it has no `function.name`")));
            continue;
        };
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            broken.push((Rule::ToolNames, format!("tools[{index}]: `type` is not `function`")));
        }
        if !is_valid_name(name) {
            broken.push((Rule::ToolNames, format!("tools[{index}]: `{name}` does not match ^[A-Za-z0-9_-]{{1,64}}$")));
        }
        if !names.insert(name) {
            broken.push((Rule::ToolNames, format!("tools[{index}]: `{name}` is offered twice")));
        }
    }
}

/// Returns whether OpenAI accepts a name for a tool. Anthropic then accepts it as well.
pub(super) fn is_valid_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
