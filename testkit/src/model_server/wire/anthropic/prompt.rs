//! Reads the items of a prompt, and the parts at which a cached prefix can end.

use serde_json::{Value, json};

use crate::model_server::cache::Part;
use crate::model_server::request::{Item, Kind, Request, text};

/// The field that marks the end of a prefix for the cache.
const CACHE_MARK: &str = "cache_control";

/// Returns a part of the prompt without its cache marks, which move from one request to the next.
pub(super) fn unmarked(value: &Value) -> Value {
    let Value::Object(object) = value else { return value.clone() };
    let kept = object.iter().filter(|(key, _)| *key != CACHE_MARK);
    kept.map(|(key, value)| {
        let value = match value {
            Value::Array(blocks) if key == "content" => blocks.iter().map(unmarked).collect(),
            other => other.clone(),
        };
        (key.clone(), value)
    })
    .collect()
}

/// Returns the blocks of a `content`: a string is one block of text.
pub(super) fn blocks(content: Option<&Value>) -> Vec<Value> {
    match content {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => Vec::new(),
    }
}

pub(super) fn type_of(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn items(system: Option<&Value>, messages: &[Value]) -> Vec<Item> {
    let system = system.filter(|system| !system.is_null()).map(|system| {
        let raw = blocks(Some(system)).iter().map(unmarked).collect();
        Item { kind: Kind::System, at: "system".to_owned(), text: text(Some(system)), call: None, raw }
    });
    system.into_iter().chain(messages.iter().enumerate().flat_map(items_of)).collect()
}

fn items_of((index, message): (usize, &Value)) -> Vec<Item> {
    let role = message.get("role").and_then(Value::as_str);
    let kind = match role {
        Some("user") => Kind::User,
        Some("assistant") => Kind::Assistant,
        Some("system") => Kind::System,
        _ => Kind::Unknown,
    };
    let whole = |at: String, blocks: &[Value]| {
        let content: Vec<Value> = blocks.iter().map(unmarked).collect();
        let content = Value::Array(content);
        Item { kind, at, text: text(Some(&content)), call: None, raw: json!({"role": role, "content": content}) }
    };
    let blocks = blocks(message.get("content"));
    if kind != Kind::User {
        return vec![whole(format!("messages.{index}"), &blocks)];
    }
    // A message of the user can have a text and results of tools, and later requests may add blocks to it. So each
    // block is an item.
    let items = blocks.iter().enumerate().map(|(place, block)| {
        let at = format!("messages.{index}.content.{place}");
        if type_of(block) != "tool_result" {
            return whole(at, std::slice::from_ref(block));
        }
        Item {
            kind: Kind::Result,
            at,
            text: text(block.get("content")),
            call: block.get("tool_use_id").and_then(Value::as_str).map(str::to_owned),
            raw: unmarked(block),
        }
    });
    items.collect()
}

/// Returns the parts of a prompt in the order of the cache: tools, system prompt, messages.
pub(in crate::model_server::wire) fn parts(request: &Request) -> Vec<Part> {
    let list = |name: &str| request.body.get(name).and_then(Value::as_array).into_iter().flatten();
    let part = |role: &str, value: &Value| Part {
        role: role.to_owned(),
        value: unmarked(value),
        marked: value.get(CACHE_MARK).is_some_and(|mark| !mark.is_null()),
    };
    let tools = list("tools").map(|tool| part("tools", tool));
    let system = blocks(request.body.get("system"));
    let system = system.iter().map(|block| part("system", block));
    let messages = list("messages").flat_map(|message| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        blocks(message.get("content")).iter().map(|block| part(role, block)).collect::<Vec<_>>()
    });
    let mut parts: Vec<Part> = tools.chain(system).chain(messages).collect();
    if let Some(last) = parts.last_mut().filter(|_| request.has(CACHE_MARK)) {
        last.marked = true;
    }
    parts
}
