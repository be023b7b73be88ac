//! Schemas of arguments and of the answer's fields: bounded, and checked in linear time.

mod bounds;
#[cfg(test)]
mod hostile;

use bloomery_crds::text::bounded;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// The longest sentence about a schema or about arguments, in bytes.
const MAX_SENTENCE: usize = 1024;

/// A compiled schema, or why there is none: then nothing passes it.
#[derive(Debug)]
pub struct Schema(Result<Validator, String>);

impl Schema {
    /// Compiles a schema. Patterns run in linear time, and nothing is fetched.
    pub fn compile(schema: &Value) -> Self {
        Self(bounds::check(schema).and_then(|bounds| {
            let patterns =
                PatternOptions::regex().size_limit(bounds.pattern_bytes).dfa_size_limit(bounds.pattern_bytes);
            let validator = jsonschema::options().with_pattern_options(patterns).build(schema);
            validator.map_err(|error| bounded(&format!("the schema cannot be used: {error}"), MAX_SENTENCE))
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
        Some(bounded(&fault, MAX_SENTENCE))
    }
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
            json!({"$ref": "#"}),
        ] {
            assert!(Schema::compile(&unusable).fault(&json!({})).is_some(), "{unusable}");
        }
    }
}
