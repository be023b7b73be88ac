//! Reads an answer: its text, calls and token usage for the engine, and the message that later requests send back.

use super::raw;
use crate::lenient::{lenient, token_count};
use crate::protocol::Error;
use crate::protocol::check_calls;
use bloomery_crds::canonical::{self, MAX_DEPTH, depth};
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::event::{Answer, RequestedCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The text that replaces an empty one, because the provider rejects empty texts.
pub(crate) const EMPTY_TEXT: &str = "(no words)";

/// The field in which later requests send arguments that are not a JSON object. Its value is the text that the model wrote.
const INVALID_ARGUMENTS: &str = "INVALID_JSON";

/// The nesting limit of arguments. It keeps the nesting of the whole message within [`MAX_DEPTH`].
const MAX_INPUT_DEPTH: usize = MAX_DEPTH - 4;

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<Vec<Map<String, Value>>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

/// The reason for which the model stopped.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Stop {
    #[serde(default)]
    pub(crate) stop_reason: Option<String>,
    #[serde(default)]
    pub(crate) stop_details: Option<Value>,
}

/// The token usage of an answer. The tokens of the prompt are the sum of `input`, `cache_written` and `cache_read`.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(crate) struct Usage {
    #[serde(default, deserialize_with = "token_count", rename = "input_tokens")]
    pub(crate) input: Option<u64>,
    #[serde(default, deserialize_with = "token_count", rename = "cache_creation_input_tokens")]
    pub(crate) cache_written: Option<u64>,
    #[serde(default, deserialize_with = "token_count", rename = "cache_read_input_tokens")]
    pub(crate) cache_read: Option<u64>,
    #[serde(default, deserialize_with = "token_count", rename = "output_tokens")]
    pub(crate) output: Option<u64>,
}

/// A block of a message.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The fields as received.
    pub(crate) fields: Map<String, Value>,
    /// The arguments of a call, as the model wrote them.
    pub(crate) input: String,
}

/// Reads the body of a successful response.
pub(crate) fn read(body: &[u8]) -> Result<Answer, Error> {
    let text = String::from_utf8_lossy(body);
    // The engine reports invalid arguments to the model, so they must not make the whole message unreadable.
    let message: Message = serde_json::from_slice(body)
        .or_else(|error| serde_json::from_str(&raw::without_unparsable_inputs(&text)).map_err(|_| error))
        .map_err(|error| Error::unreadable(format!("it is not a message ({error})"), &*text))?;
    if let Some(error) = message.error.filter(|error| !error.is_null()) {
        return Err(Error::Provider(error));
    }
    let Some(content) = message.content else {
        return Err(Error::unreadable("it holds no content", &*text));
    };
    let inputs = raw::inputs(&text).into_iter().chain(std::iter::repeat(""));
    let blocks = content.into_iter().zip(inputs).map(|(fields, input)| Block { fields, input: input.to_owned() });
    let stop = Stop { stop_reason: message.stop_reason, stop_details: message.stop_details };
    build_answer(blocks.collect(), stop, message.usage.unwrap_or_default())
}

/// Builds an answer from a complete message. The message may have been streamed.
pub(crate) fn build_answer(blocks: Vec<Block>, stop: Stop, usage: Usage) -> Result<Answer, Error> {
    let Stop { stop_reason, stop_details } = stop;
    let reason = stop_reason.as_deref().unwrap_or_default();
    if reason == "refusal" {
        return Err(Error::Filtered { reason: refusal_reason(stop_details.as_ref()) });
    }
    let calls = calls(&blocks)?;
    let content: Vec<Map<String, Value>> = blocks.into_iter().filter_map(history_block).collect();
    let text = content.iter().filter_map(text_of).collect();
    let message = json!({"role": "assistant", "content": valid_content(content)});
    if depth(&message) > MAX_DEPTH {
        let reason = format!("its message is nested more than {MAX_DEPTH} levels deep");
        return Err(Error::unreadable(reason, message.to_string()));
    }
    let Usage { input, cache_written, cache_read, output } = usage;
    let cached = cache_written.unwrap_or_default().saturating_add(cache_read.unwrap_or_default());
    Ok(Answer {
        message,
        provider: ModelProvider::Anthropic,
        model: None,
        text,
        calls,
        input_tokens: input.map(|tokens| tokens.saturating_add(cached)),
        cached_tokens: cache_read,
        output_tokens: output,
        cut: matches!(reason, "max_tokens" | "model_context_window_exceeded" | "pause_turn"),
    })
}

