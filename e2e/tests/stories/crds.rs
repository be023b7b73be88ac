//! What the API server refuses before anybody of ours sees it, and what it shows.

mod columns;
mod refusals;
mod transitions;

use serde_json::{Value, json};

/// The least that a Skill must say.
fn skill() -> Value {
    json!({"problem": {"statement": "Help customers"}})
}

/// The least that a Job must say.
fn job() -> Value {
    json!({"skill": "cs-tier-1", "goal": "Refund order A-17"})
}

/// The least that a Model must say.
fn model() -> Value {
    json!({"provider": "openai", "model": "scripted", "baseUrl": "http://model:8080/v1"})
}

/// The object with more fields, or other values of its own.
fn but(mut object: Value, more: &Value) -> Value {
    let fields = object.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    object
}
