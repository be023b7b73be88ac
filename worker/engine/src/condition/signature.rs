//! What is known about the arguments of a tool, from the Skill's declared inputs and the schema of its server.

use super::kinds::Kinds;
use super::shape::{Fields, Reader, Shape};
use crate::schema::{has_other_properties, property_names};
use crate::tool::required_fields;
use bloomery_crds::v1alpha1::ToolInput;
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The known arguments of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Signature {
    /// The arguments. `are_all` says whether these are all arguments of the tool.
    fields: Fields,
    /// The arguments that every call has, with a value that is not null.
    required: BTreeSet<String>,
}

impl Signature {
    /// Returns the arguments that a Skill declares. Without declared inputs, nothing is known.
    pub fn declared<'a>(inputs: impl IntoIterator<Item = &'a ToolInput>) -> Self {
        let shape = |input: &ToolInput| Shape {
            is_positive: input.minimum.as_ref().and_then(Number::as_f64).is_some_and(|minimum| minimum >= 0.0),
            texts: input.values.as_ref().map(|values| Arc::new(values.iter().cloned().collect())),
            ..Shape::of_kinds(Kinds::declared(input.kind))
        };
        let mut known: BTreeMap<String, Shape> = BTreeMap::new();
        let mut required = BTreeSet::new();
        for input in inputs {
            let of_input = shape(input);
            required.extend((input.required == Some(true)).then(|| input.name.clone()));
            // If several declarations have the input, a value must be as each of them says.
            known
                .entry(input.name.clone())
                .and_modify(|shape| {
                    shape.kinds = shape.kinds & of_input.kinds;
                    shape.is_positive |= of_input.is_positive;
                    shape.texts = shape.texts.take().or_else(|| of_input.texts.clone());
                })
                .or_insert(of_input);
        }
        let are_all = !known.is_empty();
        Self { fields: Fields { known: Arc::new(known), are_all }, required }
    }

    /// Returns the arguments of a tool whose server lists `schema`. The types are those of the schema that the Skill
    /// declares too. An input that only the Skill declares counts if the schema accepts arguments that it does not list on purpose.
    pub fn listed<'a>(inputs: impl IntoIterator<Item = &'a ToolInput>, schema: &Value) -> Self {
        let declared = Self::declared(inputs);
        let properties = schema.get("properties").and_then(Value::as_object);
        let has_other_sources = has_other_properties(schema);
        let mut reader = Reader::new(schema);
        // A schema that is only a reference has the properties of its target.
        let of_target =
            if properties.is_none() && has_other_sources { reader.read(schema).fields } else { Fields::default() };
        let mut listed = Arc::unwrap_or_clone(of_target.known);
        listed.extend(
            properties.into_iter().flat_map(Map::iter).map(|(name, property)| (name.clone(), reader.read(property))),
        );
        let listed: BTreeMap<String, Shape> =
            listed.into_iter().map(|(name, shape)| (name.clone(), declared.listed_argument(&name, shape))).collect();
        let may_have_more = has_other_sources && !of_target.are_all;
        let accepts_others = match schema.get("additionalProperties") {
            Some(Value::Bool(accepts)) => *accepts,
            Some(_) => true,
            None => listed.is_empty() && !of_target.are_all,
        };
        let is_known = properties.is_some() || declared.is_complete() || !accepts_others;
        let mut known =
            if accepts_others || may_have_more { Arc::unwrap_or_clone(declared.fields.known) } else { BTreeMap::new() };
        known.extend(listed);
        // A part that is not read, such as one of two in `allOf`, still names its properties.
        for name in property_names(schema).into_iter().filter(|_| may_have_more) {
            known.entry(name.to_owned()).or_insert_with(|| Shape::of_kinds(Kinds::ANY));
        }
        let mut required = declared.required;
        let listed = required_fields(schema).into_iter().filter(|name| !may_be_null(schema, name));
        required.extend(listed.map(str::to_owned));
        Self { fields: Fields { known: Arc::new(known), are_all: is_known && !may_have_more }, required }
    }

    /// Returns a listed argument with what the Skill declares about it. `self` has the declared inputs.
    fn listed_argument(&self, name: &str, listed: Shape) -> Shape {
        let common = self.kinds(name).unwrap_or(listed.kinds) & listed.kinds;
        // Without a common type, every call with the argument is denied, which is a finding of its own.
        let kinds = if common.without(Kinds::NULL).is_none() { listed.kinds } else { common };
        let declared = self.fields.known.get(name).and_then(|argument| argument.texts.clone());
        Shape {
            kinds,
            is_positive: listed.is_positive || self.is_positive(name),
            texts: match (declared, listed.texts) {
                (Some(declared), Some(listed)) => Some(Arc::new(&*declared & &*listed)),
                (declared, listed) => declared.or(listed),
            },
            ..listed
        }
    }

    /// Returns whether a call may have an argument of this name.
    pub fn may_have(&self, name: &str) -> bool {
        !self.is_complete() || self.names_argument(name)
    }

    /// Returns whether the schema or the Skill names an argument.
    pub fn names_argument(&self, name: &str) -> bool {
        self.fields.known.contains_key(name)
    }

    /// Returns whether every call has an argument, with a value that is not null.
    pub fn requires(&self, name: &str) -> bool {
        self.required.contains(name)
    }

    /// Returns whether all arguments are known.
    pub fn is_complete(&self) -> bool {
        self.fields.are_all
    }

    /// Returns the names of the known arguments.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.known.keys().map(String::as_str)
    }

    /// Returns the types of a known argument.
    pub(crate) fn kinds(&self, name: &str) -> Option<Kinds> {
        self.fields.known.get(name).map(|argument| argument.kinds)
    }

    /// Returns whether the schema or the Skill refuses negative values of an argument.
    pub fn is_positive(&self, name: &str) -> bool {
        self.fields.known.get(name).is_some_and(|argument| argument.is_positive)
    }

    /// Returns whether no text is a value of an argument, because the schema and the Skill list different ones.
    pub(crate) fn has_no_value(&self, name: &str) -> bool {
        let texts = self.fields.known.get(name).and_then(|argument| argument.texts.as_ref());
        texts.is_some_and(|texts| texts.is_empty())
    }

    /// Returns the arguments as the fields of an object.
    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }
}

/// Returns whether a schema may accept null for a property. Only a `type` is read.
fn may_be_null(schema: &Value, name: &str) -> bool {
    match schema.get("properties").and_then(|properties| properties.get(name)?.get("type")) {
        Some(Value::String(kind)) => kind == "null",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        _ => true,
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
    #[case::of_a_reference(json!({"$ref": "#/$defs/a"}), "amount", Some("a number"), false)]
    #[case::of_a_reference_with_a_type(json!({"type": "object", "$ref": "#/$defs/a"}), "amount", Some("a number"), false)]
    #[case::of_parts(json!({"allOf": [{"properties": {"cc": {}}}, {"$ref": "#/$defs/a"}]}), "cc", Some("anything"), true)]
    #[case::of_nothing(json!({"type": "object"}), "amount", None, true)]
    fn a_schema_without_properties_names_those_of_its_target(
        #[case] mut schema: Value,
        #[case] name: &str,
        #[case] kinds: Option<&str>,
        #[case] may_have_more: bool,
    ) {
        schema["$defs"] = json!({"a": {"type": "object", "properties": {"amount": {"type": "number"}}}});
        let signature = Signature::listed(&[], &schema);
        assert_eq!(signature.kinds(name).map(|kinds| kinds.to_string()).as_deref(), kinds);
        assert_eq!((signature.names_argument(name), signature.may_have("amuont")), (kinds.is_some(), may_have_more));
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
