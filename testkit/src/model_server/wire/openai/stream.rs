//! An answer as a stream of chunks.

use serde_json::{Value, json};

use super::answer::{content, finish_reason, usage};
use crate::model_server::answer::{Answer, FILLER_BLOCK_BYTES, Text, filler_block};
use crate::model_server::event::{Event, parts};
use crate::model_server::request::Request;

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

pub(in crate::model_server::wire) fn events(request: &Request, answer: &Answer) -> Vec<Event> {
    let with_usage = request.body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true));
    let chunk = |choices: Value, used: Value| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", answer.name),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": answer.model,
            "choices": choices,
        });
        if let Some(chunk) = chunk.as_object_mut().filter(|_| with_usage) {
            chunk.insert("usage".to_owned(), used);
        }
        Event::unnamed(chunk)
    };
    let choice = |delta: Value, finish: Option<&str>| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]), Value::Null)
    };
    if answer.is_empty() {
        return vec![chunk(json!([]), Value::Null), Event::text(DONE)];
    }
    let mut events = vec![choice(json!({"role": "assistant", "content": "", "refusal": null}), None)];
    match &answer.text {
        Some(Text::Filler(bytes)) => {
            let event = choice(json!({"content": filler_block()}), None);
            events.push(Event { times: bytes.div_ceil(FILLER_BLOCK_BYTES), ..event });
        }
        Some(Text::Scripted(_)) => {
            let (content, refusal) = content(answer);
            for (field, text) in [("content", content), ("refusal", refusal)] {
                let text = text.unwrap_or_default();
                events.extend(parts(&text).map(|part| choice(json!({field: part}), None)));
            }
        }
        None => {}
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let begin = json!({
            "index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""},
        });
        events.push(choice(json!({"tool_calls": [begin]}), None));
        events.extend(
            parts(&call.arguments)
                .map(|part| choice(json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}), None)),
        );
    }
    events.push(choice(json!({}), Some(finish_reason(answer))));
    if with_usage {
        events.push(chunk(json!([]), usage(answer.usage)));
    }
    events.push(Event::text(DONE));
    events
}
