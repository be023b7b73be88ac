//! An answer in one piece.

use serde_json::{Value, json};

use crate::model_server::answer::Answer;
use crate::model_server::script::{Stop, Usage};

pub(in crate::model_server::wire) fn whole(answer: &Answer) -> Value {
    let calls: Vec<Value> = answer
        .calls
        .iter()
        .map(|call| {
            json!({
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            })
        })
        .collect();
    if answer.is_empty() {
        return json!({
            "id": "chatcmpl-empty", "object": "chat.completion", "created": 0, "model": answer.model, "choices": [],
        });
    }
    let (content, refusal) = content(answer);
    let mut message = json!({"role": "assistant", "content": content, "refusal": refusal});
    if let Some(message) = message.as_object_mut().filter(|_| !calls.is_empty()) {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    json!({
        "id": format!("chatcmpl-{}", answer.name),
        "object": "chat.completion",
        "created": 0,
        "model": answer.model,
        "choices": [{
            "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer),
        }],
        "usage": usage(answer.usage),
    })
}

/// Returns the `content` and the `refusal` of the message. At most one of them is set.
pub(super) fn content(answer: &Answer) -> (Option<String>, Option<String>) {
    let text = answer.written_text();
    if answer.stop == Some(Stop::Refusal) { (None, text) } else { (text, None) }
}

pub(super) fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Some(Stop::Length | Stop::ContextWindow) => "length",
        // OpenAI reports a refusal as a normal end.
        Some(Stop::Refusal) => "stop",
        None if answer.calls.is_empty() => "stop",
        None => "tool_calls",
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    let Usage { prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens: _, thinking_tokens } = usage;
    let mut value = json!({
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens.saturating_add(completion_tokens),
    });
    if let Some(value) = value.as_object_mut() {
        value.insert("prompt_tokens_details".to_owned(), json!({"cached_tokens": cached_tokens, "audio_tokens": 0}));
        let details = json!({"reasoning_tokens": thinking_tokens, "audio_tokens": 0});
        value.insert("completion_tokens_details".to_owned(), details);
    }
    value
}
