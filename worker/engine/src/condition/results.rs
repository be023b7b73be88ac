//! What is known about the results of a tool, from the schema that its server lists for structured output.

use super::kinds::Kinds;
use super::shape::{Fields, Reader, Shape};
use crate::schema::has_other_properties;
use bloomery_crds::v1alpha1::OutputField;
use serde_json::Value;
use std::sync::Arc;

/// Returns what a condition can read as the result of a tool whose server lists `schema`. `declared` are the fields that the Skill expects.
/// `names_all` says whether the schema and the Skill name all fields although the schema accepts others, as for arguments.
///
/// The result itself may be anything: servers add texts to structured content. If the structured content has only one field, the result
/// may be the content of this field (`docs/explanation/mcp.md`, section "Results for the model").
pub(crate) fn of_output(schema: &Value, declared: &[OutputField], names_all: bool) -> Shape {
    let mut structured = Reader::new(schema).read(schema);
    let Fields { known, are_all } = &structured.fields;
    if names_all && !are_all && !known.is_empty() && !has_other_properties(schema) {
        let of_skill = declared.iter().map(|field| (field.name.clone(), Shape::of_kinds(Kinds::declared(field.kind))));
        let known = of_skill.chain(known.iter().map(|(name, shape)| (name.clone(), shape.clone())));
        structured.fields = Fields { known: Arc::new(known.collect()), are_all: true };
    }
    let mut fields = structured.fields.known.values();
    let only = fields.next().filter(|_| fields.next().is_none()).cloned();
    let Some(content) = only else { return anything_like(structured) };
    let item = content.items.as_deref().cloned();
    if is_text_or_unknown(&content) || item.as_ref().is_some_and(is_text_or_unknown) {
        return Shape::of_kinds(Kinds::ANY);
    }
    // Each item of a list may be a text of its own, so a list with one item is that item.
    let with_content = structured.or(content);
    anything_like(match item {
        Some(item) => with_content.or(item),
        None => with_content,
    })
}

/// Returns whether nothing is known about the content of the only field: it may be a text, which may be any JSON, or a list of anything.
fn is_text_or_unknown(content: &Shape) -> bool {
    content.kinds.may_be(Kinds::TEXT) || content.kinds.may_be(Kinds::LIST) && content.items.is_none()
}

/// Returns a value of any type that has the fields and the items of a shape if it is an object or a list.
fn anything_like(Shape { fields, items, .. }: Shape) -> Shape {
    Shape { fields, items, ..Shape::of_kinds(Kinds::ANY) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    /// Returns the types of a field of a result. `None` if no result has the field.
    fn kinds(schema: &Value, names_all: bool, path: &str) -> Option<String> {
        let declared: [OutputField; 1] = [serde_json::from_value(json!({"name": "note", "type": "string"})).unwrap()];
        let shape = of_output(schema, &declared, names_all);
        assert_eq!(shape.kinds, Kinds::ANY);
        shape.fields.part(path).map(|part| part.kinds.to_string())
    }

    fn rent() -> Value {
        json!({"type": "object", "properties": {
            "amount": {"type": "number"}, "tenant": {"type": "object", "properties": {"name": {"type": "string"}}},
        }})
    }

    fn with_others() -> Value {
        json!({"type": "object", "properties": {"amount": {"type": "number"}, "paid": {}}, "additionalProperties": true})
    }

    fn wrapped(content: &Value) -> Value {
        json!({"type": "object", "properties": {"result": content}, "required": ["result"]})
    }

    #[rstest]
    #[case::a_field(rent(), "amount", Some("a number"))]
    #[case::a_field_of_a_field(rent(), "tenant.name", Some("a string"))]
    #[case::no_field(rent(), "amuont", None)]
    #[case::no_field_of_a_field(rent(), "tenant.nmae", None)]
    #[case::no_schema_of_fields(json!({"type": "object"}), "amuont", Some("anything"))]
    #[case::only_other_fields(json!({"type": "object", "additionalProperties": true}), "amuont", Some("anything"))]
    #[case::a_schema_in_parts(json!({"allOf": [rent(), rent()]}), "amuont", Some("anything"))]
    #[case::a_listed_field(with_others(), "amount", Some("a number"))]
    #[case::a_declared_field(with_others(), "note", Some("a string"))]
    #[case::a_declared_field_that_the_schema_refuses(rent(), "note", None)]
    #[case::neither_listed_nor_declared(with_others(), "amuont", None)]
    #[case::the_field_around_the_content(wrapped(&rent()), "result.amount", Some("a number"))]
    #[case::a_field_of_the_content(wrapped(&rent()), "amount", Some("a number"))]
    #[case::no_field_of_the_content(wrapped(&rent()), "amuont", None)]
    #[case::a_field_of_an_item(wrapped(&json!({"type": "array", "items": rent()})), "amount", Some("a number"))]
    #[case::no_field_of_an_item(wrapped(&json!({"type": "array", "items": rent()})), "amuont", None)]
    #[case::a_text_may_be_json(wrapped(&json!({"type": "string"})), "amuont", Some("anything"))]
    #[case::texts_may_be_json(wrapped(&json!({"type": "array", "items": {"type": "string"}})), "amuont", Some("anything"))]
    #[case::a_list_of_anything(wrapped(&json!({"type": "array"})), "amuont", Some("anything"))]
    #[case::a_list_of_numbers(wrapped(&json!({"type": "array", "items": {"type": "number"}})), "amuont", None)]
    fn the_fields_of_a_result_are_known_as_far_as_the_schema_says(
        #[case] schema: Value,
        #[case] path: &str,
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(kinds(&schema, true, path).as_deref(), expected);
    }

    #[test]
    fn a_schema_that_accepts_other_fields_may_be_taken_at_its_word() {
        assert_eq!(kinds(&with_others(), false, "amuont").as_deref(), Some("anything"));
        assert_eq!(kinds(&rent(), false, "amuont"), None);
    }

    #[test]
    fn the_items_of_a_wrapped_list_are_known() {
        let items = of_output(&wrapped(&json!({"type": "array", "items": rent()})), &[], true).items.unwrap();
        assert_eq!(items.fields.part("amuont"), None);
    }
}
