//! JSON Schemas of arguments and results. Their size is bounded, and they check values in linear time.

mod bounds;
mod error;
#[cfg(test)]
mod hostile;

pub use error::Error;

use bloomery_crds::text::bounded;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::collections::BTreeSet;

/// The longest error about a schema or a value, in bytes.
const MAX_ERROR_BYTES: usize = 1024;

/// The keywords with which a schema may describe properties that its `properties` does not list.
pub(crate) const OTHER_SOURCES: [&str; 10] =
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "patternProperties"];

/// Returns whether a schema may describe properties that its `properties` does not list.
pub(crate) fn has_other_properties(schema: &Value) -> bool {
    OTHER_SOURCES.iter().any(|keyword| schema.get(keyword).is_some())
}

/// Returns the names of all properties in a schema, at any depth.
pub(crate) fn property_names(schema: &Value) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut parts = vec![schema];
    while let Some(part) = parts.pop() {
        match part {
            Value::Object(fields) => {
                if let Some(Value::Object(properties)) = fields.get("properties") {
                    names.extend(properties.keys().map(String::as_str));
                }
                parts.extend(fields.values());
            }
            Value::Array(items) => parts.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    names
}

/// A compiled schema. A schema that cannot be compiled accepts no value.
#[derive(Debug)]
pub struct Schema(Result<Validator, Error>);

impl Schema {
    /// Compiles a schema. Patterns run in linear time. References to other documents are errors.
    pub fn compile(schema: &Value) -> Self {
        Self(bounds::check(schema).and_then(|bounds| {
            let patterns =
                PatternOptions::regex().size_limit(bounds.pattern_bytes).dfa_size_limit(bounds.pattern_bytes);
            let validator = jsonschema::options().with_pattern_options(patterns).build(schema);
            validator
                .map_err(|error| Error::new(bounded(&format!("the schema cannot be used: {error}"), MAX_ERROR_BYTES)))
        }))
    }

    /// Returns the error of compiling the schema, if there was one.
    pub fn compile_error(&self) -> Option<&Error> {
        self.0.as_ref().err()
    }

    /// Returns the first error of a value, or nothing if it is valid.
    pub fn first_error(&self, value: &Value) -> Option<String> {
        let validator = match &self.0 {
            Ok(validator) => validator,
            Err(error) => return Some(error.to_string()),
        };
        // Faster than `validate`, because it keeps no path.
        if validator.is_valid(value) {
            return None;
        }
        // Only the first: all of them would cost memory for each item of a long list.
        Some(sentence(validator.validate(value).err().as_ref()))
    }
}

/// Returns the sentence about an invalid value, also if the validator does not say what the error is.
fn sentence(error: Option<&ValidationError<'_>>) -> String {
    let Some(error) = error else { return "the value does not match the schema".to_owned() };
    let sentence = match error.instance_path().as_str() {
        "" => error.to_string(),
        path => format!("{path}: {error}"),
    };
    bounded(&sentence, MAX_ERROR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_names_its_path() {
        let schema = Schema::compile(&json!({
            "type": "object", "required": ["order_id"], "additionalProperties": false,
            "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
        }));
        assert_eq!(schema.first_error(&json!({"order_id": "A-17"})), None);
        let error = schema.first_error(&json!({"order_id": "A-17", "amount": "x"})).unwrap();
        assert!(error.contains("/amount"), "{error}");
        assert!(schema.first_error(&json!({})).unwrap().contains("order_id"));
    }

    #[test]
    fn an_invalid_value_has_an_error_also_if_the_validator_names_none() {
        assert_eq!(sentence(None), "the value does not match the schema");
    }

    #[test]
    fn references_within_a_schema_are_followed() {
        let schema = Schema::compile(&json!({
            "$defs": {"id": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/id"}, "b": {"$ref": "#/$defs/id"}},
        }));
        assert_eq!(schema.first_error(&json!({"a": "x", "b": "y"})), None);
        assert!(schema.first_error(&json!({"a": 1})).is_some());
    }

    #[test]
    fn a_schema_that_cannot_be_compiled_accepts_no_value() {
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
            assert!(Schema::compile(&unusable).first_error(&json!({})).is_some(), "{unusable}");
        }
    }
}
