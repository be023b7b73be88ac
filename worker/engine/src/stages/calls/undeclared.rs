//! Refuses arguments that no rule can mean. Where a Skill declares the inputs of a tool, its rules name these inputs, so a call must not
//! pass the same value under another name.

use crate::rules::{Objection, Rules};
use crate::schema::has_other_properties;
use crate::tool::CatalogueTool;
use bloomery_crds::nearest::did_you_mean;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{GateReason, ToolInput};
use serde_json::Value;

/// The longest name of an argument in a reason, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Returns the objection to an argument that is a case variant of a declared input, or that neither the Skill nor the server declares.
/// A Skill that declares no inputs of the tool accepts what the schema accepts.
pub(super) fn objection(tool: &CatalogueTool, arguments: &Value, rules: &Rules) -> Option<Objection> {
    let inputs = rules.inputs(tool);
    if inputs.is_empty() {
        return None;
    }
    let detail = arguments.as_object()?.keys().find_map(|name| fault(name, &inputs, &tool.input_schema))?;
    Some(Objection::deny(GateReason::Schema, detail))
}

fn fault(name: &str, inputs: &[&ToolInput], schema: &Value) -> Option<String> {
    if inputs.iter().any(|input| input.name == name) {
        return None;
    }
    let shown = bounded(name, MAX_NAME_BYTES);
    let lower = name.to_lowercase();
    if let Some(input) = inputs.iter().find(|input| input.name.to_lowercase() == lower) {
        return Some(format!("the argument {shown:?} must be written {:?}", input.name));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_some_and(|properties| properties.contains_key(name)) || has_other_properties(schema) {
        return None;
    }
    let near = did_you_mean(name, inputs.iter().map(|input| input.name.as_str()));
    Some(format!("neither the Skill nor the server declares the argument {shown:?}.{near}"))
}
