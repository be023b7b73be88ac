//! Reading an answer of OpenAI's: what the engine needs of it, and the message that goes back into the history.

#[cfg(test)]
mod hostile;

use crate::model::no_answer::NoAnswer;
use crate::model::told::{if_readable, tokens};
use crate::model::wire::answerable;
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::event::{Answer, RequestedCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default, deserialize_with = "if_readable")]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

/// What an answer took, in tokens.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "tokens")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "tokens")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "if_readable")]
    prompt_tokens_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "tokens")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Choice {
    message: Map<String, Value>,
    #[serde(default)]
    finish_reason: Option<String>,
}

/// Reads the body of a successful response.
pub(in crate::model) fn read(body: &[u8]) -> Result<Answer, NoAnswer> {
    let whole = || String::from_utf8_lossy(body);
    let completion: Completion = serde_json::from_slice(body)
        .map_err(|error| NoAnswer::unreadable(format!("it is no chat completion ({error})"), whole()))?;
    if let Some(error) = completion.error.filter(|error| !error.is_null()) {
        return Err(NoAnswer::Error(error));
    }
    // One choice is asked for.
    let Some(Choice { message, finish_reason }) = completion.choices.into_iter().next() else {
        return Err(NoAnswer::unreadable("it holds no choice", whole()));
    };
    answer(message, finish_reason.as_deref(), completion.usage.unwrap_or_default())
}

