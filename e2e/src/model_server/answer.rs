//! The answer of a turn, on the wire.

use bloomery_crds::v1alpha1::Stage;
use serde_json::{Value, json};

use super::desk::{Place, user};
use super::request::Request;
use super::script::{Turn, Usage};

/// Builds the completion that answers `request` with `turn`.
///
/// The same request always gets the same bytes: a retry after a lost answer must not look like
/// another answer.
pub(super) fn completion(request: &Request, place: Place, turn: &Turn) -> Value {
    let position = place.turn;
    let calls: Vec<Value> = turn
        .calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            json!({
                "id": call.id.clone().unwrap_or_else(|| format!("call_{position}_{index}")),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_text()},
            })
        })
        .collect();
    let text = turn.text();
    let finish_reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let message = if calls.is_empty() {
        json!({"role": "assistant", "content": text, "refusal": null})
    } else {
        json!({"role": "assistant", "content": text, "tool_calls": calls, "refusal": null})
    };
    let usage = turn.usage.unwrap_or_else(|| estimate(request, &message));
    json!({
        "id": id(request, place),
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens.saturating_add(usage.completion_tokens),
        },
    })
}

fn id(request: &Request, Place { stage, turn }: Place) -> String {
    match stage {
        Stage::Plan => format!("chatcmpl-{}-{turn}", user(request)),
        other => format!("chatcmpl-{}-{other}-{turn}", user(request)),
    }
}

/// Builds an answer without choices, as some servers give under load.
pub(super) fn without_choices(request: &Request) -> Value {
    json!({"id": "chatcmpl-empty", "object": "chat.completion", "created": 0, "model": request.model, "choices": []})
}

fn estimate(request: &Request, message: &Value) -> Usage {
    let length = |values: &[Value]| values.iter().map(|value| value.to_string().len()).sum::<usize>();
    let prompt = length(&request.messages) + length(&request.tools);
    Usage { prompt_tokens: (prompt / 4) as u64, completion_tokens: (message.to_string().len() / 4).max(1) as u64 }
}
