//! A chat-completions request, as far as the server reads it.

use serde::Deserialize;
use serde_json::Value;

/// The body of `POST /v1/chat/completions`. Messages and tools stay raw: the protocol check
/// compares them whole.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Request {
    pub(super) model: String,
    pub(super) messages: Vec<Value>,
    #[serde(default)]
    pub(super) tools: Vec<Value>,
    /// Whose conversation it is: the worker sends the Job's UID.
    #[serde(default)]
    pub(super) user: Option<String>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
}

impl Request {
    /// Returns the turn that is asked for: the number of answers that the request already holds.
    pub(super) fn turn(&self) -> usize {
        self.of_role("assistant").count()
    }

    pub(super) fn of_role(&self, role: &'static str) -> impl DoubleEndedIterator<Item = &Value> {
        self.messages.iter().filter(move |message| self::role(message) == Some(role))
    }

    /// Returns the text of the system message, whichever of its two names it goes by.
    pub(super) fn system_text(&self) -> Option<String> {
        self.messages.iter().find(|message| is_system(message)).map(text)
    }

    /// Returns the names of the tools on offer.
    pub(super) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().filter_map(|tool| tool.pointer("/function/name")?.as_str())
    }
}

pub(super) fn role(message: &Value) -> Option<&str> {
    message.get("role")?.as_str()
}

pub(super) fn is_system(message: &Value) -> bool {
    matches!(role(message), Some("system" | "developer"))
}

/// Returns a message's text: a string, or the text parts of a list one after the other.
pub(super) fn text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("")
        }
        _ => String::new(),
    }
}

/// Returns the tool calls of an assistant message.
pub(super) fn tool_calls(message: &Value) -> &[Value] {
    message.get("tool_calls").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
