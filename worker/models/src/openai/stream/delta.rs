//! Adds deltas to a message. Texts are concatenated, and items of lists are matched by their `index`. This includes unknown fields,
//! because later requests send them back to the model.

use crate::protocol::Error;
use crate::protocol::MAX_CALLS;
use serde_json::{Map, Value};

/// The fields whose texts are never split into deltas. Some servers repeat them in every delta.
const UNSPLIT_FIELDS: [&str; 5] = ["id", "type", "name", "role", "format"];

/// The field that holds the tool calls of a message.
const CALLS: &str = "tool_calls";

/// The largest number of items of a list other than the tool calls.
const MAX_ITEMS: usize = 4096;

/// The field that identifies an item of a list.
const INDEX: &str = "index";

/// Adds the fields of a delta to a message.
pub(crate) fn add(message: &mut Map<String, Value>, delta: Map<String, Value>) -> Result<(), Error> {
    for (name, value) in delta {
        match (message.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(_)), Value::String(_)) if UNSPLIT_FIELDS.contains(&name.as_str()) => {}
            (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
            (Some(Value::Object(fields)), Value::Object(more)) => add(fields, more)?,
            (Some(Value::Array(items)), Value::Array(more)) => add_items(&name, items, more)?,
            (None, Value::Array(more)) => {
                let mut items = Vec::new();
                add_items(&name, &mut items, more)?;
                message.insert(name, Value::Array(items));
            }
            (None, Value::Object(more)) => {
                let mut fields = Map::new();
                add(&mut fields, more)?;
                message.insert(name, Value::Object(fields));
            }
            // An empty text is not stored, so that a later delta can set the field.
            (None, Value::String(text)) if text.is_empty() && UNSPLIT_FIELDS.contains(&name.as_str()) => {}
            (_, value) => {
                message.insert(name, value);
            }
        }
    }
    Ok(())
}

fn add_items(name: &str, items: &mut Vec<Value>, more: Vec<Value>) -> Result<(), Error> {
    for item in more {
        let position = find_continued(name, items, &item);
        match (position.and_then(|at| items.get_mut(at)), item) {
            (Some(Value::Object(fields)), Value::Object(more)) => add(fields, more)?,
            (_, Value::Object(more)) => {
                let mut fields = Map::new();
                add(&mut fields, more)?;
                items.push(Value::Object(fields));
            }
            (_, item) => items.push(item),
        }
        if items.len() > if name == CALLS { MAX_CALLS } else { MAX_ITEMS } {
            return Err(Error::unreadable(format!("its list `{name}` is too long"), items.len().to_string()));
        }
    }
    Ok(())
}

/// Returns the position of the item that `item` continues, or `None` if `item` is a new one.
///
/// An item with an index continues the item with the same index. The exception is a call with a name and a different id, because some
/// servers give all calls the same index. An item without an index continues the latest call, unless its id is different.
fn find_continued(name: &str, items: &[Value], item: &Value) -> Option<usize> {
    let is_same = |at: &usize| match (items.get(*at).and_then(id), id(item)) {
        (Some(known), Some(own)) => known == own,
        (None, _) | (_, None) => true,
    };
    if let Some(index) = item.get(INDEX).filter(|index| index.is_u64()) {
        let at = items.iter().rposition(|known| known.get(INDEX) == Some(index));
        let may_begin_call = name == CALLS && text(item, "/function/name").is_some();
        return at.filter(|at| !may_begin_call || is_same(at));
    }
    let latest = items.len().checked_sub(1)?;
    (name == CALLS && is_same(&latest)).then_some(latest)
}

/// Returns the id of a call, if it is known yet.
fn id(call: &Value) -> Option<&str> {
    text(call, "/id")
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

/// Removes the indices of calls, which requests may not contain.
pub(crate) fn finish(message: &mut Map<String, Value>) {
    let calls = message.get_mut(CALLS).and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten().filter_map(Value::as_object_mut) {
        call.remove(INDEX);
    }
}

/// Returns the approximate size of a value, in bytes.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
