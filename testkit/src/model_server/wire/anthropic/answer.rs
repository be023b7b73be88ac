//! An answer in one piece.

use serde_json::{Value, json};

use super::thinking;
use crate::model_server::answer::{Answer, PLACEHOLDER};
use crate::model_server::request::Request;
use crate::model_server::script::{Stop, Usage};

pub(in crate::model_server::wire) fn whole(request: &Request, answer: &Answer) -> Value {
    let mut message = head(answer);
    if let Some(message) = message.as_object_mut() {
        message.insert("content".to_owned(), blocks(request, answer).into());
        message.insert("stop_reason".to_owned(), stop_reason(answer).into());
        message.insert("stop_details".to_owned(), stop_details(answer));
        message.insert("usage".to_owned(), usage(answer.usage));
    }
    message
}

/// Returns the message without content.
pub(super) fn head(answer: &Answer) -> Value {
    json!({
        "id": format!("msg_{}", answer.name),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "stop_details": null,
    })
}

/// Returns the blocks of an answer. In place of the arguments of a call, they have the placeholder and the index of the call.
pub(super) fn blocks(request: &Request, answer: &Answer) -> Vec<Value> {
    let mut blocks = thinking_blocks(request, answer);
    blocks.extend(answer.written_text().map(|text| json!({"type": "text", "text": text})));
    blocks.extend(answer.calls.iter().enumerate().map(|(index, call)| {
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": format!("{PLACEHOLDER}{index}")})
    }));
    blocks
}

/// Returns the thoughts that the next request must return unchanged. Only answers with tool calls have such thoughts.
pub(in crate::model_server::wire) fn thoughts(request: &Request, answer: &Answer) -> Vec<Value> {
    if answer.calls.is_empty() { Vec::new() } else { thinking_blocks(request, answer) }
}

fn thinking_blocks(request: &Request, answer: &Answer) -> Vec<Value> {
    // The scripted model gives no thoughts in these two modes, so the next request has none to return.
    if matches!(thinking::mode(&request.body), Some("disabled" | "between_tools")) {
        return Vec::new();
    }
    let shown = |thought: &str| if thinking::omits_text(&request.body) { String::new() } else { thought.to_owned() };
    let readable = answer.thinking.as_ref().map(
        |thought| json!({"type": "thinking", "thinking": shown(thought), "signature": thinking::signature(thought)}),
    );
    let redacted = answer.redacted_thinking.as_ref().map(|data| json!({"type": "redacted_thinking", "data": data}));
    readable.into_iter().chain(redacted).collect()
}

pub(super) fn stop_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Some(Stop::Length) => "max_tokens",
        Some(Stop::Refusal) => "refusal",
        Some(Stop::ContextWindow) => "model_context_window_exceeded",
        None if answer.calls.is_empty() => "end_turn",
        None => "tool_use",
    }
}

pub(super) fn stop_details(answer: &Answer) -> Value {
    match answer.stop {
        Some(Stop::Refusal) => json!({"type": "refusal", "category": null, "explanation": null}),
        _ => Value::Null,
    }
}

/// Returns the usage. `input_tokens` excludes the tokens that were read from the cache or written to it.
pub(super) fn usage(usage: Usage) -> Value {
    let Usage { prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, thinking_tokens } = usage;
    json!({
        "input_tokens": prompt_tokens.saturating_sub(cached_tokens).saturating_sub(cache_write_tokens),
        "cache_creation_input_tokens": cache_write_tokens,
        "cache_read_input_tokens": cached_tokens,
        "cache_creation": {"ephemeral_5m_input_tokens": cache_write_tokens, "ephemeral_1h_input_tokens": 0},
        "output_tokens": completion_tokens,
        "output_tokens_details": {"thinking_tokens": thinking_tokens},
        "service_tier": "standard",
    })
}
