//! Reads an answer: its text, calls and token usage for the engine, and the message that later requests send back.

#[cfg(test)]
mod hostile;

use crate::lenient::{lenient, token_count};
use crate::protocol::{Error, check_calls};
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::event::{Answer, RequestedCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

/// The token usage of an answer.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Usage {
    #[serde(default, deserialize_with = "token_count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "token_count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Choice {
    message: Map<String, Value>,
    #[serde(default)]
    finish_reason: Option<String>,
}

/// Reads the body of a successful response.
pub(crate) fn read(body: &[u8]) -> Result<Answer, Error> {
    let whole = || String::from_utf8_lossy(body);
    let completion: Completion = serde_json::from_slice(body)
        .map_err(|error| Error::unreadable(format!("it is not a chat completion ({error})"), whole()))?;
    if let Some(error) = completion.error.filter(|error| !error.is_null()) {
        return Err(Error::Provider(error));
    }
    // Requests ask for only one choice.
    let Some(Choice { message, finish_reason }) = completion.choices.into_iter().next() else {
        return Err(Error::unreadable("it holds no choice", whole()));
    };
    build_answer(message, finish_reason.as_deref(), completion.usage.unwrap_or_default())
}

/// Builds an answer from a complete message. The message may have been streamed.
pub(crate) fn build_answer(
    message: Map<String, Value>,
    finish_reason: Option<&str>,
    usage: Usage,
) -> Result<Answer, Error> {
    if finish_reason == Some("content_filter") {
        return Err(Error::Filtered { reason: "content_filter".to_owned() });
    }
    let calls = calls(&message)?;
    let text = text(&message);
    if message.values().any(|value| depth(value) >= MAX_DEPTH) {
        let quote = Value::Object(message).to_string();
        return Err(Error::unreadable(format!("its message is nested more than {MAX_DEPTH} levels deep"), quote));
    }
    Ok(Answer {
        message: history_message(message, &text),
        provider: ModelProvider::Openai,
        model: None,
        text,
        calls,
        input_tokens: usage.prompt_tokens,
        cached_tokens: usage.prompt_tokens_details.and_then(|details| details.cached_tokens),
        output_tokens: usage.completion_tokens,
        cut: finish_reason == Some("length"),
    })
}

/// Returns the text and the calls of the message of an earlier answer.
pub(crate) fn text_and_calls(message: &Value) -> (String, Vec<RequestedCall>) {
    message.as_object().map_or_else(Default::default, |message| (text(message), calls(message).unwrap_or_default()))
}

/// Returns the message as every later request sends it. It is built once and logged, so the prefixes of requests stay identical.
///
/// It contains all fields of the answer, because some models require their reasoning and its signatures. It only omits the parts that
/// servers put into answers but reject in requests: fields that are null, and an empty list of calls.
fn history_message(mut message: Map<String, Value>, text: &str) -> Value {
    message.retain(|_, value| !value.is_null());
    if message.get("tool_calls").is_some_and(|calls| calls.as_array().is_some_and(Vec::is_empty)) {
        message.remove("tool_calls");
    }
    if is_refusal(&message) {
        message.remove("content");
    }
    message.insert("role".to_owned(), json!("assistant"));
    if !message.contains_key("content") {
        // Without calls, the content must be a text. With calls, null is the only form of empty content that all servers accept.
        let content = if message.contains_key("tool_calls") { Value::Null } else { json!(text) };
        message.insert("content".to_owned(), content);
    }
    Value::Object(message)
}

/// Returns the text of a message: its content, the text parts of its content, or its refusal.
fn text(message: &Map<String, Value>) -> String {
    match message.get("content") {
        Some(Value::String(text)) if !is_refusal(message) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => message.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

/// Returns whether a message holds a refusal and no content. An empty text counts as no content, because streams begin with it.
fn is_refusal(message: &Map<String, Value>) -> bool {
    let has_no_content = message.get("content").is_none_or(|content| content.as_str() == Some("") || content.is_null());
    has_no_content && message.get("refusal").is_some_and(Value::is_string)
}

fn calls(message: &Map<String, Value>) -> Result<Vec<RequestedCall>, Error> {
    let calls: Vec<RequestedCall> = match message.get("tool_calls") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(calls)) => calls.iter().map(call).collect::<Result<Vec<_>, _>>()?,
        Some(other) => return Err(Error::unreadable("its `tool_calls` are not a list", other.to_string())),
    };
    check_calls(calls)
}

