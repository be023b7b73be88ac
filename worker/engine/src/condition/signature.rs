//! What is known about the arguments of a tool, from the Skill's declared inputs and the schema of its server.

use super::kinds::Kinds;
use crate::schema::has_other_properties;
use bloomery_crds::v1alpha1::ToolInput;
use serde_json::{Number, Value};
use std::collections::BTreeMap;

/// The known arguments of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Signature {
    arguments: BTreeMap<String, Argument>,
    /// Whether these are all arguments of the tool.
    is_complete: bool,
}

/// A known argument.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Argument {
    kinds: Kinds,
    /// Whether the schema or the Skill allows no negative number.
    is_positive: bool,
}

impl Signature {
    /// Returns the arguments that a Skill declares. Without declared inputs, nothing is known.
    pub fn declared(inputs: &[ToolInput]) -> Self {
        let argument = |input: &ToolInput| Argument {
            kinds: Kinds::declared(input.kind),
            is_positive: input.minimum.as_ref().and_then(Number::as_f64).is_some_and(|minimum| minimum >= 0.0),
        };
        let arguments = inputs.iter().map(|input| (input.name.clone(), argument(input))).collect();
        Self { arguments, is_complete: !inputs.is_empty() }
    }

    /// Returns the arguments of a tool whose server lists `schema`. The types are those of the schema, or else those that the Skill
    /// declares. An input that only the Skill declares counts if the schema accepts arguments that it does not list on purpose.
    pub fn listed(inputs: &[ToolInput], schema: &Value) -> Self {
        let declared = Self::declared(inputs);
        let properties = schema.get("properties").and_then(Value::as_object);
        let listed: BTreeMap<String, Argument> = properties
            .into_iter()
            .flatten()
            .map(|(name, property)| (name.clone(), declared.listed_argument(name, property)))
            .collect();
        let may_have_more = has_other_properties(schema);
        let accepts_others = match schema.get("additionalProperties") {
            Some(Value::Bool(accepts)) => *accepts,
            Some(_) => true,
            None => listed.is_empty(),
        };
        let is_known = properties.is_some() || declared.is_complete || !accepts_others;
        let mut arguments = if accepts_others || may_have_more { declared.arguments } else { BTreeMap::new() };
        arguments.extend(listed);
        Self { arguments, is_complete: is_known && !may_have_more }
    }

    /// Returns an argument with the schema `property`. `self` has the declared inputs.
    fn listed_argument(&self, name: &str, property: &Value) -> Argument {
        let kinds = Kinds::of_schema(property);
        let kinds = if kinds == Kinds::ANY { self.kinds(name).unwrap_or(kinds) } else { kinds };
        let bounds = ["minimum", "exclusiveMinimum"].into_iter().filter_map(|keyword| property.get(keyword)?.as_f64());
        Argument { kinds, is_positive: self.is_positive(name) || bounds.into_iter().any(|bound| bound >= 0.0) }
    }

    /// Returns whether a call may have an argument of this name.
    pub fn may_have(&self, name: &str) -> bool {
        !self.is_complete || self.arguments.contains_key(name)
    }

    /// Returns whether all arguments are known.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the names of the known arguments.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arguments.keys().map(String::as_str)
    }

    /// Returns the types of a known argument.
    pub(crate) fn kinds(&self, name: &str) -> Option<Kinds> {
        self.arguments.get(name).map(|argument| argument.kinds)
    }

    /// Returns whether the schema or the Skill refuses negative values of an argument.
    pub fn is_positive(&self, name: &str) -> bool {
        self.arguments.get(name).is_some_and(|argument| argument.is_positive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::listed(json!({"properties": {"to": {}}}), &[], "to", true)]
    #[case::not_listed(json!({"properties": {"to": {}}}), &[], "too", false)]
    #[case::no_arguments(json!({"properties": {}}), &[], "to", false)]
    #[case::nothing_known(json!({"type": "object"}), &[], "to", true)]
    #[case::only_declared(json!({"type": "object"}), &["to"], "to", true)]
    #[case::not_declared(json!({"type": "object"}), &["to"], "too", false)]
    #[case::declared_but_not_listed(json!({"properties": {"to": {}}}), &["too"], "too", false)]
    #[case::declared_and_accepted(json!({"properties": {"to": {}}, "additionalProperties": true}), &["too"], "too", true)]
    #[case::declared_and_refused(json!({"additionalProperties": false}), &["to"], "to", false)]
    #[case::listed_elsewhere(json!({"properties": {"to": {}}, "allOf": [{}]}), &[], "cc", true)]
    fn an_argument_is_known_to_the_server_or_declared_where_the_server_accepts_any(
        #[case] schema: Value,
        #[case] inputs: &[&str],
        #[case] name: &str,
        #[case] expected: bool,
    ) {
        let inputs: Vec<ToolInput> = inputs
            .iter()
            .map(|name| serde_json::from_value(json!({"name": name, "type": "string"})).unwrap())
            .collect();
        assert_eq!(Signature::listed(&inputs, &schema).may_have(name), expected);
    }

    #[rstest]
    #[case::a_type(json!({"type": "integer"}), "a number")]
    #[case::types(json!({"type": ["string", "null"]}), "a string")]
    #[case::optional_of_pydantic(json!({"anyOf": [{"type": "array"}, {"type": "null"}]}), "a list")]
    #[case::values(json!({"enum": ["a", 1]}), "a number or a string")]
    #[case::a_value(json!({"const": true}), "a bool")]
    #[case::as_declared(json!({"description": "x"}), "an object")]
    fn the_types_are_those_of_the_schema_or_else_declared(#[case] property: Value, #[case] kinds: &str) {
        let inputs = [serde_json::from_value(json!({"name": "x", "type": "object"})).unwrap()];
        let signature = Signature::listed(&inputs, &json!({"properties": {"x": property}}));
        assert_eq!(signature.kinds("x").unwrap().to_string(), kinds);
    }
}
