//! Hostile schemas: they try to exhaust the worker, or to evade the count of their parts.

use super::Schema;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

/// Returns a small, shallow schema with 2^40 parts when its references are followed: each definition refers to the next one
/// twice.
///
/// `names` is the keyword that contains the definitions. `definition` builds the n-th definition from its content, and `to`
/// builds a reference to the n-th definition.
fn doubling(names: &str, definition: impl Fn(usize, Value) -> Value, to: impl Fn(usize) -> Value) -> Value {
    let part = |n: usize| definition(n, json!({"allOf": [to(n + 1), to(n + 1)]}));
    let mut definitions: Map<String, Value> = (0..40).map(|n| (format!("a{n}"), part(n))).collect();
    definitions.insert("a40".to_owned(), definition(40, json!({"type": "object"})));
    let mut schema = json!({"allOf": [to(0)]});
    schema[names] = Value::Object(definitions);
    schema
}

fn with(mut schema: Value, name: &str, value: Value) -> Value {
    schema[name] = value;
    schema
}

/// Leaves a definition without an anchor or id.
fn plain(_: usize, schema: Value) -> Value {
    schema
}

/// Compiling one of these schemas would never end.
#[rstest]
#[case::paths(doubling("$defs", plain, |n| json!({"$ref": format!("#/$defs/a{n}")})))]
#[case::anchors(doubling("$defs", |n, schema| with(schema, "$anchor", json!(format!("a{n}"))), |n| json!({"$ref": format!("#a{n}")})))]
#[case::dynamic_anchors(doubling("$defs", |n, schema| with(schema, "$dynamicAnchor", json!(format!("a{n}"))), |n| json!({"$dynamicRef": format!("#a{n}")})))]
#[case::dynamic_paths(doubling("$defs", plain, |n| json!({"$dynamicRef": format!("#/$defs/a{n}")})))]
#[case::escaped_paths(doubling("$defs", plain, |n| json!({"$ref": format!("#/%24defs/a{n}")})))]
#[case::ids(doubling("$defs", |n, schema| with(schema, "$id", json!(format!("https://x.example/a{n}"))), |n| json!({"$ref": format!("https://x.example/a{n}")})))]
#[case::ids_of_draft_4(with(
    doubling("definitions", |n, schema| with(schema, "id", json!(format!("#a{n}"))), |n| json!({"$ref": format!("#a{n}")})),
    "$schema",
    json!("http://json-schema.org/draft-04/schema#"),
))]
#[case::a_property_that_is_called_definitions({
    let bomb = doubling("$defs", plain, |n| json!({"$ref": format!("#/$defs/a{n}")}));
    json!({"$defs": bomb["$defs"], "properties": {"definitions": {"allOf": bomb["allOf"]}}})
})]
fn references_that_double_are_refused(#[case] schema: Value) {
    let schema = Schema::compile(&schema);
    assert!(schema.compile_error().is_some());
    assert!(schema.first_error(&json!({"definitions": {}})).is_some());
}

#[rstest]
#[case::to_the_root(json!({"properties": {"next": {"$ref": "#"}}}))]
#[case::each_other(json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}))]
#[case::recursive(json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "properties": {"next": {"$recursiveRef": "#"}}}))]
#[case::a_long_chain({
    let chain: Map<String, Value> = (0..100).map(|n| (format!("a{n}"), json!({"$ref": format!("#/$defs/a{}", n + 1)}))).collect();
    with(json!({"$ref": "#/$defs/a0"}), "$defs", Value::Object(chain))
})]
fn endless_references_are_refused(#[case] schema: Value) {
    assert!(Schema::compile(&schema).compile_error().is_some());
}

/// With another base, the validator would follow the reference to a part that was not counted.
#[test]
fn a_part_with_its_own_base_is_refused() {
    let schema = json!({
        "$defs": {"a": {"type": "string"}},
        "properties": {"x": {"$id": "https://x.example/", "$defs": {"a": true}, "properties": {"y": {"$ref": "#/$defs/a"}}}},
    });
    assert!(Schema::compile(&schema).compile_error().unwrap().to_string().contains("only the root may have"));
}