/// Returns the text and the calls of the message of an earlier answer.
pub(crate) fn text_and_calls(message: &Value) -> (String, Vec<RequestedCall>) {
    let content = message.get("content").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let blocks: Vec<&Map<String, Value>> = content.collect();
    let calls = blocks.iter().filter(|block| is_a(block, "tool_use")).map(|block| RequestedCall {
        id: field(block, "id").to_owned(),
        name: field(block, "name").to_owned(),
        arguments: block.get("input").map(original_arguments).unwrap_or_default(),
        secrets: Vec::new(),
    });
    (blocks.iter().copied().filter_map(text_of).collect(), calls.collect())
}

/// Returns the arguments of a call as requests send them. Arguments that are not an unambiguous JSON object are sent as text, in the
/// field [`INVALID_ARGUMENTS`].
pub(crate) fn input_from_arguments(arguments: &str) -> Value {
    match canonical::parse(if arguments.trim().is_empty() { "{}" } else { arguments }) {
        Ok(input @ Value::Object(_)) if depth(&input) <= MAX_INPUT_DEPTH => input,
        _ => json!({INVALID_ARGUMENTS: arguments}),
    }
}

/// Returns the arguments as the model wrote them: the inverse of [`input_from_arguments`].
fn original_arguments(input: &Value) -> String {
    input.get(INVALID_ARGUMENTS).and_then(Value::as_str).map_or_else(|| input.to_string(), str::to_owned)
}

fn refusal_reason(details: Option<&Value>) -> String {
    let detail = |name: &str| details.and_then(|details| details.get(name)?.as_str());
    let parts: Vec<&str> = [Some("refusal"), detail("category"), detail("explanation")].into_iter().flatten().collect();
    parts.join(": ")
}

fn calls(blocks: &[Block]) -> Result<Vec<RequestedCall>, Error> {
    let calls: Vec<RequestedCall> =
        blocks.iter().filter(|block| is_a(&block.fields, "tool_use")).map(call).collect::<Result<_, _>>()?;
    check_calls(calls)
}

fn call(Block { fields, input }: &Block) -> Result<RequestedCall, Error> {
    let required = |name: &str| match field(fields, name) {
        "" => Err(Error::unreadable(format!("a tool call has no {name}"), Value::Object(fields.clone()).to_string())),
        found => Ok(found.to_owned()),
    };
    // The worker sets `secrets` when the answer becomes an event.
    Ok(RequestedCall { id: required("id")?, name: required("name")?, arguments: input.clone(), secrets: Vec::new() })
}

/// Returns a block as every later request sends it. Reasoning is sent verbatim, because it is signed. Other blocks lose their null
/// fields. Returns `None` for a blank text, because the provider rejects it.
fn history_block(block: Block) -> Option<Map<String, Value>> {
    let Block { mut fields, input: arguments } = block;
    if is_reasoning(&fields) {
        return Some(fields);
    }
    fields.retain(|_, value| !value.is_null());
    if is_a(&fields, "tool_use") {
        fields.insert("input".to_owned(), input_from_arguments(&arguments));
    }
    (!is_a(&fields, "text") || !field(&fields, "text").trim().is_empty()).then_some(fields)
}

/// Adds a text block to a message that is empty or ends with reasoning, because the provider rejects such messages.
fn valid_content(mut content: Vec<Map<String, Value>>) -> Vec<Map<String, Value>> {
    if content.last().is_none_or(is_reasoning) {
        content
            .push([("type".to_owned(), json!("text")), ("text".to_owned(), json!(EMPTY_TEXT))].into_iter().collect());
    }
    content
}

fn is_reasoning(block: &Map<String, Value>) -> bool {
    is_a(block, "thinking") || is_a(block, "redacted_thinking")
}

fn text_of(block: &Map<String, Value>) -> Option<&str> {
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
