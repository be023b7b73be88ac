//! What bounds the work that a schema makes, before any of it is done: its size and depth, what its references
//! multiply, and what its patterns may take.
//!
//! Only references that are paths from the root are followed, since only those can be counted here as the validator
//! will follow them: an anchor, another base or an escaped path would lead it where nobody has counted.

use bloomery_crds::canonical::{MAX_DEPTH, MAX_SCHEMA, depth};
use bloomery_crds::text::bounded;
use serde_json::Value;
use std::collections::BTreeSet;

/// How many parts a schema may have once its references are followed. A few lines of references to references
/// are as much work as an endless schema, and so is one that refers to itself twice.
const MAX_PARTS: usize = 10_000;

/// What all compiled patterns of a schema may take, in bytes: this, and so much for each byte of the schema. A line of
/// pattern can stand for megabytes, and a server may list hundreds of schemas.
const PATTERN_BYTES: usize = 128 * 1024;
const PATTERN_BYTES_PER_BYTE: usize = 128;

/// What is known of a schema that is within the bounds.
#[derive(Debug)]
pub(super) struct Bounds {
    /// What each of its patterns may take once it is compiled, in bytes.
    pub(super) pattern_bytes: usize,
}

/// Checks a schema.
///
/// # Errors
/// Which bound it passes, or which of its references cannot be counted.
pub(super) fn check(schema: &Value) -> Result<Bounds, String> {
    let depth = depth(schema);
    if depth > MAX_DEPTH {
        return Err(format!("the schema is nested {depth} deep, more than {MAX_DEPTH}"));
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA {
        return Err(format!("the schema has {bytes} bytes, more than {MAX_SCHEMA}"));
    }
    let mut look = Look::new(schema);
    look.at(schema, true)?;
    let mut parts = 0;
    count(Part { value: schema, is_names: false }, schema, MAX_DEPTH, &mut parts).ok_or_else(|| {
        format!("the schema has more than {MAX_PARTS} parts, its references followed, or refers to itself")
    })?;
    let all = PATTERN_BYTES + PATTERN_BYTES_PER_BYTE * bytes;
    Ok(Bounds { pattern_bytes: all / look.patterns.len().max(1) })
}

/// A look at every part as it stands.
struct Look<'a> {
    root: &'a Value,
    /// The fields that would give references in a part another base.
    bases: &'static [&'static str],
    patterns: BTreeSet<&'a str>,
}

impl<'a> Look<'a> {
    fn new(root: &'a Value) -> Self {
        let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let bases: &[&str] = if dialect.contains("draft-04") { &["$schema", "$id", "id"] } else { &["$schema", "$id"] };
        Self { root, bases, patterns: BTreeSet::new() }
    }

    /// Refuses references that cannot be counted, and collects the patterns.
    fn at(&mut self, part: &'a Value, is_root: bool) -> Result<(), String> {
        match part {
            Value::Array(items) => items.iter().try_for_each(|item| self.at(item, false)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, item)| {
                self.field(name, item, is_root)?;
                self.at(item, false)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn field(&mut self, name: &'a str, item: &'a Value, is_root: bool) -> Result<(), String> {
        match item {
            Value::String(to) if is_reference(name) && target(to, self.root).is_none() => Err(format!(
                "the schema refers to {:?}: only paths within it, such as \"#/$defs/order\", are followed",
                bounded(to, 128)
            )),
            Value::String(_) if !is_root && self.bases.contains(&name) => {
                Err(format!("a part of the schema has {name:?} of its own, which only the whole may have"))
            }
            Value::String(pattern) if name == "pattern" => {
                self.patterns.insert(pattern);
                Ok(())
            }
            Value::Object(of) if name == "patternProperties" => {
                self.patterns.extend(of.keys().map(String::as_str));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn is_reference(name: &str) -> bool {
    matches!(name, "$ref" | "$dynamicRef" | "$recursiveRef")
}

/// A part of a schema.
#[derive(Clone, Copy)]
struct Part<'a> {
    value: &'a Value,
    /// Whether its fields are names that the author chose, not keywords.
    is_names: bool,
}

/// Counts the parts of a schema with its references followed; nothing where there are too many.
fn count(part: Part<'_>, root: &Value, references: usize, parts: &mut usize) -> Option<()> {
    *parts += 1;
    if *parts > MAX_PARTS {
        return None;
    }
    let schema = |value| Part { value, is_names: false };
    match part.value {
        Value::Array(items) => items.iter().try_for_each(|item| count(schema(item), root, references, parts)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, item)| {
            if part.is_names {
                return count(schema(item), root, references, parts);
            }
            match (name.as_str(), item) {
                // Definitions are counted where something refers to them.
                ("$defs" | "definitions", Value::Object(_)) => Some(()),
                (name, Value::String(to)) if is_reference(name) => {
                    count(schema(target(to, root)?), root, references.checked_sub(1)?, parts)
                }
                _ => count(Part { value: item, is_names: has_names(name) }, root, references, parts),
            }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}

fn has_names(keyword: &str) -> bool {
    matches!(keyword, "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "dependentRequired")
}

/// What a reference names, where it is a path from the root. One with an escape of URLs would be read otherwise.
fn target<'a>(reference: &str, root: &'a Value) -> Option<&'a Value> {
    let path = reference.strip_prefix('#').filter(|path| !path.contains('%'))?;
    root.pointer(path)
}
