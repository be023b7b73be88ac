//! Keeps the parts of a value that a schema allows. A required value that cannot be read is replaced with a placeholder.

use crate::schema::spec::Schema;
use crate::schema::{bounds, property};
use crate::tree::{Entry, Node, Place, Value};
use std::collections::BTreeSet;

/// Copies the allowed parts of a value, and collects the paths of the others.
pub(super) struct Salvage<'r> {
    /// The document paths of unsupported values.
    refused: BTreeSet<&'r str>,
    /// The API paths at which a value was omitted or replaced. An index is that of the kept list. The path of a list that lost
    /// an item ends in `[]`.
    pub(super) unknown: BTreeSet<String>,
}

impl<'r> Salvage<'r> {
    pub(super) fn new(refused: &'r [String]) -> Self {
        Self { refused: refused.iter().map(String::as_str).collect(), unknown: BTreeSet::new() }
    }

    /// Returns the allowed part of a value, or `None` if nothing of it is allowed. `at` is its API path.
    pub(super) fn keep_value(&mut self, node: &Node, schema: &Schema, at: &str) -> Option<Node> {
        if self.is_refused(&node.place) {
            return None;
        }
        let is_free = schema.preserve_unknown_fields && schema.properties.is_none();
        let expected = schema.type_.as_deref().unwrap_or_default();
        let value = match (&node.value, expected) {
            (Value::Map(_), "object") if is_free => node.value.clone(),
            (Value::Map(entries), "object") => Value::Map(self.keep_fields(&node.place, entries, schema, at)),
            (Value::List(nodes), "array") => Value::List(self.keep_items(nodes, schema, at)),
            (Value::Text { text, .. }, "string") if bounds::text_faults(text, schema).is_empty() => node.value.clone(),
            (Value::Number(number), "integer" | "number")
                if (expected == "number" || !number.is_f64()) && bounds::number_faults(number, schema).is_empty() =>
            {
                node.value.clone()
            }
            (Value::Bool(_), "boolean") => node.value.clone(),
            (Value::Number(_) | Value::Text { .. }, _) if schema.int_or_string => node.value.clone(),
            _ => return None,
        };
        Some(Node { place: node.place.clone(), value })
    }

    fn keep_fields(&mut self, place: &Place, entries: &[Entry], schema: &Schema, at: &str) -> Vec<Entry> {
        let mut kept = Vec::new();
        for entry in entries {
            let Some(field_schema) = property(schema, &entry.name) else { continue };
            // A refused value can be null in the tree too, but the document does not leave it empty.
            let is_empty = entry.node.value == Value::Null && !self.is_refused(&entry.node.place);
            if is_empty {
                continue;
            }
            let path = format!("{at}.{}", entry.name);
            let is_required = schema.required.iter().flatten().any(|required| *required == entry.name);
            let value = self.keep_value(&entry.node, field_schema, &path);
            match value.or_else(|| self.keep_name(&entry.node, field_schema).filter(|_| is_required)) {
                Some(node) => kept.push(Entry { node, ..entry.clone() }),
                None => _ = self.unknown.insert(path),
            }
        }
        for required in schema.required.iter().flatten() {
            let schema = property(schema, required);
            if let Some(schema) = schema.filter(|_| !kept.iter().any(|entry| entry.name == *required)) {
                self.unknown.insert(format!("{at}.{required}"));
                let place = place.of_field(required);
                kept.push(Entry { name: required.clone(), place: place.clone(), node: placeholder(schema, place) });
            }
        }
        kept
    }

    fn keep_items(&mut self, nodes: &[Node], schema: &Schema, at: &str) -> Vec<Node> {
        let Some(items) = &schema.items else { return nodes.to_vec() };
        // Later checks compare items with each other, so their number is bounded.
        let max_items = schema.max_items.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
        let mut kept = Vec::new();
        for node in nodes.iter().take(max_items) {
            kept.extend(self.keep_value(node, items, &format!("{at}[{}]", kept.len())));
        }
        if kept.len() < nodes.len() {
            self.unknown.insert(format!("{at}[]"));
        }
        kept
    }

    /// Returns a text even if it is too long or has invalid characters: it may be a name that other fields refer to.
    fn keep_name(&self, node: &Node, schema: &Schema) -> Option<Node> {
        let may_be_name = schema.enum_.is_none() && node.text().is_some() && !self.is_refused(&node.place);
        may_be_name.then(|| node.clone())
    }

    fn is_refused(&self, place: &Place) -> bool {
        !self.refused.is_empty() && self.refused.contains(place.to_string().as_str())
    }
}

/// Returns a small value that can be deserialized as the Rust type of a schema. It may be too short for the schema.
fn placeholder(schema: &Schema, place: Place) -> Node {
    let value = match schema.type_.as_deref() {
        Some("string") => {
            let first = schema.enum_.iter().flatten().next();
            Value::Text { text: first.cloned().unwrap_or_default(), plain: false }
        }
        // 1 is valid for every required number of the CRDs.
        Some("integer" | "number") => Value::Number(1.into()),
        Some("boolean") => Value::Bool(false),
        Some("array") => Value::List(Vec::new()),
        _ => {
            let required = schema.required.iter().flatten();
            let fields = required.filter_map(|name| {
                let place = place.of_field(name);
                let node = placeholder(property(schema, name)?, place.clone());
                Some(Entry { name: name.clone(), place, node })
            });
            Value::Map(fields.collect())
        }
    };
    Node { place, value }
}
