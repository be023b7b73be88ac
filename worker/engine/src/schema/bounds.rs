//! Checks a schema before it is compiled: its size, its depth, the number of its parts with references followed, and the memory
//! of its patterns.
//!
//! Only references that are paths from the root are allowed. With an anchor, another base or an escaped path, the validator
//! would follow references that this module does not count.

use super::error::Error;
use bloomery_crds::canonical::{MAX_DEPTH, MAX_SCHEMA_BYTES, depth};
use bloomery_crds::text::bounded;
use serde_json::Value;
use std::collections::BTreeSet;

/// The most parts of a schema with its references followed. Without a limit, a few references to references would be endless
/// work.
const MAX_PARTS: usize = 10_000;

/// The most memory of all compiled patterns of a schema, in bytes. [`PATTERN_BYTES_PER_BYTE`] is added for each byte of the
/// schema. A short pattern can take megabytes, and a server may list hundreds of schemas.
const MAX_PATTERN_BYTES: usize = 128 * 1024;

/// The additional memory of compiled patterns for each byte of the schema, in bytes.
const PATTERN_BYTES_PER_BYTE: usize = 128;

/// The limits for compiling a schema that is within the bounds.
#[derive(Debug)]
pub(super) struct Bounds {
    /// The most memory of each compiled pattern, in bytes.
    pub(super) pattern_bytes: usize,
}

/// Checks a schema.
///
/// # Errors
/// If the schema is beyond a bound, or has a reference that cannot be counted.
pub(super) fn check(schema: &Value) -> Result<Bounds, Error> {
    let depth = depth(schema);
    if depth > MAX_DEPTH {
        return Err(Error::new(format!("the schema is nested {depth} deep, more than {MAX_DEPTH}")));
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(Error::new(format!("the schema has {bytes} bytes, more than {MAX_SCHEMA_BYTES}")));
    }
    let mut walk = Walk::new(schema);
    walk.visit(schema, true)?;
    let mut parts = 0;
    count(Part { value: schema, has_author_names: false }, schema, MAX_DEPTH, &mut parts).ok_or_else(|| {
        Error::new(format!(
            "the schema has more than {MAX_PARTS} parts with its references followed, or refers to itself"
        ))
    })?;
    let all_patterns_bytes = MAX_PATTERN_BYTES + PATTERN_BYTES_PER_BYTE * bytes;
    Ok(Bounds { pattern_bytes: all_patterns_bytes / walk.patterns.len().max(1) })
}

/// A walk over every part, without following references.
struct Walk<'a> {
    root: &'a Value,
    /// The fields that would change the base URI of the references in a part.
    bases: &'static [&'static str],
    patterns: BTreeSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Value) -> Self {
        let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let bases: &[&str] = if dialect.contains("draft-04") { &["$schema", "$id", "id"] } else { &["$schema", "$id"] };
        Self { root, bases, patterns: BTreeSet::new() }
    }

    /// Refuses references that cannot be counted, and collects the patterns.
    fn visit(&mut self, part: &'a Value, is_root: bool) -> Result<(), Error> {
        match part {
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item, false)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, item)| {
                self.visit_field(name, item, is_root)?;
                self.visit(item, false)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn visit_field(&mut self, name: &'a str, item: &'a Value, is_root: bool) -> Result<(), Error> {
        match item {
            Value::String(reference) if is_reference(name) && target(reference, self.root).is_none() => {
                Err(Error::new(format!(
                    "the schema refers to {:?}: only paths within it, such as \"#/$defs/order\", are followed",
                    bounded(reference, 128)
                )))
            }
            Value::String(_) if !is_root && self.bases.contains(&name) => {
                Err(Error::new(format!("a part of the schema has {name:?}, which only the root may have")))
            }
            Value::String(pattern) if name == "pattern" => {
                self.patterns.insert(pattern);
                Ok(())
            }
            Value::Object(patterns) if name == "patternProperties" => {
                self.patterns.extend(patterns.keys().map(String::as_str));
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
    /// Whether the author chose the names of the fields. Otherwise they are keywords.
    has_author_names: bool,
}

/// Counts the parts of a schema with its references followed, into `parts`. Returns nothing if there are too many, or if more
/// than `references` references lead to one another.
fn count(part: Part<'_>, root: &Value, references: usize, parts: &mut usize) -> Option<()> {
    *parts += 1;
    if *parts > MAX_PARTS {
        return None;
    }
    let schema = |value| Part { value, has_author_names: false };
    match part.value {
        Value::Array(items) => items.iter().try_for_each(|item| count(schema(item), root, references, parts)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, item)| {
            if part.has_author_names {
                return count(schema(item), root, references, parts);
            }
            match (name.as_str(), item) {
                // Definitions are counted at each reference to them.
                ("$defs" | "definitions", Value::Object(_)) => Some(()),
                (name, Value::String(reference)) if is_reference(name) => {
                    count(schema(target(reference, root)?), root, references.checked_sub(1)?, parts)
                }
                _ => count(Part { value: item, has_author_names: holds_author_names(name) }, root, references, parts),
            }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}

fn holds_author_names(keyword: &str) -> bool {
    matches!(keyword, "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "dependentRequired")
}

/// Returns the part that a reference names, if it is a path from the root without URL escapes.
fn target<'a>(reference: &str, root: &'a Value) -> Option<&'a Value> {
    let path = reference.strip_prefix('#').filter(|path| !path.contains('%'))?;
    root.pointer(path)
}