#[test]
fn the_usual_forms_of_references_are_followed() {
    for (names, root) in
        [("$defs", json!({})), ("definitions", json!({"$schema": "http://json-schema.org/draft-07/schema#"}))]
    {
        let mut schema =
            with(root, names, json!({"money": {"type": "number"}, "a/b": {"$ref": format!("#/{names}/money")}}));
        schema["$id"] = json!("https://example.com/order");
        schema["properties"] = json!({
            "amount": {"$ref": format!("#/{names}/money")}, "tax": {"$ref": "#/properties/amount"},
            "definitions": {"$ref": format!("#/{names}/a~1b")}, "$ref": {"type": "number"}, "id": {"type": "number"},
        });
        let schema = Schema::compile(&schema);
        assert_eq!(schema.compile_error(), None);
        for name in ["amount", "tax", "definitions", "$ref", "id"] {
            assert_eq!(schema.first_error(&json!({ name: 1 })), None, "{name}");
            assert!(schema.first_error(&json!({ name: "1" })).is_some(), "{name}");
        }
    }
}

/// 64 KiB of patterns, each of which takes about ten megabytes when it is compiled.
#[test]
fn patterns_that_compile_to_much_memory_are_refused() {
    let pattern = |n: usize| (format!("f{n}"), json!({"pattern": format!("^(\\p{{L}}{{99}}){{9}}{n}$")}));
    let properties: Map<String, Value> = (0..1_000).map(pattern).collect();
    let schema = Schema::compile(&json!({ "properties": properties }));
    assert!(schema.first_error(&json!({"f0": "x"})).is_some());
    let unusable = schema.compile_error().unwrap().to_string();
    assert!(unusable.len() <= 1024, "{unusable}");
}

#[test]
fn hundreds_of_plain_patterns_are_within_the_bounds() {
    let pattern = |n: usize| (format!("f{n}"), json!({"type": "string", "pattern": format!("^A{n}-[0-9]{{1,9}}$")}));
    let properties: Map<String, Value> = (0..500).map(pattern).collect();
    let schema = Schema::compile(&json!({ "properties": properties }));
    assert_eq!(schema.first_error(&json!({"f7": "A7-17"})), None);
    assert!(schema.first_error(&json!({"f7": "A8-17"})).is_some());
}

#[test]
fn a_text_on_which_backtracking_would_never_end_is_checked() {
    let schema = Schema::compile(&json!({"properties": {"x": {"pattern": "^(a+)+$"}}}));
    assert!(schema.first_error(&json!({"x": format!("{}b", "a".repeat(50_000))})).is_some());
}

#[test]
fn the_error_of_an_unusable_schema_is_brief() {
    let unusable = Schema::compile(&json!({"type": "x".repeat(60_000)}));
    assert!(unusable.first_error(&json!({})).unwrap().len() <= 1024);
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![
            json!({"type": "string"}),
            json!({"$ref": "#"}),
            json!({"$ref": "#/$defs/a"}),
            json!({"$ref": "#a"}),
            json!({"$ref": 7}),
            json!({"pattern": "(a+)+"}),
            json!({"pattern": "("}),
            json!({"enum": []}),
            json!({"minimum": 1e308}),
            json!({"type": "x"}),
            json!({"$dynamicRef": "#a"}),
            json!({"$id": "b"}),
        ]),
    ];
    let keyword = prop::sample::select(vec![
        "properties",
        "items",
        "allOf",
        "anyOf",
        "not",
        "$defs",
        "definitions",
        "patternProperties",
        "if",
        "$ref",
        "a",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "contains",
        "prefixItems",
        "dependentSchemas",
    ]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keyword.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_panics_and_an_unusable_schema_accepts_no_value(schema in schema(), value in schema()) {
        let compiled = Schema::compile(&schema);
        let error = compiled.first_error(&value);
        prop_assert!(compiled.compile_error().is_none() || error.is_some());
        prop_assert!(error.is_none_or(|error| error.len() <= 1024));
    }
}
