//! Refuses arguments that no rule can mean. Where a Skill declares the inputs of a tool, its rules name these inputs, so a call must not
//! pass the same value under another name.

use crate::rules::inputs::DeclaredInputs;
use crate::rules::{Objection, Rules};
use crate::schema::has_other_properties;
use crate::tool::CatalogueTool;
use bloomery_crds::nearest::did_you_mean;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::GateReason;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The longest name of an argument in a reason, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Returns the objection to an argument that is a case variant of a declared input, or that neither the Skill nor the server declares.
/// A Skill that declares no inputs of the tool accepts what the schema accepts.
pub(super) fn objection(tool: &CatalogueTool, arguments: &Value, rules: &Rules) -> Option<Objection> {
    let inputs = rules.inputs(tool)?;
    let arguments = arguments.as_object()?;
    let of_arguments = || arguments.keys().find_map(|name| fault(name, inputs, &tool.input_schema));
    let within = || arguments.iter().find_map(|(name, value)| nested_fault(value, property(&tool.input_schema, name)));
    let detail = of_arguments().or_else(within)?;
    Some(Objection::deny(GateReason::Schema, detail))
}

/// Returns the schema of a field of an object.
fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

/// Returns the fault of a field within an argument: it differs only in its case from another field, or from one that the schema lists.
/// The depth of arguments is bounded.
fn nested_fault(value: &Value, schema: Option<&Value>) -> Option<String> {
    match value {
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            items.iter().find_map(|item| nested_fault(item, schema))
        }
        Value::Object(fields) => {
            let listed = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
            let mut names: BTreeMap<String, Vec<&String>> = BTreeMap::new();
            for name in fields.keys().chain(listed.into_iter().flat_map(Map::keys)) {
                names.entry(name.to_lowercase()).or_default().push(name);
            }
            fields.iter().find_map(|(name, value)| {
                let is_listed = listed.is_some_and(|listed| listed.contains_key(name));
                let mut variants = names.get(&name.to_lowercase()).into_iter().flatten();
                if let Some(variant) = variants.find(|other| **other != name).filter(|_| !is_listed) {
                    let (shown, variant) = (bounded(name, MAX_NAME_BYTES), bounded(variant, MAX_NAME_BYTES));
                    return Some(format!("the field {shown:?} differs from {variant:?} only in its case"));
                }
                nested_fault(value, schema.and_then(|schema| property(schema, name)))
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn fault(name: &str, inputs: &DeclaredInputs, schema: &Value) -> Option<String> {
    if inputs.inputs().any(|input| input.name == name) {
        return None;
    }
    let shown = bounded(name, MAX_NAME_BYTES);
    let lower = name.to_lowercase();
    if let Some(input) = inputs.inputs().find(|input| input.name.to_lowercase() == lower) {
        return Some(format!("the argument {shown:?} must be written {:?}", input.name));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_some_and(|properties| properties.contains_key(name)) || has_other_properties(schema) {
        return None;
    }
    let near = did_you_mean(name, inputs.inputs().map(|input| input.name.as_str()));
    Some(format!("neither the Skill nor the server declares the argument {shown:?}.{near}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Comparing each name with each other one would take minutes.
    #[test]
    fn the_names_of_many_fields_are_compared_in_one_pass() {
        let mut fields: Map<String, Value> = (0..50_000).map(|n| (format!("Field{n}"), json!(n))).collect();
        let schema = json!({"properties": fields});
        assert_eq!(nested_fault(&Value::Object(fields.clone()), Some(&schema)), None);
        assert_eq!(nested_fault(&Value::Object(fields.clone()), None), None);
        fields.insert("field7".into(), json!(0));
        let fault = nested_fault(&Value::Object(fields), Some(&schema)).unwrap();
        assert_eq!(fault, "the field \"field7\" differs from \"Field7\" only in its case");
    }
}
