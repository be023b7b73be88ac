//! The inputs that a Skill declares for a tool, as rules for the arguments of its calls.

use crate::rules::objection::Objection;
use crate::schema::{Error, Schema};
use bloomery_crds::v1alpha1::{GateReason, ToolInput};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::OnceLock;

/// The rules for the arguments of one tool.
#[derive(Debug, Default)]
pub(crate) struct DeclaredInputs(Vec<DeclaredInput>);

struct DeclaredInput {
    input: ToolInput,
    /// The schema of the value, compiled at the first call.
    schema: OnceLock<Schema>,
}

/// Leaves out the compiled schema, which is not part of the conversation's state.
impl fmt::Debug for DeclaredInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeclaredInput").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DeclaredInputs {
    pub(super) fn new<'a>(inputs: impl Iterator<Item = &'a ToolInput>) -> Self {
        let declared = |input: &ToolInput| DeclaredInput { input: input.clone(), schema: OnceLock::new() };
        Self(inputs.map(declared).collect())
    }

    /// Returns the inputs.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &ToolInput> {
        self.0.iter().map(|declared| &declared.input)
    }

    /// Returns whether the Skill declares no input.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the objection to the first argument that breaks a rule.
    pub(super) fn objection(&self, arguments: &Value) -> Option<Objection> {
        let fault = self.0.iter().find_map(|declared| declared.fault(arguments.get(&declared.input.name)))?;
        Some(Objection::deny(GateReason::Schema, fault))
    }
}

impl DeclaredInput {
    /// Returns the rule that a value breaks. Null counts as no value.
    fn fault(&self, value: Option<&Value>) -> Option<String> {
        let ToolInput { name, required, .. } = &self.input;
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return (*required == Some(true))
                .then(|| format!("the Skill requires the input {name:?}, which is missing"));
        };
        let schema = self.schema.get_or_init(|| Schema::compile(&schema_of(&self.input)));
        let error = schema.first_error(value)?;
        Some(format!("the input {name:?} is not as the Skill declares it: {error}"))
    }
}

/// Returns the error of a declared pattern, if it cannot be used.
pub(crate) fn pattern_error(input: &ToolInput) -> Option<Error> {
    input.pattern.as_ref()?;
    Schema::compile(&schema_of(input)).compile_error().cloned()
}

/// Returns the schema of the values of an input. The bounds and the linear time of [`Schema`] apply to them too.
fn schema_of(input: &ToolInput) -> Value {
    let ToolInput { name: _, required: _, description: _, kind, minimum, maximum, values, pattern } = input;
    let mut schema = Map::from_iter([("type".to_owned(), json!(kind))]);
    let mut add = |keyword: &str, value: Option<Value>| schema.extend(value.map(|value| (keyword.to_owned(), value)));
    add("minimum", minimum.clone().map(Value::Number));
    add("maximum", maximum.clone().map(Value::Number));
    add("enum", values.as_ref().map(|values| json!(values)));
    // The pattern is also compiled alone: `a)|(b` is only valid within parentheses, and means something else there.
    add(
        "allOf",
        pattern.as_ref().map(|pattern| json!([{"pattern": format!("^(?:{pattern})$")}, {"pattern": pattern}])),
    );
    Value::Object(schema)
}
