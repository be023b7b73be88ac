//! Lists of tools: one that is no tool of MCP leaves the others.

use super::super::listing::MAX_TOOLS;
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use rmcp::model::Tool;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The key of `_meta` under which stands why a tool cannot be used.
pub(in crate::mcp) const UNUSABLE: &str = "bloomery.dev/unusable";

/// What is needed to name a tool and to say what it lacks.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named<'t> {
    #[serde(borrow)]
    name: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "super::present")]
    input_schema: Option<&'t RawValue>,
}

/// A page on which every tool that is none is marked so; nothing where there is no such tool.
pub(super) fn mended(page: &str, tools: &str) -> Option<Value> {
    let tools: Vec<&RawValue> = serde_json::from_str(tools).ok()?;
    // Of more than there may be, so many that it is seen.
    let read: Vec<_> = tools.iter().take(MAX_TOOLS + 1).map(|tool| sound(tool.get())).collect();
    if read.iter().all(Result::is_ok) {
        return None;
    }
    let tools = read.into_iter().zip(tools).map(|(tool, raw)| tool.unwrap_or_else(|why| marked(raw.get(), &why)));
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(page).ok()?;
    let mut fields: Map<String, Value> =
        fields.into_iter().filter_map(|(name, raw)| Some((name, serde_json::from_str(raw.get()).ok()?))).collect();
    fields.insert("tools".to_owned(), tools.collect());
    Some(Value::Object(fields))
}

/// A tool that can be read, or why not.
fn sound(raw: &str) -> Result<Value, String> {
    let named: Named<'_> = serde_json::from_str(raw).unwrap_or_default();
    if named.name.is_none() {
        return Err("it has no name".to_owned());
    }
    match named.input_schema {
        None => return Err("it has no inputSchema".to_owned()),
        Some(schema) if !schema.get().starts_with('{') => return Err("its inputSchema is no object".to_owned()),
        Some(_) => {}
    }
    let too_deep = || format!("it is nested more than {MAX_DEPTH} levels deep");
    let tool: Value = serde_json::from_str(raw).map_err(|error| match error.to_string() {
        error if error.starts_with("recursion limit") => too_deep(),
        error => unlike(&error),
    })?;
    // The tool itself is a level of its own.
    if depth(&tool) > MAX_DEPTH + 1 {
        return Err(too_deep());
    }
    serde_json::from_str::<Tool>(raw).map(|_| tool).map_err(|error| unlike(&error.to_string()))
}

/// Where something stands in a text that nobody sees helps nobody.
fn unlike(error: &str) -> String {
    let what = error.rsplit_once(" at line ").map_or(error, |(what, _)| what);
    format!("it is not as MCP says: {what}")
}

/// A tool that has its name and nothing else.
fn marked(raw: &str, why: &str) -> Value {
    let named: Named<'_> = serde_json::from_str(raw).unwrap_or_default();
    let name = named.name.and_then(|name| serde_json::from_str::<String>(name.get()).ok()).unwrap_or_default();
    json!({"name": name, "inputSchema": {}, "_meta": {UNUSABLE: why}})
}
