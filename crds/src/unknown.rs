//! Finds the fields of a spec that this version does not know. A field that is ignored may be one that forbids a call, so an object
//! with such a field is not used.

use crate::v1alpha1::spec_schema_of;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// Returns the path of the first field of a `spec` that the CRD of this version does not have. The API server would remove such a
/// field if this version's CRD were installed. Returns `None` for a kind that is not one of Bloomery's.
pub fn unknown_field(kind: &str, spec: &Value) -> Option<String> {
    find("spec", spec_schema_of(kind)?, spec)
}

fn find(path: &str, schema: &JSONSchemaProps, value: &Value) -> Option<String> {
    match value {
        Value::Object(_) if schema.x_kubernetes_preserve_unknown_fields == Some(true) => None,
        Value::Object(fields) => fields.iter().filter(|(_, field)| !field.is_null()).find_map(|(name, field)| {
            let path = format!("{path}.{name}");
            let property = schema.properties.as_ref().and_then(|properties| properties.get(name));
            match (property, &schema.additional_properties) {
                (Some(property), _) => find(&path, property, field),
                (None, Some(JSONSchemaPropsOrBool::Schema(values))) => find(&path, values, field),
                (None, Some(JSONSchemaPropsOrBool::Bool(true))) => None,
                (None, Some(JSONSchemaPropsOrBool::Bool(false)) | None) => Some(path),
            }
        }),
        Value::Array(items) => {
            let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items else { return None };
            items.iter().enumerate().find_map(|(nth, item)| find(&format!("{path}[{nth}]"), schema, item))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::known(json!({ "goal": "x", "skill": "y", "limits": { "steps": 3 }, "cancel": null }), None)]
    #[case::at_the_top(json!({ "goal": "x", "quorum": 2 }), Some("spec.quorum"))]
    #[case::false_is_a_value(json!({ "mayRefund": false }), Some("spec.mayRefund"))]
    #[case::nested(json!({ "limits": { "cost": 3 } }), Some("spec.limits.cost"))]
    #[case::in_a_list(json!({ "replies": [{ "text": "a" }, { "text": "b", "by": "c" }] }), Some("spec.replies[1].by"))]
    fn an_unknown_field_is_found(#[case] spec: Value, #[case] expected: Option<&str>) {
        assert_eq!(unknown_field("Job", &spec).as_deref(), expected);
    }

    #[test]
    fn free_objects_and_maps_may_have_any_key() {
        let schema = json!({ "type": "object", "properties": { "status": { "enum": ["done"] } } });
        let container = json!({ "image": "i", "resources": { "limits": { "example.com/gpu": "1" } } });
        let spec = json!({ "outputContract": { "schema": schema }, "mcpServer": { "container": container } });
        assert_eq!(unknown_field("Skill", &spec), None);
        assert_eq!(unknown_field("ConfigMap", &json!({ "any": 1 })), None);
    }
}