fn call(call: &Value) -> Result<RequestedCall, Error> {
    let field = |pointer: &str| call.pointer(pointer).and_then(Value::as_str);
    let required = |pointer: &str, what: &str| {
        let found = field(pointer).filter(|found| !found.is_empty());
        found
            .map(str::to_owned)
            .ok_or_else(|| Error::unreadable(format!("a tool call has no {what}"), call.to_string()))
    };
    if let Some(kind) = field("/type").filter(|kind| *kind != "function") {
        return Err(Error::unreadable(
            format!("a tool call has the type `{kind}` instead of `function`"),
            call.to_string(),
        ));
    }
    Ok(RequestedCall {
        id: required("/id", "id")?,
        name: required("/function/name", "name")?,
        arguments: field("/function/arguments")
            .map(str::to_owned)
            .ok_or_else(|| Error::unreadable("the arguments of a tool call are not a string", call.to_string()))?,
        // The worker sets `secrets` when the answer becomes an event.
        secrets: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn an_answer_with_too_many_calls_or_levels_is_unreadable() {
        let call =
            |n: usize| json!({"id": format!("c{n}"), "type": "function", "function": {"name": "t", "arguments": "{}"}});
        let many = json!({"role": "assistant", "tool_calls": (0..200).map(call).collect::<Vec<_>>()});
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!([deep]);
        }
        for message in [many, json!({"role": "assistant", "content": "x", "reasoning": deep})] {
            let body = json!({"choices": [{"message": message}]});
            assert!(read(body.to_string().as_bytes()).is_err());
        }
    }

    fn answer_with(message: &Value) -> Answer {
        let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        read(body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn text_usage_and_finish_are_read() {
        let body = json!({
            "id": "x", "object": "chat.completion", "error": null,
            "choices": [{"message": {"role": "assistant", "content": "Half an ans"}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        });
        let answer = read(body.to_string().as_bytes()).unwrap();
        assert_eq!(answer.text, "Half an ans");
        assert_eq!((answer.input_tokens, answer.output_tokens, answer.cut), (Some(12), Some(3), true));
        let without_usage = answer_with(&json!({"role": "assistant", "content": "Yes"}));
        assert_eq!((without_usage.input_tokens, without_usage.output_tokens, without_usage.cut), (None, None, false));
    }

    #[test]
    fn calls_are_read_as_the_model_wrote_them() {
        let answer = answer_with(&json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "refund", "arguments": "{\"b\":1, \"a\":2}"}},
            {"id": "b", "function": {"name": "check", "arguments": ""}},
        ]}));
        let call = |id: &str, name: &str, arguments: &str| RequestedCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            secrets: Vec::new(),
        };
        assert_eq!(answer.calls, [call("a", "refund", "{\"b\":1, \"a\":2}"), call("b", "check", "")]);
        assert_eq!(answer.text, "");
    }

    #[rstest]
    // Fields that the model may require are kept, at every depth.
    #[case(
        json!({"role": "assistant", "content": "x", "reasoning_content": "hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"sig": null}}]}),
        json!({"role": "assistant", "content": "x", "reasoning_content": "hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"sig": null}}]})
    )]
    // Fields that servers reject are removed.
    #[case(
        json!({"role": "assistant", "content": "x", "refusal": null, "audio": null, "tool_calls": []}),
        json!({"role": "assistant", "content": "x"})
    )]
    #[case(
        json!({"content": null, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]})
    )]
    // Required fields are added.
    #[case(json!({"content": null}), json!({"role": "assistant", "content": ""}))]
    #[case(
        json!({"role": "assistant", "content": null, "refusal": "No."}),
        json!({"role": "assistant", "content": "No.", "refusal": "No."})
    )]
    #[case(
        json!({"role": "assistant", "content": "", "refusal": "No."}),
        json!({"role": "assistant", "content": "No.", "refusal": "No."})
    )]
    fn the_message_is_kept_except_for_fields_that_servers_reject(#[case] given: Value, #[case] kept: Value) {
        let answer = answer_with(&given);
        assert_eq!(answer.message, kept);
        // The event log does not change the message.
        let logged: Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
        assert_eq!(logged.message.to_string(), answer.message.to_string());
    }

    #[test]
    fn text_is_found_in_parts_and_in_a_refusal() {
        let parts = json!([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Y"}, {"text": "es"}]);
        assert_eq!(answer_with(&json!({"content": parts})).text, "Yes");
        assert_eq!(answer_with(&json!({"content": null, "refusal": "No."})).text, "No.");
        assert_eq!(answer_with(&json!({"content": "", "refusal": "No."})).text, "No.");
        assert_eq!(answer_with(&json!({"content": "", "refusal": null})).text, "");
    }

    #[rstest]
    #[case("", "not a chat completion")]
    #[case("<html>", "not a chat completion")]
    #[case("17", "not a chat completion")]
    #[case("[]", "no choice")]
    #[case("{}", "no choice")]
    #[case(r#"{"choices":[]}"#, "no choice")]
    #[case(r#"{"choices":[{"message":null}]}"#, "not a chat completion")]
    #[case(r#"{"choices":[{"text":"old"}]}"#, "not a chat completion")]
    #[case(r#"{"error":{"message":"overloaded","code":529}}"#, "Provider(")]
    #[case(r#"{"error":"quota","choices":[{"message":{"content":"x"}}]}"#, "Provider(")]
    #[case(r#"{"choices":[{"message":{"tool_calls":{}}}]}"#, "not a list")]
    #[case(r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}"#, "no id")]
    #[case(r#"{"choices":[{"message":{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]}}]}"#, "no id")]
    #[case(r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}}]}"#, "no name")]
    #[case(
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}}]}"#,
        "not a string"
    )]
    #[case(r#"{"choices":[{"message":{"tool_calls":[{"id":"a","type":"custom","custom":{}}]}}]}"#, "`custom`")]
    #[case(
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},
            {"id":"a","function":{"name":"g","arguments":"{}"}}]}}]}"#,
        "same id"
    )]
    fn the_error_of_an_unreadable_answer_states_the_reason(#[case] body: &str, #[case] reason: &str) {
        let unreadable = read(body.as_bytes()).unwrap_err();
        assert!(format!("{unreadable:?}").contains(reason), "{unreadable:?}");
    }

    proptest::proptest! {
        #[test]
        fn no_body_makes_the_reader_panic(body in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = read(&body);
        }
    }
}
