//! Argument schemas: bounded, and checked in linear time.

use bloomery_crds::canonical::{MAX_DEPTH, depth};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// The largest schema that is compiled, in bytes of JSON (`engine.md`, section 3).
const MAX_BYTES: usize = 64 * 1024;

/// How many parts a schema may have once its references are followed. A few lines of references to references
/// are as much work as an endless schema, and so is one that refers to itself twice.
const MAX_PARTS: usize = 10_000;

/// A compiled schema, or why there is none: then nothing passes it.
#[derive(Debug)]
pub struct Schema(Result<Validator, String>);

impl Schema {
    /// Compiles a schema. Patterns run in linear time, and nothing is fetched.
    pub fn compile(schema: &Value) -> Self {
        Self(bounded(schema).and_then(|()| {
            jsonschema::options()
                .with_pattern_options(PatternOptions::regex())
                .build(schema)
                .map_err(|error| format!("the schema cannot be used: {error}"))
        }))
    }

    /// Why the schema cannot be used, or nothing where it can.
    pub fn unusable(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// The first thing that is wrong with arguments, or nothing.
    pub fn fault(&self, arguments: &Value) -> Option<String> {
        let validator = match &self.0 {
            Ok(validator) => validator,
            Err(why) => return Some(why.clone()),
        };
        // Only the first: collecting all of them costs memory for each item of a long list.
        let fault = validator.validate(arguments).err()?;
        let fault = match fault.instance_path().as_str() {
            "" => fault.to_string(),
            path => format!("{path}: {fault}"),
        };
        Some(bloomery_crds::text::bounded(&fault, 1024))
    }
}

fn bounded(schema: &Value) -> Result<(), String> {
    let depth = depth(schema);
    if depth > MAX_DEPTH {
        return Err(format!("the schema is nested {depth} deep, more than {MAX_DEPTH}"));
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_BYTES {
        return Err(format!("the schema has {bytes} bytes, more than {MAX_BYTES}"));
    }
    let mut parts = 0;
    count(schema, schema, MAX_DEPTH, &mut parts).ok_or_else(|| {
        format!("the schema has more than {MAX_PARTS} parts, its references followed, or refers to itself")
    })
}

/// Counts the parts of a schema with its references followed; nothing where there are too many.
fn count(part: &Value, root: &Value, references: usize, parts: &mut usize) -> Option<()> {
    *parts += 1;
    if *parts > MAX_PARTS {
        return None;
    }
    match part {
        Value::Array(items) => items.iter().try_for_each(|item| count(item, root, references, parts)),
        Value::Object(map) => map.iter().filter(|(name, _)| !is_definitions(name)).try_for_each(|(name, item)| {
            let target = if name == "$ref" { item.as_str().and_then(|at| target(at, root)) } else { None };
            match target {
                Some(target) => count(target, root, references.checked_sub(1)?, parts),
                None => count(item, root, references, parts),
            }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}

/// Definitions are counted where something refers to them.
fn is_definitions(name: &str) -> bool {
    matches!(name, "$defs" | "definitions")
}

/// What a reference within the schema names; one that leads elsewhere is refused when the schema is compiled.
fn target<'a>(reference: &str, root: &'a Value) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fault_names_its_place() {
        let schema = Schema::compile(&json!({
            "type": "object", "required": ["order_id"], "additionalProperties": false,
            "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
        }));
        assert_eq!(schema.fault(&json!({"order_id": "A-17"})), None);
        let fault = schema.fault(&json!({"order_id": "A-17", "amount": "x"})).unwrap();
        assert!(fault.contains("/amount"), "{fault}");
        assert!(schema.fault(&json!({})).unwrap().contains("order_id"));
    }

    /// Shallow and small, and 2^40 parts when each reference is followed.
    fn doubling() -> Value {
        let part = |next: usize| json!({"allOf": [{"$ref": format!("#/$defs/a{next}")}, {"$ref": format!("#/$defs/a{next}")}]});
        let mut definitions: serde_json::Map<String, Value> = (0..40).map(|n| (format!("a{n}"), part(n + 1))).collect();
        definitions.insert("a40".into(), json!({"type": "object"}));
        json!({"$ref": "#/$defs/a0", "$defs": definitions})
    }

    #[test]
    fn references_within_a_schema_are_followed() {
        let schema = Schema::compile(&json!({
            "$defs": {"id": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/id"}, "b": {"$ref": "#/$defs/id"}},
        }));
        assert_eq!(schema.fault(&json!({"a": "x", "b": "y"})), None);
        assert!(schema.fault(&json!({"a": 1})).is_some());
    }

    #[test]
    fn a_schema_that_cannot_be_compiled_lets_nothing_pass() {
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({ "not": deep });
        }
        for unusable in [
            json!({"type": 17}),
            json!({"$ref": "https://example.com/elsewhere.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"properties": {"a": {"pattern": "(a+)+\\1"}}}),
            json!({"description": "x".repeat(70_000)}),
            deep,
            doubling(),
            json!({"$ref": "#"}),
        ] {
            assert!(Schema::compile(&unusable).fault(&json!({})).is_some(), "{unusable}");
        }
    }
}
