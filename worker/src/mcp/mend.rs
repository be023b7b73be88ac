//! Answers that are none of MCP by their form, and answers all the same: the server says of this request that it failed, or
//! what came of it.
//!
//! They are mended as texts, before rmcp reads them: it refuses a message whole, and what it refuses is no answer to it.

mod list;
mod result;

pub(super) use list::UNUSABLE;
pub(super) use result::as_it_came;

use bloomery_redact::Redactor;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// An answer as servers write it by hand, its parts as they stand there.
#[derive(Deserialize)]
struct Loose<'t> {
    id: RequestId,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'t RawValue>,
}

/// A part that is there, `null` included.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// What a server has written, without secrets and mended.
pub(super) fn read<'t>(text: &'t str, redactor: &Redactor) -> Cow<'t, str> {
    mended(match whole(text) {
        Cow::Borrowed(text) => redactor.json_text(text),
        Cow::Owned(text) => Cow::Owned(redactor.json_text(&text).into_owned()),
    })
}

/// A message as it is, or the answer of MCP that it means.
///
/// An error is a text, or an object whatever its fields. `null`, as JSON-RPC 1.0 has it, says that there was none, and an
/// answer without an error and without a result says nothing: the request may have done what it was for.
pub(super) fn mended(text: Cow<'_, str>) -> Cow<'_, str> {
    let mended = answer(&text).map(|message| message.to_string());
    mended.map_or(text, Cow::Owned)
}

fn answer(text: &str) -> Option<Value> {
    if !text.contains("\"error\"") && !text.contains("\"result\"") {
        return None;
    }
    let Loose { id, error, method: None, result } = serde_json::from_str(text).ok()? else { return None };
    let answered = |field: &str, value: Value| Some(json!({"jsonrpc": "2.0", "id": id, field: value}));
    match (result, error) {
        (Some(result), None) => answered("result", result::mended(result)?),
        (None, Some(error)) => answered("error", loose_error(error, false)?),
        // As in JSON-RPC 1.0: the one that is not meant is null.
        (Some(result), Some(error)) if is_null(result) => answered("error", loose_error(error, true)?),
        (Some(result), Some(error)) if is_null(error) => {
            let sound = || serde_json::from_str(result.get()).ok();
            answered("result", result::mended(result).or_else(sound)?)
        }
        _ => None,
    }
}

/// The error that is meant; none where it is one as it stands, unless it is wanted `anyway`.
fn loose_error(error: &RawValue, anyway: bool) -> Option<Value> {
    if serde_json::from_str::<ErrorData>(error.get()).is_ok() {
        return if anyway { serde_json::from_str(error.get()).ok() } else { None };
    }
    let error: Value = serde_json::from_str(error.get()).ok()?;
    let (code, message) = match &error {
        Value::String(message) if !message.is_empty() => (None, message.clone()),
        Value::Object(fields) if !fields.is_empty() => {
            let code = fields.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
            let message = fields.get("message").and_then(Value::as_str).map(str::to_owned);
            (code, message.unwrap_or_else(|| error.to_string()))
        }
        _ => return None,
    };
    Some(json!({"code": code.unwrap_or(ErrorCode::INTERNAL_ERROR.0), "message": message}))
}

/// A text of JSON in which every escaped half of a character that stands alone, as JavaScript writes what it cut in the
/// middle, is U+FFFD: no reader of ours takes it.
fn whole(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        whole.push_str(before);
        let taken = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                whole.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => 6,
            // An escaped backslash begins no other escape.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (escape, after) = escape.split_at_checked(taken).unwrap_or((escape, ""));
        whole.push_str(escape);
        rest = after;
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// The number in an escape like `\u00e9`, where a text begins with one.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) { u16::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests;
