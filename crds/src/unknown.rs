//! Finds the fields of a spec that this version does not know. A field that is ignored may be one that forbids a call, so an object
//! with such a field is not used.

use serde::de::DeserializeOwned;
use serde_ignored::Path;
use serde_json::Value;

/// An object, and the first field of its spec that its type does not have.
#[derive(Debug)]
pub struct Read<T> {
    /// The object, without the unknown field.
    pub object: Result<T, serde_json::Error>,
    /// The path of the unknown field. A field that is null counts as absent. In an object that cannot be read, only the fields before
    /// the error are known.
    pub unknown: Option<String>,
}

/// Reads an object that has a `spec`: a custom resource or a revision.
///
/// The types below `spec` must not use `#[serde(flatten)]`, `untagged` or `tag`, because unknown fields in them are not found.
pub fn read<T: DeserializeOwned>(value: &Value) -> Read<T> {
    let mut unknown = None;
    let object = serde_ignored::deserialize(value, |path| {
        if unknown.is_none() {
            unknown = unknown_field(&path, value);
        }
    });
    Read { object, unknown }
}

/// Returns the path of an ignored field, if it is below `spec` and not null.
fn unknown_field(path: &Path<'_>, object: &Value) -> Option<String> {
    let (text, value) = locate(path, object);
    (text.starts_with("spec.") && value != Some(&Value::Null)).then_some(text)
}

/// Returns a path as text, and the value there.
fn locate<'a>(path: &Path<'_>, object: &'a Value) -> (String, Option<&'a Value>) {
    match path {
        Path::Root => (String::new(), Some(object)),
        Path::Seq { parent, index } => {
            let (text, list) = locate(parent, object);
            (format!("{text}[{index}]"), list.and_then(|list| list.get(index)))
        }
        Path::Map { parent, key } => {
            let (text, fields) = locate(parent, object);
            let dot = if text.is_empty() { "" } else { "." };
            (format!("{text}{dot}{key}"), fields.and_then(|fields| fields.get(key)))
        }
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            locate(parent, object)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Digest;
    use crate::v1alpha1::{Approval, Job, Model, Skill, spec_schema_of};
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    };
    use rstest::rstest;
    use serde_json::json;

    fn object(spec: &Value) -> Value {
        json!({ "apiVersion": "bloomery.dev/v1alpha1", "kind": "x", "metadata": { "name": "x" }, "spec": spec, "status": { "new": 1 } })
    }

    fn unknown_in_job(fields: &Value) -> Option<String> {
        let mut spec = json!({ "goal": "x", "skill": "y" });
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let read = read::<Job>(&object(&spec));
        read.object.unwrap();
        read.unknown
    }

    #[rstest]
    #[case::known(json!({ "limits": { "steps": 3 }, "cancel": null, "replies": [] }), None)]
    #[case::at_the_top(json!({ "quorum": 2 }), Some("spec.quorum"))]
    #[case::false_is_a_value(json!({ "mayRefund": false }), Some("spec.mayRefund"))]
    #[case::empty_is_a_value(json!({ "blocked": [] }), Some("spec.blocked"))]
    #[case::null_is_none(json!({ "quorum": null, "limits": { "cost": null } }), None)]
    #[case::after_null(json!({ "a": null, "quorum": 2 }), Some("spec.quorum"))]
    #[case::nested(json!({ "limits": { "cost": 3 } }), Some("spec.limits.cost"))]
    #[case::in_a_list(
        json!({ "replies": [{ "text": "a" }, { "question": "q-2", "text": "b", "by": "c" }] }),
        Some("spec.replies[1].by")
    )]
    fn an_unknown_field_is_found(#[case] fields: Value, #[case] expected: Option<&str>) {
        assert_eq!(unknown_in_job(&fields).as_deref(), expected);
    }

    #[test]
    fn free_objects_and_maps_may_have_any_key() {
        let schema = json!({ "type": "object", "properties": { "status": { "enum": ["done"] } } });
        let container = json!({ "image": "i", "resources": { "limits": { "example.com/gpu": "1" } } });
        let spec = json!({ "problem": { "statement": "x" }, "outputContract": { "schema": schema }, "mcpServer": { "container": container } });
        assert_eq!(read::<Skill>(&object(&spec)).unknown, None);
    }

    /// Returns a value with every field of a schema, and adds the path of each object in it that has a fixed set of fields.
    fn complete(schema: &JSONSchemaProps, path: &str, objects: &mut Vec<String>) -> Value {
        if let Some(properties) = &schema.properties {
            objects.push(path.to_owned());
            let field =
                |(name, schema): (&String, _)| (name.clone(), complete(schema, &format!("{path}/{name}"), objects));
            return Value::Object(properties.iter().map(field).collect());
        }
        let text = |schema: &JSONSchemaProps| match (&schema.enum_, schema.format.as_deref(), &schema.pattern) {
            (Some(values), ..) => values[0].0.clone(),
            (_, Some("date-time"), _) => json!("2026-01-01T00:00:00Z"),
            (.., Some(pattern)) if pattern.contains("sha256") => json!(Digest::of_bytes(b"")),
            (.., Some(pattern)) if pattern.contains("(h|m|s)") => json!("1s"),
            _ => json!("x"),
        };
        match (schema.type_.as_deref(), &schema.items, &schema.additional_properties) {
            (Some("array"), Some(JSONSchemaPropsOrArray::Schema(item)), _) => {
                json!([complete(item, &format!("{path}/0"), objects)])
            }
            (Some("object"), _, Some(JSONSchemaPropsOrBool::Schema(value))) => {
                json!({ "key": complete(value, &format!("{path}/key"), objects) })
            }
            (Some("object"), ..) => json!({ "any": 1 }),
            (Some("boolean"), ..) => json!(true),
            (Some("integer" | "number"), ..) => json!(1),
            _ => text(schema),
        }
    }

    fn unknown_fields_are_found_everywhere<T: DeserializeOwned>(kind: &str) {
        let mut objects = Vec::new();
        let known = object(&complete(&spec_schema_of(kind).unwrap(), "/spec", &mut objects));
        let Read { object, unknown } = read::<T>(&known);
        assert_eq!((object.err().map(|error| error.to_string()), unknown), (None, None), "{kind}: {known:#}");
        for path in objects {
            let mut changed = known.clone();
            changed.pointer_mut(&path).unwrap()["quorum"] = json!(2);
            let found = read::<T>(&changed).unknown.unwrap_or_default().replace("[0]", ".0").replace('.', "/");
            assert_eq!(format!("/{found}"), format!("{path}/quorum"), "{kind}");
        }
    }

    #[test]
    fn an_unknown_field_is_found_in_every_object_of_every_spec() {
        unknown_fields_are_found_everywhere::<Skill>("Skill");
        unknown_fields_are_found_everywhere::<Job>("Job");
        unknown_fields_are_found_everywhere::<Model>("Model");
        unknown_fields_are_found_everywhere::<Approval>("Approval");
    }
}
