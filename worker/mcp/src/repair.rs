//! Repairs malformed answers that still show the result of their request.
//!
//! The text of an answer is repaired before rmcp parses it. Otherwise rmcp would reject the malformed message as a whole, and the
//! request would get no answer.

mod list;
mod raw;
mod result;

pub(crate) use list::UNUSABLE;
pub(crate) use result::verbatim_answer;

use crate::oversized;
use bloomery_redact::Redactor;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The parts of a possibly malformed answer.
#[derive(Deserialize)]
struct LooseAnswer<'t> {
    id: RequestId,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    error: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    method: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    result: Option<&'t RawValue>,
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// Redacts and repairs a message of a server. Replaces an answer that would take too much memory.
pub(crate) fn read<'t>(text: &'t str, redactor: &Redactor) -> Cow<'t, str> {
    if let Some(answer) = oversized::with_too_many_values(text) {
        return Cow::Owned(answer);
    }
    repaired(match without_lone_surrogates(text) {
        Cow::Borrowed(text) => redactor.redact_json_text(text),
        Cow::Owned(text) => Cow::Owned(redactor.redact_json_text(&text).into_owned()),
    })
}

/// Repairs a message. A well-formed message is returned unchanged.
///
/// An error may be a text, or an object with any fields. As in JSON-RPC 1.0, an error of `null` means that there is no error. An answer
/// with neither an error nor a result is not repaired, because the request may have had an effect.
pub(crate) fn repaired(text: Cow<'_, str>) -> Cow<'_, str> {
    let repaired = repaired_answer(&text).map(|message| message.to_string());
    repaired.map_or(text, Cow::Owned)
}

/// Returns the repaired answer. Returns `None` if the text is well-formed, cannot be repaired, or is not an answer.
fn repaired_answer(text: &str) -> Option<Value> {
    if !text.contains("\"error\"") && !text.contains("\"result\"") {
        return None;
    }
    let LooseAnswer { id, error, method: None, result } = serde_json::from_str(text).ok()? else { return None };
    let answered = |field: &str, value: Value| Some(json!({"jsonrpc": "2.0", "id": id, field: value}));
    match (result, error) {
        (Some(result), None) => answered("result", result::repaired(result)?),
        (None, Some(error)) => answered("error", repaired_error(error, false)?),
        // An answer of JSON-RPC 1.0 has both fields, and one of them is null.
        (Some(result), Some(error)) if is_null(result) => answered("error", repaired_error(error, true)?),
        (Some(result), Some(error)) if is_null(error) => {
            let well_formed = || serde_json::from_str(result.get()).ok();
            answered("result", result::repaired(result).or_else(well_formed)?)
        }
        _ => None,
    }
}

/// Returns the repaired error. Returns `None` if the error cannot be repaired. A well-formed error is returned unchanged if
/// `even_if_valid`. Otherwise, `None` is returned for it.
fn repaired_error(error: &RawValue, even_if_valid: bool) -> Option<Value> {
    if serde_json::from_str::<ErrorData>(error.get()).is_ok() {
        return if even_if_valid { serde_json::from_str(error.get()).ok() } else { None };
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

/// Replaces each escaped lone surrogate of a JSON text by U+FFFD. JavaScript writes a lone surrogate when it cuts a string within a
/// character, and `serde_json` rejects it.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        whole.push_str(before);
        let taken = match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                whole.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => 6,
            // An escaped backslash does not begin another escape.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (escape, after) = escape.split_at_checked(taken).unwrap_or((escape, ""));
        whole.push_str(escape);
        rest = after;
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// Returns the code unit of an escape such as `\u00e9` at the beginning of a text.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) { u16::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests;
