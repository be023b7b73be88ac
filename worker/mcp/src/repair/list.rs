//! Repairs lists of tools: a malformed tool does not affect the others.

use crate::limits::MAX_TOOLS;
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use rmcp::model::Tool;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The field of `_meta` with the reason why a tool cannot be used.
pub(crate) const UNUSABLE: &str = "bloomery.dev/unusable";

/// The fields that name a tool and show what it lacks.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedTool<'t> {
    #[serde(borrow)]
    name: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "super::raw::present")]
    input_schema: Option<&'t RawValue>,
}

/// Returns a page in which each malformed tool is replaced by a marked one; `None` if all are well-formed.
pub(super) fn repaired(page: &str, tools: &str) -> Option<Value> {
    let tools: Vec<&RawValue> = serde_json::from_str(tools).ok()?;
    // One tool beyond the limit suffices to detect that it is exceeded.
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

/// Why a tool is malformed.
struct Malformed(String);

fn parse(raw: &str) -> Result<Value, Malformed> {
    let named: NamedTool<'_> = serde_json::from_str(raw).unwrap_or_default();
    if named.name.is_none() {
        return Err(Malformed("it has no name".to_owned()));
    }
    match named.input_schema {
        None => return Err(Malformed("it has no inputSchema".to_owned())),
        Some(schema) if !schema.get().starts_with('{') => {
            return Err(Malformed("its inputSchema is no object".to_owned()));
        }
        Some(_) => {}
    }
    let too_deep = || Malformed(format!("it is nested more than {MAX_DEPTH} levels deep"));
    let tool: Value = serde_json::from_str(raw).map_err(|error| match error.to_string() {
        error if error.starts_with("recursion limit") => too_deep(),
        error => unlike(&error),
    })?;
    // The tool itself is one level.
    if depth(&tool) > MAX_DEPTH + 1 {
        return Err(too_deep());
    }
    serde_json::from_str::<Tool>(raw).map(|_| tool).map_err(|error| unlike(&error.to_string()))
}

/// Describes a parser's error, without its position, which means nothing to the reader.
fn unlike(error: &str) -> Malformed {
    let what = error.rsplit_once(" at line ").map_or(error, |(what, _)| what);
    Malformed(format!("it is not as MCP says: {what}"))
}

/// Returns a tool that only has its name and the reason why it cannot be used.
fn marked(raw: &str, reason: &str) -> Value {
    let named: NamedTool<'_> = serde_json::from_str(raw).unwrap_or_default();
    let name = named.name.and_then(|name| serde_json::from_str::<String>(name.get()).ok()).unwrap_or_default();
    json!({"name": name, "inputSchema": {}, "_meta": {UNUSABLE: reason}})
}
