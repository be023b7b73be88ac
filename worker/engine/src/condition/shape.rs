//! What a JSON Schema says about a value: its types, its fields and its items.

use super::kinds::Kinds;
use crate::schema::OTHER_SOURCES;
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most levels of a schema that are read. What is deeper may be anything.
const MAX_LEVELS: usize = 12;

/// The most parts of the schemas of one tool that are read. References can repeat parts without end.
const MAX_PARTS: usize = 4096;

/// What is known about a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// The types that it may have.
    pub(crate) kinds: Kinds,
    /// The fields, if it is an object.
    pub(crate) fields: Fields,
    /// The items, if it is a list. `None` if they may be anything.
    pub(crate) items: Option<Arc<Shape>>,
    /// Whether it is no negative number.
    pub(crate) is_positive: bool,
    /// The only texts that it may be, if the schema lists its values.
    pub(crate) texts: Option<Arc<BTreeSet<String>>>,
    /// The only numbers that it may be, if the schema lists its values.
    pub(crate) numbers: Option<Arc<Vec<Number>>>,
}

/// The fields of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fields {
    pub(crate) known: Arc<BTreeMap<String, Shape>>,
    /// Whether the object has no other fields.
    pub(crate) are_all: bool,
}

impl Shape {
    /// Returns a value of which only the types are known.
    pub(crate) fn of_kinds(kinds: Kinds) -> Self {
        Self { kinds, fields: Fields::default(), items: None, is_positive: false, texts: None, numbers: None }
    }

    /// Returns an object with fields.
    pub(crate) fn object(fields: Fields) -> Self {
        Self { fields, ..Self::of_kinds(Kinds::MAP) }
    }

    /// Returns a value that is one or the other.
    pub(crate) fn or(self, other: Self) -> Self {
        let kinds = self.kinds | other.kinds;
        let is_positive = (self.is_positive || !self.kinds.may_be(Kinds::NUMBER))
            && (other.is_positive || !other.kinds.may_be(Kinds::NUMBER));
        let fields = match (self.kinds.may_be(Kinds::MAP), other.kinds.may_be(Kinds::MAP)) {
            (true, true) => self.fields.or(other.fields),
            (true, false) => self.fields,
            (false, _) => other.fields,
        };
        let items = match (self.kinds.may_be(Kinds::LIST), other.kinds.may_be(Kinds::LIST)) {
            (true, true) => {
                let both = self.items.zip(other.items);
                both.map(|(one, other)| Arc::new(Arc::unwrap_or_clone(one).or(Arc::unwrap_or_clone(other))))
            }
            (true, false) => self.items,
            (false, _) => other.items,
        };
        let texts = match (self.kinds.may_be(Kinds::TEXT), other.kinds.may_be(Kinds::TEXT)) {
            (true, true) => self.texts.zip(other.texts).map(|(one, other)| Arc::new(&*one | &*other)),
            (true, false) => self.texts,
            (false, _) => other.texts,
        };
        let numbers = match (self.kinds.may_be(Kinds::NUMBER), other.kinds.may_be(Kinds::NUMBER)) {
            (true, true) => self.numbers.zip(other.numbers).map(|(one, other)| Arc::new([&**one, &**other].concat())),
            (true, false) => self.numbers,
            (false, _) => other.numbers,
        };
        Self { kinds, fields, items, is_positive, texts, numbers }
    }
}

impl Fields {
    /// Returns what is known about a part of the object, such as `payment.amount` or `lines[].price`. `None` if there is no such part.
    pub(crate) fn part(&self, path: &str) -> Option<Shape> {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let mut shape = match self.known.get(first.trim_end_matches("[]")) {
            Some(shape) => shape.clone(),
            None if self.are_all => return None,
            None => Shape::of_kinds(Kinds::ANY),
        };
        for _ in first.matches("[]") {
            shape = shape.items.map_or_else(|| Shape::of_kinds(Kinds::ANY), Arc::unwrap_or_clone);
        }
        match rest {
            Some(rest) => shape.fields.part(rest),
            None => Some(shape),
        }
    }

