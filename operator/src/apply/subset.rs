//! Compares wanted fields with a stored object.
//!
//! The API server fills in defaults, drops empty values and rewrites quantities, so equality is too strict. This
//! comparison follows server-side apply: every field that the operator sets must have the value that it sets.

use super::quantity;
use serde_json::Value;

/// Fields whose values are quantities, so `0.5` equals `500m`.
const QUANTITY_FIELDS: [&str; 4] = ["limits", "requests", "sizeLimit", "divisor"];

/// Metadata fields that the API server maintains.
const SERVER_FIELDS: [&str; 3] = ["managedFields", "resourceVersion", "generation"];

/// Returns whether `live` has everything that `wanted` has.
pub fn contains(wanted: &Value, live: &Value) -> bool {
    contains_value(wanted, Some(live), /* in_quantity_field */ false)
}

fn contains_value(wanted: &Value, live: Option<&Value>, in_quantity_field: bool) -> bool {
    let Some(live) = live else { return is_empty(wanted) };
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, wanted)| {
            let in_quantity_field = in_quantity_field || QUANTITY_FIELDS.contains(&key.as_str());
            contains_value(wanted, live.get(key), in_quantity_field)
        }),
        (Value::Array(wanted), Value::Array(live)) => contains_items(wanted, live),
        (Value::String(wanted), Value::String(live)) if in_quantity_field && wanted != live => {
            quantity::parse(wanted).is_some_and(|value| quantity::parse(live) == Some(value))
        }
        (wanted, live) => wanted == live || is_empty(wanted) && is_empty(live),
    }
}

/// Compares lists. The API server treats lists of named items as maps; in every other list, position and length count.
fn contains_items(wanted: &[Value], live: &[Value]) -> bool {
    if !wanted.is_empty() && wanted.iter().all(|item| name(item).is_some()) {
        return wanted.iter().all(|wanted| {
            let counterpart = live.iter().find(|live| name(live) == name(wanted));
            counterpart.is_some_and(|live| contains(wanted, live))
        });
    }
    wanted.len() == live.len() && wanted.iter().zip(live).all(|(wanted, live)| contains(wanted, live))
}

fn name(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

/// Returns whether the API server may omit the value. `false` and `0` are not empty: omitting them can change the
/// meaning.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the object without its status and without the metadata that the API server maintains.
pub fn without_server_fields(mut object: Value) -> Value {
    let Some(fields) = object.as_object_mut() else { return object };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !SERVER_FIELDS.contains(&field.as_str()));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::defaults_filled_in(json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 1, "paused": false}}))]
    #[case::quantity(json!({"limits": {"cpu": "0.5"}}), json!({"limits": {"cpu": "500m"}}))]
    #[case::empty_left_out(json!({"env": [{"name": "A", "value": ""}]}), json!({"env": [{"name": "A"}]}))]
    #[case::more_of_a_named_list(json!([{"name": "a"}]), json!([{"name": "mesh"}, {"name": "a", "x": 1}]))]
    #[case::plain_list(json!({"args": ["a", "b"]}), json!({"args": ["a", "b"]}))]
    fn an_object_with_the_wanted_fields_matches(#[case] wanted: Value, #[case] live: Value) {
        assert!(contains(&wanted, &live));
    }

    #[rstest]
    #[case::changed(json!({"replicas": 1}), json!({"replicas": 2}))]
    #[case::removed(json!({"automountServiceAccountToken": false}), json!({}))]
    #[case::quantity(json!({"limits": {"cpu": "0.5"}}), json!({"limits": {"cpu": "501m"}}))]
    #[case::not_a_quantity(json!({"labels": {"size": "1"}}), json!({"labels": {"size": "1000m"}}))]
    #[case::renamed(json!([{"name": "a"}]), json!([{"name": "b"}]))]
    #[case::argument_added(json!({"args": ["a"]}), json!({"args": ["a", "b"]}))]
    #[case::emptied(json!({"args": ["a"]}), json!({}))]
    fn an_object_without_a_wanted_field_does_not_match(#[case] wanted: Value, #[case] live: Value) {
        assert!(!contains(&wanted, &live));
    }

    #[test]
    fn the_status_and_the_fields_of_the_server_are_ignored() {
        let mut later = json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": 1, "status": {"ready": 1}});
        let now = json!({"metadata": {"name": "a", "resourceVersion": "3"}, "spec": 1});
        assert_eq!(without_server_fields(later.clone()), without_server_fields(now.clone()));
        later["spec"] = json!(2);
        assert_ne!(without_server_fields(later), without_server_fields(now));
    }
}