/// What a whole message means, however it came.
pub(super) fn answer(
    message: Map<String, Value>,
    finish_reason: Option<&str>,
    usage: Usage,
) -> Result<Answer, NoAnswer> {
    if finish_reason == Some("content_filter") {
        return Err(NoAnswer::Filtered { why: "content_filter".to_owned() });
    }
    let calls = calls(&message)?;
    let text = text(&message);
    if message.values().any(|value| depth(value) >= MAX_DEPTH) {
        let quote = Value::Object(message).to_string();
        return Err(NoAnswer::unreadable(format!("its message is nested more than {MAX_DEPTH} deep"), quote));
    }
    Ok(Answer {
        message: sendable(message, &text),
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

/// The words and the calls of a message that was an answer.
pub(in crate::model) fn told(message: &Value) -> (String, Vec<RequestedCall>) {
    message.as_object().map_or_else(Default::default, |message| (text(message), calls(message).unwrap_or_default()))
}

/// The message as every later request holds it, decided once and logged, so that prefixes stay identical.
///
/// It is the provider's own, whole: reasoning and signatures in it must come back with some models. Left out is
/// only what servers put into answers and refuse in requests: fields that are null, and an empty list of calls.
fn sendable(mut message: Map<String, Value>, text: &str) -> Value {
    message.retain(|_, value| !value.is_null());
    if message.get("tool_calls").is_some_and(|calls| calls.as_array().is_some_and(Vec::is_empty)) {
        message.remove("tool_calls");
    }
    if is_refusal(&message) {
        message.remove("content");
    }
    message.insert("role".to_owned(), json!("assistant"));
    if !message.contains_key("content") {
        // A message without calls must have one; beside calls, null is the one form that all servers take.
        let content = if message.contains_key("tool_calls") { Value::Null } else { json!(text) };
        message.insert("content".to_owned(), content);
    }
    Value::Object(message)
}

/// What the model says: its content, the text parts of it, or its refusal.
fn text(message: &Map<String, Value>) -> String {
    match message.get("content") {
        Some(Value::String(text)) if !is_refusal(message) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => message.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

/// Whether the model refuses, and says nothing else: a stream begins with content of no length, whatever comes.
fn is_refusal(message: &Map<String, Value>) -> bool {
    let says_nothing = message.get("content").is_none_or(|content| content.as_str() == Some("") || content.is_null());
    says_nothing && message.get("refusal").is_some_and(Value::is_string)
}

fn calls(message: &Map<String, Value>) -> Result<Vec<RequestedCall>, NoAnswer> {
    let calls: Vec<RequestedCall> = match message.get("tool_calls") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(calls)) => calls.iter().map(call).collect::<Result<Vec<_>, _>>()?,
        Some(other) => return Err(NoAnswer::unreadable("its `tool_calls` are no list", other.to_string())),
    };
    answerable(calls)
}

fn call(call: &Value) -> Result<RequestedCall, NoAnswer> {
    let field = |place: &str| call.pointer(place).and_then(Value::as_str);
    let required = |place: &str, what: &str| {
        let found = field(place).filter(|found| !found.is_empty());
        found
            .map(str::to_owned)
            .ok_or_else(|| NoAnswer::unreadable(format!("a tool call has no {what}"), call.to_string()))
    };
    if let Some(kind) = field("/type").filter(|kind| *kind != "function") {
        return Err(NoAnswer::unreadable(format!("a tool call is a `{kind}`, no function"), call.to_string()));
    }
    Ok(RequestedCall {
        id: required("/id", "id")?,
        name: required("/function/name", "name")?,
        arguments: field("/function/arguments")
            .map(str::to_owned)
            .ok_or_else(|| NoAnswer::unreadable("the arguments of a tool call are no text", call.to_string()))?,
        // The worker marks calls where answers become events.
        secrets: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn too_many_calls_and_too_deep_a_message_are_not_read() {
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

    fn of(message: &Value) -> Answer {
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
        let without = of(&json!({"role": "assistant", "content": "Yes"}));
        assert_eq!((without.input_tokens, without.output_tokens, without.cut), (None, None, false));
    }

    #[test]
    fn calls_are_read_as_the_model_wrote_them() {
        let answer = of(&json!({"role": "assistant", "content": null, "tool_calls": [
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
    // What must come back stays, at every depth.
    #[case(
        json!({"role": "assistant", "content": "x", "reasoning_content": "hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"sig": null}}]}),
        json!({"role": "assistant", "content": "x", "reasoning_content": "hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"sig": null}}]})
    )]
    // What servers refuse goes.
    #[case(
        json!({"role": "assistant", "content": "x", "refusal": null, "audio": null, "tool_calls": []}),
        json!({"role": "assistant", "content": "x"})
    )]
    #[case(
        json!({"content": null, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]})
    )]
    // What is asked for is there.
    #[case(json!({"content": null}), json!({"role": "assistant", "content": ""}))]
    #[case(
        json!({"role": "assistant", "content": null, "refusal": "No."}),
        json!({"role": "assistant", "content": "No.", "refusal": "No."})
    )]
    #[case(
        json!({"role": "assistant", "content": "", "refusal": "No."}),
        json!({"role": "assistant", "content": "No.", "refusal": "No."})
    )]
    fn the_message_is_kept_but_for_what_cannot_be_sent(#[case] given: Value, #[case] kept: Value) {
        let answer = of(&given);
        assert_eq!(answer.message, kept);
        // What went through the log is still the same.
        let logged: Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
        assert_eq!(logged.message.to_string(), answer.message.to_string());
    }

    #[test]
    fn text_is_found_in_parts_and_in_a_refusal() {
        let parts = json!([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Y"}, {"text": "es"}]);
        assert_eq!(of(&json!({"content": parts})).text, "Yes");
        assert_eq!(of(&json!({"content": null, "refusal": "No."})).text, "No.");
        assert_eq!(of(&json!({"content": "", "refusal": "No."})).text, "No.");
        assert_eq!(of(&json!({"content": "", "refusal": null})).text, "");
    }

    #[rstest]
    #[case("", "no chat completion")]
    #[case("<html>", "no chat completion")]
    #[case("17", "no chat completion")]
    #[case("[]", "no choice")]
    #[case("{}", "no choice")]
    #[case(r#"{"choices":[]}"#, "no choice")]
    #[case(r#"{"choices":[{"message":null}]}"#, "no chat completion")]
    #[case(r#"{"choices":[{"text":"old"}]}"#, "no chat completion")]
    #[case(r#"{"error":{"message":"overloaded","code":529}}"#, "Error(")]
    #[case(r#"{"error":"quota","choices":[{"message":{"content":"x"}}]}"#, "Error(")]
    #[case(r#"{"choices":[{"message":{"tool_calls":{}}}]}"#, "no list")]
    #[case(r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}"#, "no id")]
    #[case(r#"{"choices":[{"message":{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]}}]}"#, "no id")]
    #[case(r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}}]}"#, "no name")]
    #[case(
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}}]}"#,
        "no text"
    )]
    #[case(r#"{"choices":[{"message":{"tool_calls":[{"id":"a","type":"custom","custom":{}}]}}]}"#, "`custom`")]
    #[case(
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},
            {"id":"a","function":{"name":"g","arguments":"{}"}}]}}]}"#,
        "same id"
    )]
    fn what_cannot_be_read_says_why(#[case] body: &str, #[case] why: &str) {
        let unreadable = read(body.as_bytes()).unwrap_err();
        assert!(format!("{unreadable:?}").contains(why), "{unreadable:?}");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_server_sends_panics(body in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = read(&body);
        }
    }
}
