//! Checks the blocks of a message.

use serde_json::Value;

use super::fields::check_known;
use super::prompt::type_of;
use super::{thinking, tools};
use crate::model_server::violation::{BrokenRule, Rule};

/// One block and its path in the request.
struct Block<'a> {
    value: &'a Value,
    at: String,
    is_user: bool,
}

pub(super) fn check(index: usize, message: &Value, broken: &mut Vec<BrokenRule>) {
    let at = format!("messages.{index}");
    check_known(message, &at, &["role", "content"], broken);
    let role = message.get("role").and_then(Value::as_str);
    if !matches!(role, Some("user" | "assistant" | "system")) {
        let why = format!("{at}.role: Input should be 'user', 'assistant' or 'system'");
        return broken.push((Rule::MessageShape, why));
    }
    let is_empty = match message.get("content") {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(blocks)) => {
            for (place, value) in blocks.iter().enumerate() {
                let at = format!("{at}.content.{place}");
                Block { value, at, is_user: role != Some("assistant") }.check(broken);
            }
            blocks.is_empty()
        }
        _ => {
            let why = format!("{at}.content: Input should be a valid string or list");
            return broken.push((Rule::MessageShape, why));
        }
    };
    if is_empty {
        let why = "all messages must have non-empty content except for the optional final assistant message";
        broken.push((Rule::MessageShape, format!("{at}: {why}")));
    }
}

impl Block<'_> {
    fn check(&self, broken: &mut Vec<BrokenRule>) {
        let kind = type_of(self.value);
        let known: &[&str] = match kind {
            "text" => &["type", "text", "cache_control", "citations"],
            "tool_use" => &["type", "id", "name", "input", "cache_control", "caller", "toolset_name"],
            "tool_result" => &["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"],
            "thinking" => &["type", "thinking", "signature"],
            "redacted_thinking" => &["type", "data"],
            "image" | "document" | "search_result" => return,
            other => {
                let why = format!("Input tag '{other}' found using 'type' does not match any of the expected tags");
                return self.report(Rule::MessageShape, &why, broken);
            }
        };
        check_known(self.value, &format!("{}.{kind}", self.at), known, broken);
        match kind {
            "text" => self.check_text(broken),
            "tool_use" => self.check_call(broken),
            "tool_result" => self.check_result(broken),
            _ => self.check_thought(kind, broken),
        }
    }

    fn report(&self, rule: Rule, why: &str, broken: &mut Vec<BrokenRule>) {
        broken.push((rule, format!("{}: {why}", self.at)));
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.value.get(name).and_then(Value::as_str)
    }

    /// Checks that the message of a block is of the user, or that it is not.
    fn check_role(&self, is_user: bool, broken: &mut Vec<BrokenRule>) {
        if self.is_user != is_user {
            let (kind, role) = (type_of(self.value), if is_user { "user" } else { "assistant" });
            let why = format!("`{kind}` blocks can only be in `{role}` messages");
            self.report(Rule::MessageShape, &why, broken);
        }
    }

    fn check_text(&self, broken: &mut Vec<BrokenRule>) {
        match self.field("text") {
            Some("") => self.report(Rule::MessageShape, "text content blocks must be non-empty", broken),
            Some(text) if text.trim().is_empty() => {
                self.report(Rule::MessageShape, "text content blocks must contain non-whitespace text", broken);
            }
            Some(_) => {}
            None => self.report(Rule::MessageShape, "text: Field required", broken),
        }
    }

    fn check_call(&self, broken: &mut Vec<BrokenRule>) {
        self.check_role(false, broken);
        if !self.field("id").is_some_and(tools::is_valid_name) {
            self.report(Rule::MessageShape, "id: String should match pattern '^[a-zA-Z0-9_-]+$'", broken);
        }
        if !self.field("name").is_some_and(tools::is_valid_name) {
            let why = "name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
            self.report(Rule::ToolNames, why, broken);
        }
        if !self.value.get("input").is_some_and(Value::is_object) {
            self.report(Rule::MessageShape, "input: Input should be a valid dictionary", broken);
        }
    }

    fn check_result(&self, broken: &mut Vec<BrokenRule>) {
        self.check_role(true, broken);
        if self.field("tool_use_id").is_none() {
            self.report(Rule::ResultHasCall, "tool_use_id: Field required", broken);
        }
        match self.value.get("content") {
            None | Some(Value::String(_) | Value::Array(_)) => {}
            Some(_) => self.report(Rule::MessageShape, "content: Input should be a valid string or list", broken),
        }
        if !matches!(self.value.get("is_error"), None | Some(Value::Bool(_))) {
            self.report(Rule::MessageShape, "is_error: Input should be a valid boolean", broken);
        }
    }

    fn check_thought(&self, kind: &str, broken: &mut Vec<BrokenRule>) {
        self.check_role(false, broken);
        if kind == "thinking" && !thinking::is_from_this_server(self.value) {
            self.report(Rule::ThinkingKept, "Invalid `signature` in `thinking` block", broken);
        }
        if kind == "redacted_thinking" && self.field("data").is_none() {
            self.report(Rule::ThinkingKept, "data: Field required", broken);
        }
    }
}
