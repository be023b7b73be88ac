//! The results of calls: what a call has brought is told, in whichever form it comes.

use super::list;
use bloomery_crds::text::bounded;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// How much of the name of an unknown type is told, in bytes.
const MAX_TYPE: usize = 64;

/// The parts of a result that say whose it is.
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

/// A result that can be read in the place of one that cannot.
pub(super) fn mended(result: &RawValue) -> Option<Value> {
    let raw = result.get();
    let fields: Fields<'_> = serde_json::from_str(raw).unwrap_or_default();
    if let Some(tools) = fields.tools
        && fields.content.is_none()
    {
        return list::mended(raw, tools.get());
    }
    if fields.result_type.is_some_and(|kind| kind.get() != "\"complete\"") {
        // What it is to say is not what came of a call.
        return None;
    }
    let is_of_a_call = fields.content.is_some() || fields.structured_content.is_some() || fields.is_error.is_some();
    let can_be_read = if is_of_a_call {
        serde_json::from_str::<CallToolResult>(raw).is_ok()
    } else {
        serde_json::from_str::<Value>(raw).is_ok()
    };
    if can_be_read { None } else { Some(fields.read().unwrap_or_else(|| fields.told(raw))) }
}

/// What the model reads of an answer that is none of a tool.
pub(in crate::mcp) fn as_it_came(raw: &str) -> String {
    format!("[The server has answered the call, though not as MCP says. This is its answer as it came:]\n{raw}")
}

impl Fields<'_> {
    /// What can be read of the result of a call.
    fn read(&self) -> Option<Value> {
        let items: Vec<&RawValue> =
            self.content.map_or(Some(Vec::new()), |raw| serde_json::from_str(raw.get()).ok())?;
        if items.is_empty() && self.structured_content.is_none() && self.is_error.is_none() {
            return None;
        }
        let mut result = Map::new();
        result.insert("content".to_owned(), items.into_iter().map(|item| block(item.get())).collect());
        if let Some(structured) = self.structured_content {
            result.insert("structuredContent".to_owned(), serde_json::from_str(structured.get()).ok()?);
        }
        if self.is_error() {
            result.insert("isError".to_owned(), Value::Bool(true));
        }
        Some(Value::Object(result))
    }

    /// The same where nothing can.
    fn told(&self, raw: &str) -> Value {
        json!({"content": [{"type": "text", "text": as_it_came(raw)}], "isError": self.is_error()})
    }

    /// Whoever says more than that there was no error says that there was one.
    fn is_error(&self) -> bool {
        self.is_error.is_some_and(|said| said.get() != "false")
    }
}

/// An item of the content, or a note in its place.
fn block(raw: &str) -> Value {
    let is_known = serde_json::from_str::<ContentBlock>(raw).is_ok();
    let item = serde_json::from_str::<Value>(raw);
    let note = match item {
        Ok(item) if is_known => return item,
        Ok(item) => unknown_type(&item),
        Err(_) => None,
    };
    json!({"type": "text", "text": note.unwrap_or_else(|| format!("[content that is not as MCP says:]\n{raw}"))})
}

fn unknown_type(item: &Value) -> Option<String> {
    let kind = item.get("type")?.as_str()?;
    if matches!(kind, "text" | "image" | "audio" | "resource" | "resource_link") {
        return None;
    }
    let kind = bounded(&kind.split_whitespace().collect::<Vec<_>>().join(" "), MAX_TYPE);
    Some(format!("[content of the type `{kind}`, which MCP does not have, is left out]"))
}
