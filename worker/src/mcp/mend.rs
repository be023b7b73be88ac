//! Errors that are none of JSON-RPC by their form, and answers all the same: the server says of this request that it
//! failed.

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// The largest message that is looked at, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// An error as servers write it by hand.
#[derive(Deserialize)]
struct Loose {
    id: RequestId,
    error: Value,
    method: Option<Value>,
    result: Option<Value>,
}

/// A message as it is, or the error of JSON-RPC that it means.
///
/// An error is a text, or an object whatever its fields. `null`, as JSON-RPC 1.0 has it, says that there was none, and an
/// answer without an error and without a result says nothing: the request may have done what it was for.
pub(super) fn mended(text: Cow<'_, str>) -> Cow<'_, str> {
    let mended = loose(&text).and_then(|message| serde_json::to_string(&message).ok());
    mended.map_or(text, Cow::Owned)
}

fn loose(text: &str) -> Option<ServerJsonRpcMessage> {
    // Answers are large, and not read twice.
    if text.len() > MAX_BYTES || !text.contains("\"error\"") {
        return None;
    }
    let Loose { id, error, method: None, result: None } = serde_json::from_str(text).ok()? else { return None };
    if serde_json::from_value::<ErrorData>(error.clone()).is_ok() {
        return None;
    }
    let (code, message) = match &error {
        Value::String(message) if !message.is_empty() => (None, message.clone()),
        Value::Object(fields) if !fields.is_empty() => {
            let code = fields.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
            let message = fields.get("message").and_then(Value::as_str).map(str::to_owned);
            (code, message.unwrap_or_else(|| error.to_string()))
        }
        _ => return None,
    };
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    Some(ServerJsonRpcMessage::error(ErrorData::new(code, message, None), Some(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::text(json!("sold out"), Some((-32603, "sold out")))]
    #[case::no_code(json!({"message": "sold out"}), Some((-32603, "sold out")))]
    #[case::code_in_words(json!({"code": "SOLD_OUT", "message": "sold out"}), Some((-32603, "sold out")))]
    #[case::no_message(json!({"code": -32000, "why": 1}), Some((-32000, r#"{"code":-32000,"why":1}"#)))]
    #[case::sound(json!({"code": -32000, "message": "x", "data": [1]}), None)]
    #[case::none(Value::Null, None)]
    #[case::no(json!(false), None)]
    #[case::empty(json!(""), None)]
    #[case::nothing(json!({}), None)]
    fn an_error_is_what_says_that_something_failed(#[case] error: Value, #[case] means: Option<(i32, &str)>) {
        let text = json!({"jsonrpc": "2.0", "id": 7, "error": error}).to_string();
        let mended = mended(Cow::Borrowed(&text));
        let Some((code, message)) = means else { return assert_eq!(mended, text) };
        let expected = json!({"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": message}});
        assert_eq!(serde_json::from_str::<Value>(&mended).unwrap(), expected);
    }

    #[rstest]
    #[case::no_id(r#"{"jsonrpc": "2.0", "error": "x"}"#)]
    #[case::null_id(r#"{"jsonrpc": "2.0", "id": null, "error": "x"}"#)]
    #[case::with_a_result(r#"{"jsonrpc": "2.0", "id": 1, "error": "x", "result": {}}"#)]
    #[case::of_theirs(r#"{"jsonrpc": "2.0", "id": 1, "error": "x", "method": "ping"}"#)]
    #[case::no_error(r#"{"jsonrpc": "2.0", "id": 1}"#)]
    #[case::no_json("\"error\"")]
    fn what_is_no_answer_stays_none(#[case] text: &str) {
        assert_eq!(mended(Cow::Borrowed(text)), text);
    }
}