    /// Returns the fields that an object of either kind may have.
    pub(crate) fn or(self, other: Self) -> Self {
        let mut known = Arc::unwrap_or_clone(self.known);
        for (name, shape) in Arc::unwrap_or_clone(other.known) {
            let shape = match known.remove(&name) {
                Some(first) => first.or(shape),
                None => shape,
            };
            known.insert(name, shape);
        }
        Self { known: Arc::new(known), are_all: self.are_all && other.are_all }
    }
}

/// Reads the schemas of one tool.
pub(super) struct Reader<'a> {
    /// The document to which references are relative.
    document: &'a Value,
    parts_left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self { document, parts_left: MAX_PARTS }
    }

    /// Reads the schema of a value. The value may also be null: authors compare with null.
    pub(super) fn read(&mut self, schema: &Value) -> Shape {
        self.read_part(schema, MAX_LEVELS)
    }

    fn read_part(&mut self, schema: &Value, levels_left: usize) -> Shape {
        let (Some(left), Some(levels_left)) = (self.parts_left.checked_sub(1), levels_left.checked_sub(1)) else {
            return Shape::of_kinds(Kinds::ANY);
        };
        self.parts_left = left;
        let keywords = OTHER_SOURCES.iter().filter(|keyword| schema.get(keyword).is_some()).count();
        let is_only_source = keywords == 1 && schema.get("properties").is_none();
        if is_only_source && let Some(part) = self.read_source(schema, levels_left) {
            return part;
        }
        let kinds = Kinds::of_schema(schema);
        let fields = if kinds.may_be(Kinds::MAP) {
            self.read_fields(schema, levels_left, keywords == 0)
        } else {
            Fields::default()
        };
        let items = schema.get("items").filter(|items| items.is_object() && schema.get("prefixItems").is_none());
        let items =
            items.filter(|_| kinds.may_be(Kinds::LIST)).map(|items| Arc::new(self.read_part(items, levels_left)));
        let bounds = ["minimum", "exclusiveMinimum"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_f64());
        let is_positive = bounds.into_iter().any(|bound| bound >= 0.0);
        let (texts, numbers) = (listed_texts(schema), listed_numbers(schema));
        Shape { kinds, fields, items, is_positive, texts, numbers }
    }

    /// Reads a schema whose only source is a reference, one part, or a choice of parts.
    fn read_source(&mut self, schema: &Value, levels_left: usize) -> Option<Shape> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.document.pointer(reference.strip_prefix('#')?)?;
            return Some(self.read_part(target, levels_left));
        }
        if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            return Some(self.read_part(only, levels_left));
        }
        let parts = ["anyOf", "oneOf"].into_iter().find_map(|keyword| schema.get(keyword)?.as_array())?;
        let shapes: Vec<Shape> = parts.iter().map(|part| self.read_part(part, levels_left)).collect();
        shapes.into_iter().reduce(Shape::or).filter(|_| schema.get("type").is_none())
    }

    fn read_fields(&mut self, schema: &Value, levels_left: usize, has_one_source: bool) -> Fields {
        let properties = schema.get("properties").and_then(Value::as_object);
        let accepts_others = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        let is_described = properties.is_some() || schema.get("additionalProperties").is_some();
        let read = |(name, property): (&String, &Value)| (name.clone(), self.read_part(property, levels_left));
        let known = properties.into_iter().flat_map(Map::iter).map(read).collect();
        Fields { known: Arc::new(known), are_all: is_described && !accepts_others && has_one_source }
    }
}

/// Returns the values that a schema lists, if it lists any.
fn listed_values(schema: &Value) -> Option<&[Value]> {
    let one = schema.get("const").map(std::slice::from_ref);
    one.or_else(|| schema.get("enum").and_then(Value::as_array).map(Vec::as_slice))
}

