//! Argument schemas: bounded, and checked in linear time.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// The largest schema that is compiled, in bytes of JSON (`engine.md`, section 3).
const MAX_BYTES: usize = 64 * 1024;

/// The deepest schema that is compiled.
const MAX_DEPTH: usize = 32;

/// How many faults of an argument are told.
const MAX_FAULTS: usize = 3;

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
                .map_err(|error| format!("the schema that the server gave cannot be used: {error}"))
        }))
    }

    /// What is wrong with arguments, or nothing.
    pub fn faults(&self, arguments: &Value) -> Option<String> {
        let validator = match &self.0 {
            Ok(validator) => validator,
            Err(why) => return Some(why.clone()),
        };
        let faults: Vec<String> = validator
            .iter_errors(arguments)
            .take(MAX_FAULTS)
            .map(|fault| match fault.instance_path().as_str() {
                "" => fault.to_string(),
                path => format!("{path}: {fault}"),
            })
            .collect();
        (!faults.is_empty()).then(|| bloomery_crds::text::bounded(&faults.join("; "), 1024))
    }
}

fn bounded(schema: &Value) -> Result<(), String> {
    let depth = depth(schema);
    if depth > MAX_DEPTH {
        return Err(format!("the schema that the server gave is nested {depth} deep, more than {MAX_DEPTH}"));
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_BYTES {
        return Err(format!("the schema that the server gave has {bytes} bytes, more than {MAX_BYTES}"));
    }
    Ok(())
}

// Recursion is bounded: the JSON reader refuses more than 128 levels.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn faults_name_the_place() {
        let schema = Schema::compile(&json!({
            "type": "object", "required": ["order_id"], "additionalProperties": false,
            "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
        }));
        assert_eq!(schema.faults(&json!({"order_id": "A-17"})), None);
        let faults = schema.faults(&json!({"order_id": 17, "amount": "x"})).unwrap();
        assert!(faults.contains("/order_id") && faults.contains("/amount"), "{faults}");
        assert!(schema.faults(&json!({})).unwrap().contains("order_id"));
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
        ] {
            assert!(Schema::compile(&unusable).faults(&json!({})).is_some(), "{unusable}");
        }
    }
}
