//! Repairs the results of calls. The model gets the readable parts of a malformed result, or else its whole text.

use super::list;
use bloomery_crds::text::bounded;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The longest name of an unknown content type in a note, in bytes.
const MAX_TYPE_BYTES: usize = 64;

/// The fields that identify the kind of a result.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'t> {
    #[serde(borrow)]
    content: Option<&'t RawValue>,
    #[serde(borrow)]
    structured_content: Option<&'t RawValue>,
    #[serde(borrow)]
    is_error: Option<&'t RawValue>,
    #[serde(borrow)]
    result_type: Option<&'t RawValue>,
    #[serde(borrow)]
    tools: Option<&'t RawValue>,
}

/// Returns a repaired result. Returns `None` if the result is well-formed, or is not the result of a call or a list.
pub(super) fn repaired(result: &RawValue) -> Option<Value> {
    let raw = result.get();
    let fields: Fields<'_> = serde_json::from_str(raw).unwrap_or_default();
    if let Some(tools) = fields.tools
        && fields.content.is_none()
    {
        return list::repaired(raw, tools.get());
    }
    if fields.result_type.is_some_and(|kind| kind.get() != "\"complete\"") {
        // A result of another type does not hold what the call returned.
        return None;
    }
    let is_call_result = fields.content.is_some() || fields.structured_content.is_some() || fields.is_error.is_some();
    let is_well_formed = if is_call_result {
        serde_json::from_str::<CallToolResult>(raw).is_ok()
    } else {
        serde_json::from_str::<Value>(raw).is_ok()
    };
    if is_well_formed { None } else { Some(fields.readable_parts().unwrap_or_else(|| fields.verbatim(raw))) }
}

/// Returns the text that presents an answer to the model, for an answer that is not the result of a tool call.
pub(crate) fn verbatim_answer(raw: &str) -> String {
    format!("[The server answered the call, but the answer does not conform to MCP. The unchanged answer:]\n{raw}")
}

impl Fields<'_> {
    /// Returns a result with the readable parts. Returns `None` if no part is readable.
    fn readable_parts(&self) -> Option<Value> {
        let items: Vec<&RawValue> =
            self.content.map_or(Some(Vec::new()), |raw| serde_json::from_str(raw.get()).ok())?;
        if items.is_empty() && self.structured_content.is_none() && self.is_error.is_none() {
            return None;
        }
        let mut result = Map::new();
        result.insert("content".to_owned(), items.into_iter().map(|item| item_or_note(item.get())).collect());
        if let Some(structured) = self.structured_content {
            result.insert("structuredContent".to_owned(), serde_json::from_str(structured.get()).ok()?);
        }
        if self.is_error() {
            result.insert("isError".to_owned(), Value::Bool(true));
        }
        Some(Value::Object(result))
    }

    /// Returns a result with the whole text.
    fn verbatim(&self, raw: &str) -> Value {
        json!({"content": [{"type": "text", "text": verbatim_answer(raw)}], "isError": self.is_error()})
    }

    /// Returns whether the call failed: any value except `false` and `null` means an error.
    fn is_error(&self) -> bool {
        self.is_error.is_some_and(|value| value.get() != "false")
    }
}

/// Returns an item of the content, or a note in its place if the item does not conform to MCP.
fn item_or_note(raw: &str) -> Value {
    let is_known = serde_json::from_str::<ContentBlock>(raw).is_ok();
    let item = serde_json::from_str::<Value>(raw);
    let note = match item {
        Ok(item) if is_known => return item,
        Ok(item) => note_of_unknown_type(&item),
        Err(_) => None,
    };
    json!({"type": "text", "text": note.unwrap_or_else(|| format!("[content that does not conform to MCP:]\n{raw}"))})
}

/// Returns the note for an item whose type MCP does not define. Returns `None` for other items.
fn note_of_unknown_type(item: &Value) -> Option<String> {
    let kind = item.get("type")?.as_str()?;
    if matches!(kind, "text" | "image" | "audio" | "resource" | "resource_link") {
        return None;
    }
    let kind = bounded(&kind.split_whitespace().collect::<Vec<_>>().join(" "), MAX_TYPE_BYTES);
    Some(format!("[content of the type `{kind}`, which MCP does not define, is left out]"))
}