/// Returns the texts among the values that a schema lists. `None` if it lists no values.
fn listed_texts(schema: &Value) -> Option<Arc<BTreeSet<String>>> {
    Some(Arc::new(listed_values(schema)?.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
}

/// Returns the numbers among the values that a schema lists. `None` if it lists no values.
fn listed_numbers(schema: &Value) -> Option<Arc<Vec<Number>>> {
    Some(Arc::new(listed_values(schema)?.iter().filter_map(Value::as_number).cloned().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    /// Writes what is known, for example `a string`, `{a: a number, ...}` or `[a string]`.
    fn written(shape: &Shape) -> String {
        let list = shape.items.as_ref().map(|items| format!("[{}]", written(items)));
        let mut fields: Vec<String> =
            shape.fields.known.iter().map(|(name, shape)| format!("{name}: {}", written(shape))).collect();
        let is_known = shape.fields.are_all || !fields.is_empty();
        if !shape.fields.are_all {
            fields.push("...".into());
        }
        let object = is_known.then(|| format!("{{{}}}", fields.join(", ")));
        list.or(object).unwrap_or_else(|| shape.kinds.to_string())
    }

    #[rstest]
    #[case::a_list(json!({"type": "array", "items": {"type": "string"}}), "[a string]")]
    #[case::a_list_of_anything(json!({"type": "array"}), "a list")]
    #[case::a_tuple(json!({"type": "array", "prefixItems": [{}], "items": {"type": "string"}}), "a list")]
    #[case::an_object(json!({"type": "object", "properties": {"zip": {"type": "string"}}}), "{zip: a string}")]
    #[case::an_object_of_anything(json!({"type": "object"}), "an object")]
    #[case::an_empty_object(json!({"type": "object", "additionalProperties": false}), "{}")]
    #[case::other_fields(
        json!({"type": "object", "properties": {"zip": {"type": "string"}}, "additionalProperties": true}), "{zip: a string, ...}"
    )]
    #[case::fields_of_a_type(json!({"type": "object", "additionalProperties": {"type": "string"}}), "an object")]
    #[case::conditional_fields(json!({"type": "object", "properties": {"a": {}}, "if": {}, "then": {}}), "{a: anything, ...}")]
    #[case::a_reference(json!({"$ref": "#/$defs/Place"}), "{zip: a string}")]
    #[case::a_reference_in_all_of(json!({"allOf": [{"$ref": "#/$defs/Place"}], "default": null}), "{zip: a string}")]
    #[case::a_reference_with_more(json!({"$ref": "#/$defs/Place", "properties": {"a": {}}}), "{a: anything, ...}")]
    #[case::no_such_reference(json!({"$ref": "#/$defs/None"}), "anything")]
    #[case::optional_of_pydantic(json!({"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}), "{zip: a string}")]
    #[case::one_of_two(
        json!({"oneOf": [{"$ref": "#/$defs/Place"}, {"type": "object", "properties": {"city": {}}, "additionalProperties": false}]}),
        "{city: anything, zip: a string}"
    )]
    #[case::one_of_two_lists(
        json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "number"}}]}),
        "[a number or a string]"
    )]
    #[case::a_tree(json!({"$ref": "#/$defs/Tree"}), "{next: {next: {next: {next: {next: {next: anything}}}}}}")]
    fn the_parts_of_a_value_are_known_as_far_as_the_schema_says(#[case] schema: Value, #[case] expected: &str) {
        let document = json!({"$defs": {
            "Place": {"type": "object", "properties": {"zip": {"type": "string"}}},
            "Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}},
        }});
        assert_eq!(written(&Reader::new(&document).read(&schema)), expected);
    }

    #[test]
    fn a_schema_that_repeats_itself_is_read_within_bounds() {
        let again = json!({"$ref": "#"});
        let several =
            json!({"type": "object", "properties": {"a": again, "b": again, "c": again, "d": again, "e": again}});
        let mut reader = Reader::new(&several);
        reader.read(&several);
        assert_eq!(reader.parts_left, 0);
    }
}
