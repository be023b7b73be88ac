//! Compares the structured content of a result with its other content, so that the model reads nothing twice.

use crate::binary_text;
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::Value;

/// The shortest text of structured content that is replaced by a reference to the same text, in bytes.
const MIN_REPEATED_BYTES: usize = 64;

/// Returns whether a text is the JSON of structured content, or of its only field.
pub(crate) fn is_json_of(text: &str, structured: &Value) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<Value>(text)
            .is_ok_and(|text| text == *structured || Some(&text) == only_field(structured))
}

/// Returns whether the only field of structured content is the other content. SDKs wrap the content in this way for a tool that returns
/// a text or a list.
pub(crate) fn only_wraps(structured: &Value, content: &[ContentBlock]) -> bool {
    match (only_field(structured), content) {
        (Some(Value::Array(items)), [_, ..]) => {
            items.len() == content.len() && items.iter().zip(content).all(|(item, block)| is_block(item, block))
        }
        (Some(value), [block]) => is_block(value, block),
        _ => false,
    }
}

fn only_field(structured: &Value) -> Option<&Value> {
    structured.as_object().filter(|fields| fields.len() == 1)?.values().next()
}

/// Returns whether a value has the same information as a block of the content.
fn is_block(value: &Value, block: &ContentBlock) -> bool {
    match (value, block.as_text()) {
        (Value::String(value), Some(text)) => *value == text.text,
        (value, Some(text)) if serde_json::from_str::<Value>(&text.text).is_ok_and(|text| text == *value) => true,
        (value, _) => read_block(value).as_ref() == Some(block),
    }
}

fn read_block(value: &Value) -> Option<ContentBlock> {
    value.get("type")?;
    serde_json::from_value(value.clone()).ok()
}

/// Returns structured content without binary data and repetitions of the other content: binary data, also in a text, and long repeated
/// texts become references. `note` keeps a binary block, and returns its note. `parts` has the text of each block.
pub(crate) fn without_repetitions(
    value: &Value,
    content: &[ContentBlock],
    parts: &[String],
    note: &mut impl FnMut(&ContentBlock) -> String,
) -> Value {
    match value {
        Value::String(text) => {
            let note_of_binary = || binary_text::read(text).map(|block| note(&block));
            let shown = reference(text, content, parts).or_else(note_of_binary);
            Value::String(shown.unwrap_or_else(|| text.clone()))
        }
        Value::Array(items) => items.iter().map(|item| without_repetitions(item, content, parts, note)).collect(),
        Value::Object(fields) => {
            if let Some(block) = read_block(value).filter(|block| base64(block).is_some()) {
                return Value::String(note(&block));
            }
            let kept =
                |(name, value): (&String, &Value)| (name.clone(), without_repetitions(value, content, parts, note));
            Value::Object(fields.iter().map(kept).collect())
        }
        other => other.clone(),
    }
}

/// Returns the reference that replaces a text, if the content has the same text.
fn reference(text: &str, content: &[ContentBlock], parts: &[String]) -> Option<String> {
    if text.len() < MIN_REPEATED_BYTES {
        return None;
    }
    content.iter().zip(parts).find_map(|(block, part)| match (block.as_text(), base64(block)) {
        (Some(known), _) if known.text == text => Some("[the text above]".to_owned()),
        (_, Some(data)) if text == data || text.starts_with("data:") && text.ends_with(data) => Some(part.clone()),
        _ => None,
    })
}

/// Returns the data of a binary block.
fn base64(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Image(image) => Some(&image.data),
        ContentBlock::Audio(audio) => Some(&audio.data),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::BlobResourceContents { blob, .. } => Some(blob),
            _ => None,
        },
        _ => None,
    }
}
