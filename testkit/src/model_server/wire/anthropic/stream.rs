//! An answer as a stream of events.

use serde_json::{Value, json};

use super::answer::{blocks, head, stop_details, stop_reason, usage};
use super::prompt::type_of;
use crate::model_server::answer::{Answer, FILLER_BLOCK_BYTES, Text, filler_block};
use crate::model_server::event::{Event, parts};
use crate::model_server::request::Request;

pub(in crate::model_server::wire) fn events(request: &Request, answer: &Answer) -> Vec<Event> {
    let mut message = head(answer);
    let mut first_usage = usage(answer.usage);
    if let (Some(message), Some(first_usage)) = (message.as_object_mut(), first_usage.as_object_mut()) {
        // The first event does not report the output tokens of the whole answer.
        first_usage.insert("output_tokens".to_owned(), 1.into());
        first_usage.remove("output_tokens_details");
        message.insert("usage".to_owned(), Value::Object(first_usage.clone()));
    }
    let mut events = vec![event("message_start", &json!({ "message": message })), event("ping", &json!({}))];
    let mut calls = answer.calls.iter();
    for (index, block) in blocks(request, answer).into_iter().enumerate() {
        let text_of = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let deltas = match (type_of(&block), &answer.text) {
            ("thinking", _) => {
                let mut deltas = deltas(index, "thinking_delta", "thinking", &text_of("thinking"));
                deltas.push(delta(index, "signature_delta", "signature", &text_of("signature")));
                deltas
            }
            ("text", Some(Text::Filler(bytes))) => {
                let event = delta(index, "text_delta", "text", &filler_block());
                vec![Event { times: bytes.div_ceil(FILLER_BLOCK_BYTES), ..event }]
            }
            ("text", _) => deltas(index, "text_delta", "text", &text_of("text")),
            ("tool_use", _) => {
                let arguments = calls.next().map_or("", |call| &call.arguments);
                let begin = delta(index, "input_json_delta", "partial_json", "");
                let rest = deltas(index, "input_json_delta", "partial_json", arguments);
                std::iter::once(begin).chain(rest).collect()
            }
            _ => Vec::new(),
        };
        events.push(event("content_block_start", &json!({"index": index, "content_block": without_content(block)})));
        events.extend(deltas);
        events.push(event("content_block_stop", &json!({ "index": index })));
    }
    let stop = json!({
        "stop_reason": stop_reason(answer), "stop_sequence": null, "stop_details": stop_details(answer),
    });
    events.push(event("message_delta", &json!({"delta": stop, "usage": usage(answer.usage)})));
    events.push(event("message_stop", &json!({})));
    events
}

/// Returns a block without its content, which the deltas contain.
fn without_content(mut block: Value) -> Value {
    if let Some(block) = block.as_object_mut() {
        for name in ["text", "thinking", "signature"] {
            if block.get(name).is_some_and(Value::is_string) {
                block.insert(name.to_owned(), "".into());
            }
        }
        if block.contains_key("input") {
            block.insert("input".to_owned(), json!({}));
        }
    }
    block
}

fn event(name: &'static str, data: &Value) -> Event {
    let mut data = data.clone();
    if let Some(data) = data.as_object_mut() {
        data.insert("type".to_owned(), name.into());
    }
    Event::named(name, data)
}

fn delta(index: usize, kind: &str, field: &str, text: &str) -> Event {
    event("content_block_delta", &json!({"index": index, "delta": {"type": kind, field: text}}))
}

fn deltas(index: usize, kind: &str, field: &str, text: &str) -> Vec<Event> {
    parts(text).map(|part| delta(index, kind, field, part)).collect()
}
