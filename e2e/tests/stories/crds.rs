//! The CRDs' own rules: objects that the API server refuses, and the columns that it prints.

mod columns;
mod refusals;
mod transitions;

use serde_json::{Value, json};

/// The smallest valid spec of a Skill.
fn skill() -> Value {
    json!({"problem": {"statement": "Help customers"}})
}

/// The smallest valid spec of a Job.
fn job() -> Value {
    json!({"skill": "cs-tier-1", "goal": "Refund order A-17"})
}

/// The smallest valid spec of a Model.
fn model() -> Value {
    json!({"provider": "openai", "model": "scripted", "baseUrl": "http://model:8080/v1"})
}

/// Returns the object with the fields of `more` added or replaced.
fn with_fields(mut object: Value, more: &Value) -> Value {
    let fields = object.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    object
}
