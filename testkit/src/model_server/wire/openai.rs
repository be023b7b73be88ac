//! OpenAI's chat completions.

mod answer;
mod fields;
mod messages;
mod stream;
mod tools;

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) use self::answer::whole;
pub(super) use self::fields::unknown_field;
pub(super) use self::stream::events;
use crate::model_server::error::{ApiError, Reason};
use crate::model_server::request::{Item, Kind, Protocol, Request, text};
use crate::model_server::violation::BrokenRule;

/// The fields that the server uses. Other fields are only checked.
#[derive(Deserialize)]
struct Body {
    model: String,
    messages: Vec<Value>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
}

pub(super) fn read(body: &[u8]) -> Result<Request, serde_json::Error> {
    let body: Value = serde_json::from_slice(body)?;
    let Body { model, messages, tools, user, stream } = Body::deserialize(&body)?;
    let format = body.pointer("/response_format/type").and_then(Value::as_str);
    Ok(Request {
        protocol: Protocol::Openai,
        structured: matches!(format, Some("json_schema" | "json_object")),
        version: None,
        model,
        user,
        items: messages.into_iter().enumerate().map(item).collect(),
        tools: tools.unwrap_or_default(),
        tool_name: "/function/name",
        stream: stream == Some(true),
        body,
    })
}

fn item((index, message): (usize, Value)) -> Item {
    let kind = match role(&message) {
        Some("system" | "developer") => Kind::System,
        Some("user") => Kind::User,
        Some("assistant") => Kind::Assistant,
        Some("tool") => Kind::Result,
        _ => Kind::Unknown,
    };
    let call = message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned);
    Item { kind, at: format!("messages[{index}]"), text: text(message.get("content")), call, raw: message }
}

fn role(message: &Value) -> Option<&str> {
    message.get("role")?.as_str()
}

pub(super) fn check(request: &Request) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    fields::check(request, &mut broken);
    messages::check(&request.items, &mut broken);
    tools::check(request, &mut broken);
    broken
}

pub(super) fn error(error: &ApiError) -> Value {
    let kind = match error.status {
        StatusCode::TOO_MANY_REQUESTS => "requests",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let code = match error.reason {
        Reason::Key => Some("invalid_api_key"),
        Reason::Model => Some("model_not_found"),
        Reason::TooLong => Some("context_length_exceeded"),
        Reason::Plain => (error.status == StatusCode::TOO_MANY_REQUESTS).then_some("rate_limit_exceeded"),
    };
    let param = (error.reason == Reason::TooLong).then_some("messages");
    json!({"error": {"message": error.message, "type": kind, "param": param, "code": code}})
}

pub(super) fn models<'a>(names: impl Iterator<Item = &'a String>) -> Value {
    let data: Vec<Value> =
        names.map(|name| json!({"id": name, "object": "model", "created": 0, "owned_by": "bloomery-e2e"})).collect();
    json!({"object": "list", "data": data})
}
