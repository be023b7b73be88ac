//! Repairs lists of tools, so that a malformed tool does not affect the others.

use crate::limits::MAX_TOOLS;
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use rmcp::model::Tool;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The field of `_meta` that holds the reason that a tool cannot be used.
pub(crate) const UNUSABLE: &str = "bloomery.dev/unusable";

/// The fields that every tool needs. Each is `None` if it is missing.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedTool<'t> {
    #[serde(borrow)]
    name: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "super::raw::present")]
    input_schema: Option<&'t RawValue>,
}

/// Replaces each malformed tool of a page by a marked stand-in. Returns `None` if all tools are well-formed.
pub(super) fn repaired(page: &str, tools: &str) -> Option<Value> {
    let tools: Vec<&RawValue> = serde_json::from_str(tools).ok()?;
    // One tool beyond the limit suffices to show that the limit is exceeded.
    let read: Vec<_> = tools.iter().take(MAX_TOOLS + 1).map(|tool| parse(tool.get())).collect();
    if read.iter().all(Result::is_ok) {
        return None;
    }
    let tools = read
        .into_iter()
        .zip(tools)
        .map(|(tool, raw)| tool.unwrap_or_else(|Malformed(reason)| marked(raw.get(), &reason)));
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(page).ok()?;
    let mut fields: Map<String, Value> =
        fields.into_iter().filter_map(|(name, raw)| Some((name, serde_json::from_str(raw.get()).ok()?))).collect();
    fields.insert("tools".to_owned(), tools.collect());
    Some(Value::Object(fields))
}

/// The reason that a tool is malformed, as a clause.
struct Malformed(String);

fn parse(raw: &str) -> Result<Value, Malformed> {
    let named: NamedTool<'_> = serde_json::from_str(raw).unwrap_or_default();
    if named.name.is_none() {
        return Err(Malformed("it has no name".to_owned()));
    }
    match named.input_schema {
        None => return Err(Malformed("it has no inputSchema".to_owned())),
        Some(schema) if !schema.get().starts_with('{') => {
            return Err(Malformed("its inputSchema is not an object".to_owned()));
        }
        Some(_) => {}
    }
    let too_deep = || Malformed(format!("it is nested more than {MAX_DEPTH} levels deep"));
    let tool: Value = serde_json::from_str(raw).map_err(|error| match error.to_string() {
        error if error.starts_with("recursion limit") => too_deep(),
        error => nonconforming(&error),
    })?;
    // The tool itself is one level.
    if depth(&tool) > MAX_DEPTH + 1 {
        return Err(too_deep());
    }
    serde_json::from_str::<Tool>(raw).map(|_| tool).map_err(|error| nonconforming(&error.to_string()))
}

/// Describes the parser's error for a tool. The position is left out, because the reader does not see the text.
fn nonconforming(error: &str) -> Malformed {
    let reason = error.rsplit_once(" at line ").map_or(error, |(reason, _)| reason);
    Malformed(format!("it does not conform to MCP: {reason}"))
}

/// Returns the stand-in for a malformed tool: it has only the tool's name, and the reason that the tool cannot be used.
fn marked(raw: &str, reason: &str) -> Value {
    let named: NamedTool<'_> = serde_json::from_str(raw).unwrap_or_default();
    let name = named.name.and_then(|name| serde_json::from_str::<String>(name.get()).ok()).unwrap_or_default();
    json!({"name": name, "inputSchema": {}, "_meta": {UNUSABLE: reason}})
}
