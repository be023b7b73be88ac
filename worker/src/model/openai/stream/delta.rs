//! Adding a delta to what is there: texts grow, items of lists are told by their `index`, and fields that nobody here
//! knows are kept the same way, because some models want them back.

use crate::model::no_answer::NoAnswer;
use crate::model::wire::MAX_CALLS;
use serde_json::{Map, Value};

/// Texts that come whole, however often: some servers repeat them in every delta.
const WHOLE: [&str; 5] = ["id", "type", "name", "role", "format"];

/// The tool calls of a message.
const CALLS: &str = "tool_calls";

/// The most items of any other list.
const MAX_ITEMS: usize = 4096;

/// What the items of a list are told apart by.
const INDEX: &str = "index";

/// Adds the fields of a delta.
pub(super) fn add(message: &mut Map<String, Value>, delta: Map<String, Value>) -> Result<(), NoAnswer> {
    for (name, value) in delta {
        match (message.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(_)), Value::String(_)) if WHOLE.contains(&name.as_str()) => {}
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
            // An empty text is a name or an id that is still to come.
            (None, Value::String(text)) if text.is_empty() && WHOLE.contains(&name.as_str()) => {}
            (_, value) => {
                message.insert(name, value);
            }
        }
    }
    Ok(())
}

fn add_items(name: &str, items: &mut Vec<Value>, more: Vec<Value>) -> Result<(), NoAnswer> {
    for item in more {
        let place = place(name, items, &item);
        match (place.and_then(|at| items.get_mut(at)), item) {
            (Some(Value::Object(fields)), Value::Object(more)) => add(fields, more)?,
            (_, Value::Object(more)) => {
                let mut fields = Map::new();
                add(&mut fields, more)?;
                items.push(Value::Object(fields));
            }
            (_, item) => items.push(item),
        }
        if items.len() > if name == CALLS { MAX_CALLS } else { MAX_ITEMS } {
            return Err(NoAnswer::unreadable(format!("its list `{name}` is too long"), items.len().to_string()));
        }
    }
    Ok(())
}

/// Where the item stands that this one goes on with. A call without an index goes on with the latest one, unless it
/// has an id of its own. One with a name and an id of its own is another, though some servers give all the same index.
fn place(name: &str, items: &[Value], item: &Value) -> Option<usize> {
    let is_same = |at: &usize| match (items.get(*at).and_then(id), id(item)) {
        (Some(known), Some(own)) => known == own,
        (None, _) | (_, None) => true,
    };
    if let Some(index) = item.get(INDEX).filter(|index| index.is_u64()) {
        let at = items.iter().rposition(|known| known.get(INDEX) == Some(index));
        let begins = name == CALLS && text(item, "/function/name").is_some();
        return at.filter(|at| !begins || is_same(at));
    }
    let latest = items.len().checked_sub(1)?;
    (name == CALLS && is_same(&latest)).then_some(latest)
}

/// The id of a call, where it has one yet.
fn id(call: &Value) -> Option<&str> {
    text(call, "/id")
}

fn text<'a>(value: &'a Value, place: &str) -> Option<&'a str> {
    value.pointer(place)?.as_str().filter(|text| !text.is_empty())
}

/// What no request may hold: the places of the calls, which their order says.
pub(super) fn finish(message: &mut Map<String, Value>) {
    let calls = message.get_mut(CALLS).and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten().filter_map(Value::as_object_mut) {
        call.remove(INDEX);
    }
}

/// How many bytes a value takes, roughly.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(weight).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
