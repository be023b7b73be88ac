//! Reading an answer of Anthropic's: what the engine needs of it, and the message that goes back into the history.

use super::raw;
use crate::model::no_answer::NoAnswer;
use crate::model::told::{if_readable, tokens};
use crate::model::wire::answerable;
use bloomery_crds::canonical::{self, MAX_DEPTH, depth};
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::event::{Answer, RequestedCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Stands where the provider wants words and there are none.
pub(super) const NOTHING: &str = "(no words)";

/// What the provider wants for arguments that are no JSON object: the text that the model wrote, under this name.
const INVALID: &str = "INVALID_JSON";

/// How deep the arguments of a call may be, so that the message is within [`MAX_DEPTH`].
const MAX_INPUT_DEPTH: usize = MAX_DEPTH - 4;

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<Vec<Map<String, Value>>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Option<Value>,
    #[serde(default, deserialize_with = "if_readable")]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

/// Why the model stopped.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Stop {
    #[serde(default)]
    pub(super) stop_reason: Option<String>,
    #[serde(default)]
    pub(super) stop_details: Option<Value>,
}

/// What an answer took, in tokens. Those of the prompt are told apart by what the cache had to do with them.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "tokens", rename = "input_tokens")]
    pub(super) input: Option<u64>,
    #[serde(default, deserialize_with = "tokens", rename = "cache_creation_input_tokens")]
    pub(super) cache_made: Option<u64>,
    #[serde(default, deserialize_with = "tokens", rename = "cache_read_input_tokens")]
    pub(super) cache_read: Option<u64>,
    #[serde(default, deserialize_with = "tokens", rename = "output_tokens")]
    pub(super) output: Option<u64>,
}

/// A block of a message.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// As it came.
    pub(super) fields: Map<String, Value>,
    /// The arguments of a call, as the model wrote them.
    pub(super) input: String,
}

/// Reads the body of a successful response.
pub(in crate::model) fn read(body: &[u8]) -> Result<Answer, NoAnswer> {
    let text = String::from_utf8_lossy(body);
    // Arguments that nobody can read are the model's fault, and it is told so, as on the other wires: the rest is read.
    let message: Message = serde_json::from_slice(body)
        .or_else(|error| serde_json::from_str(&raw::without_unreadable(&text)).map_err(|_| error))
        .map_err(|error| NoAnswer::unreadable(format!("it is no message ({error})"), &*text))?;
    if let Some(error) = message.error.filter(|error| !error.is_null()) {
        return Err(NoAnswer::Error(error));
    }
    let Some(content) = message.content else {
        return Err(NoAnswer::unreadable("it holds no content", &*text));
    };
    let inputs = raw::inputs(&text).into_iter().chain(std::iter::repeat(""));
    let blocks = content.into_iter().zip(inputs).map(|(fields, input)| Block { fields, input: input.to_owned() });
    let stop = Stop { stop_reason: message.stop_reason, stop_details: message.stop_details };
    answer(blocks.collect(), stop, message.usage.unwrap_or_default())
}

/// What a whole message means, however it came.
pub(super) fn answer(blocks: Vec<Block>, stop: Stop, usage: Usage) -> Result<Answer, NoAnswer> {
    let Stop { stop_reason, stop_details } = stop;
    let reason = stop_reason.as_deref().unwrap_or_default();
    if reason == "refusal" {
        return Err(NoAnswer::Filtered { why: refused(stop_details.as_ref()) });
    }
    let calls = calls(&blocks)?;
    let content: Vec<Map<String, Value>> = blocks.into_iter().filter_map(sendable).collect();
    let text = content.iter().filter_map(words).collect();
    let message = json!({"role": "assistant", "content": whole(content)});
    if depth(&message) > MAX_DEPTH {
        let why = format!("its message is nested more than {MAX_DEPTH} deep");
        return Err(NoAnswer::unreadable(why, message.to_string()));
    }
    let Usage { input, cache_made, cache_read, output } = usage;
    let beside = cache_made.unwrap_or_default().saturating_add(cache_read.unwrap_or_default());
    Ok(Answer {
        message,
        provider: ModelProvider::Anthropic,
        model: None,
        text,
        calls,
        input_tokens: input.map(|tokens| tokens.saturating_add(beside)),
        cached_tokens: cache_read,
        output_tokens: output,
        cut: matches!(reason, "max_tokens" | "model_context_window_exceeded" | "pause_turn"),
    })
}

