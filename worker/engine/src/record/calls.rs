//! The earlier calls of one tool.

use super::form;
use crate::event::CallId;
use serde_json::Value;
use std::collections::BTreeSet;

/// The most calls, and the most results, of one tool that conditions can read.
const MAX_ENTRIES: usize = 1_000;

/// The most bytes of the arguments, and of the results, of one tool that conditions can read.
const MAX_BYTES: usize = 256 * 1024;

/// The calls of one tool that were started, and their results.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    /// The arguments of the calls.
    pub(super) calls: Kept<(CallId, Value)>,
    pub(super) results: Kept<Value>,
    /// The keys of the values in the results.
    values: BTreeSet<String>,
    value_bytes: usize,
}

/// A list that is bounded. It knows whether it is complete.
#[derive(Debug)]
pub(super) struct Kept<T> {
    items: Vec<T>,
    bytes: usize,
    is_complete: bool,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { items: Vec::new(), bytes: 0, is_complete: true }
    }
}

impl<T> Kept<T> {
    /// Adds an item that has `bytes` as JSON, unless there is no room for it.
    pub(super) fn add(&mut self, item: T, bytes: usize) {
        self.bytes += bytes;
        if self.items.len() >= MAX_ENTRIES || self.bytes > MAX_BYTES {
            self.is_complete = false;
        } else {
            self.items.push(item);
        }
    }

    /// Records that an item exists, but is not known.
    pub(super) fn miss(&mut self) {
        self.is_complete = false;
    }

    /// Returns the items, or nothing if some are missing.
    pub(super) fn complete(&self) -> Option<&[T]> {
        self.is_complete.then_some(&self.items)
    }
}

impl ToolCalls {
    /// Adds the strings and numbers of a result, as far as there is room.
    pub(super) fn add_values(&mut self, result: &Value) {
        let mut unread = vec![result];
        while let Some(value) = unread.pop() {
            match value {
                Value::Array(items) => unread.extend(items),
                Value::Object(fields) => unread.extend(fields.values()),
                _ => {}
            }
            let Some(key) = bloomery_cel::token_text(value).and_then(|text| form::key(&text)) else { continue };
            self.value_bytes += key.len();
            if self.value_bytes > MAX_BYTES {
                return;
            }
            self.values.insert(key);
        }
    }

    /// Returns whether a result has a value with this key.
    pub(super) fn has_value(&self, key: &str) -> bool {
        self.values.contains(key)
    }
}

/// Reads a result as JSON: one value, or several objects or lists one after the other, as servers write a list of results. `None` if
/// the text is anything else.
pub(crate) fn read_json(text: &str) -> Option<Value> {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let mut values = values.ok()?;
    match values.len() {
        0 => None,
        1 => values.pop(),
        _ => values.iter().all(|value| value.is_object() || value.is_array()).then_some(Value::Array(values)),
    }
}
