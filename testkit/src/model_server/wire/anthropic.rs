//! Anthropic's Messages.

mod answer;
mod content;
mod fields;
mod messages;
mod prompt;
mod stream;
mod thinking;
mod tools;

use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) use self::answer::{thoughts, whole};
pub(super) use self::fields::{VERSION, unknown_field};
pub(super) use self::prompt::parts;
pub(super) use self::stream::events;
use crate::model_server::answer::UNKNOWN_FIELD;
use crate::model_server::error::{ApiError, OVERLOADED, Reason};
use crate::model_server::request::{Protocol, Request};
use crate::model_server::violation::{BrokenRule, Rule};

/// The fields that the server uses. Other fields are only checked.
#[derive(Deserialize)]
struct Body {
    model: String,
    messages: Vec<Value>,
    #[serde(default)]
    system: Option<Value>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    user_id: Option<String>,
}

/// Returns the key in the header that takes precedence.
pub(super) fn key(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-api-key")?.to_str().ok()
}

pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Request, serde_json::Error> {
    let mut body: Value = serde_json::from_slice(body)?;
    remove_unknown_fields(&mut body);
    let Body { model, messages, system, tools, metadata, stream } = Body::deserialize(&body)?;
    Ok(Request {
        protocol: Protocol::Anthropic,
        structured: body.pointer("/output_config/format/schema").is_some(),
        version: headers.get(VERSION).and_then(|version| version.to_str().ok()).map(str::to_owned),
        model,
        user: metadata.and_then(|metadata| metadata.user_id),
        items: prompt::items(system.as_ref(), &messages),
        tools: tools.unwrap_or_default().iter().map(prompt::unmarked).collect(),
        tool_name: "/name",
        stream: stream == Some(true),
        body,
    })
}

/// Removes the unknown fields that an unusual answer had. A provider accepts its own fields when a client returns them.
fn remove_unknown_fields(body: &mut Value) {
    let messages = body.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    let said = messages.filter(|message| message.get("role").is_some_and(|role| role == "assistant"));
    let contents = said.filter_map(|message| message.get_mut("content")?.as_array_mut());
    for block in contents.flatten().filter_map(Value::as_object_mut) {
        block.remove(UNKNOWN_FIELD);
    }
}

pub(super) fn check(request: &Request) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    fields::check(request, &mut broken);
    tools::check(request, &mut broken);
    messages::check(request, &mut broken);
    let marks = parts(request).iter().filter(|part| part.marked).count();
    if marks > 4 {
        let why = format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}.");
        broken.push((Rule::CacheMarks, why));
    }
    broken
}

pub(super) fn error(error: &ApiError) -> Value {
    let kind = match error.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::PAYMENT_REQUIRED => "billing_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::GATEWAY_TIMEOUT => "timeout_error",
        status if status.as_u16() == OVERLOADED => "overloaded_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    };
    let message = match error.reason {
        Reason::Key => "invalid x-api-key",
        Reason::TooLong => "prompt is too long: 210000 tokens > 200000 maximum",
        Reason::Plain | Reason::Model => &error.message,
    };
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": null})
}

pub(super) fn models<'a>(names: impl Iterator<Item = &'a String>) -> Value {
    let data: Vec<Value> = names
        .map(|name| json!({"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}))
        .collect();
    let id = |model: Option<&Value>| model.and_then(|model| model.get("id")).cloned().unwrap_or_default();
    json!({"first_id": id(data.first()), "last_id": id(data.last()), "data": data, "has_more": false})
}