/// The words and the calls of a message that was an answer.
pub(in crate::model) fn told(message: &Value) -> (String, Vec<RequestedCall>) {
    let content = message.get("content").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let blocks: Vec<&Map<String, Value>> = content.collect();
    let calls = blocks.iter().filter(|block| is_a(block, "tool_use")).map(|block| RequestedCall {
        id: field(block, "id").to_owned(),
        name: field(block, "name").to_owned(),
        arguments: block.get("input").map(written).unwrap_or_default(),
        secrets: Vec::new(),
    });
    (blocks.iter().copied().filter_map(words).collect(), calls.collect())
}

/// Arguments as a call holds them: what is no object that everybody reads alike is shown to the model as it wrote it.
pub(super) fn input(arguments: &str) -> Value {
    match canonical::parse(if arguments.trim().is_empty() { "{}" } else { arguments }) {
        Ok(input @ Value::Object(_)) if depth(&input) <= MAX_INPUT_DEPTH => input,
        _ => json!({INVALID: arguments}),
    }
}

/// Arguments as the model wrote them, of what [`input`] made of them.
fn written(input: &Value) -> String {
    input.get(INVALID).and_then(Value::as_str).map_or_else(|| input.to_string(), str::to_owned)
}

fn refused(details: Option<&Value>) -> String {
    let said = |name: &str| details.and_then(|details| details.get(name)?.as_str());
    let parts: Vec<&str> = [Some("refusal"), said("category"), said("explanation")].into_iter().flatten().collect();
    parts.join(": ")
}

fn calls(blocks: &[Block]) -> Result<Vec<RequestedCall>, NoAnswer> {
    let calls: Vec<RequestedCall> =
        blocks.iter().filter(|block| is_a(&block.fields, "tool_use")).map(call).collect::<Result<_, _>>()?;
    answerable(calls)
}

fn call(Block { fields, input }: &Block) -> Result<RequestedCall, NoAnswer> {
    let required = |name: &str| match field(fields, name) {
        "" => {
            Err(NoAnswer::unreadable(format!("a tool call has no {name}"), Value::Object(fields.clone()).to_string()))
        }
        found => Ok(found.to_owned()),
    };
    // The worker marks calls where answers become events.
    Ok(RequestedCall { id: required("id")?, name: required("name")?, arguments: input.clone(), secrets: Vec::new() })
}

/// A block as every later request holds it. Reasoning comes back to the letter, its signature is made of it. Of others
/// goes what is null, and a text that is blank, which the provider refuses.
fn sendable(block: Block) -> Option<Map<String, Value>> {
    let Block { mut fields, input: arguments } = block;
    if is_reasoning(&fields) {
        return Some(fields);
    }
    fields.retain(|_, value| !value.is_null());
    if is_a(&fields, "tool_use") {
        fields.insert("input".to_owned(), input(&arguments));
    }
    (!is_a(&fields, "text") || !field(&fields, "text").trim().is_empty()).then_some(fields)
}

/// The blocks of a message: it must not be empty, nor end with reasoning.
fn whole(mut content: Vec<Map<String, Value>>) -> Vec<Map<String, Value>> {
    if content.last().is_none_or(is_reasoning) {
        content.push([("type".to_owned(), json!("text")), ("text".to_owned(), json!(NOTHING))].into_iter().collect());
    }
    content
}

fn is_reasoning(block: &Map<String, Value>) -> bool {
    is_a(block, "thinking") || is_a(block, "redacted_thinking")
}

fn words(block: &Map<String, Value>) -> Option<&str> {
    is_a(block, "text").then(|| field(block, "text"))
}

fn is_a(block: &Map<String, Value>, kind: &str) -> bool {
    field(block, "type") == kind
}

fn field<'a>(block: &'a Map<String, Value>, name: &str) -> &'a str {
    block.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
