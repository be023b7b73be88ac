//! Detect intent (seed 002, section 2): one question before everything else. What cannot be read is asked once
//! more with the error; nothing is guessed.

use crate::ask::{DATA, Form, Prompt, exact_object, object};
use bloomery_crds::canonical;
use bloomery_crds::nearest::nearest;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{DetectedIntent, Entity, Intent, Intents, SkillSpec, ValueType};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The longest text that an entity may have, in bytes: a name or a number of something, not a document.
const MAX_ENTITY: usize = 1024;

/// The question which of the Skill's intents is meant, of what [`wanted`](crate::ask::wanted) says.
pub fn prompt(skill: &SkillSpec, wanted: &str) -> Prompt {
    let supported = skill.intents.as_ref().map_or(&[][..], |intents| &intents.supported);
    let intents: Vec<String> = supported.iter().map(described).collect();
    let system = format!(
        "You find out what a person wants of an agent. The agent's purpose: {}\n\n# Intents\n{}\n\n{ANSWER}\n\n{DATA}",
        skill.problem.statement.trim(),
        intents.join("\n"),
    );
    let user = format!("Which intent is this?\n\n{wanted}");
    Prompt { system, user, form: Some(form(supported)) }
}

/// An entity that is not of the intent, or that the goal does not name, is null.
fn form(supported: &[Intent]) -> Form {
    let mut types: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for entity in supported.iter().flat_map(|intent| &intent.entities) {
        types.entry(&entity.name).or_default().insert(entity.kind.to_string());
    }
    let nullable =
        |types: BTreeSet<String>| json!({"type": types.into_iter().chain(["null".to_owned()]).collect::<Vec<_>>()});
    let entities = exact_object(types.into_iter().map(|(name, types)| (name, nullable(types))));
    let ids: Vec<Option<&str>> = supported.iter().map(|intent| Some(intent.id.as_str())).chain([None]).collect();
    Form::new("intent", [("intent", json!({"type": ["string", "null"], "enum": ids})), ("entities", entities)])
}

const ANSWER: &str = "# Answer\n\
    Answer with one JSON object and nothing else:\n\
    {\"intent\": \"<id of an intent>\", \"entities\": {\"<name>\": <value>}}\n\
    - If the goal is none of these intents: {\"intent\": null}. Do not stretch one to fit.\n\
    - Name only entities of that intent, each as the goal gives it and of its type. Leave out what the goal does not \
    say: never make one up.";

fn described(intent: &Intent) -> String {
    let mut lines = vec![match &intent.description {
        Some(description) => format!("- {:?}: {}", intent.id, description.trim()),
        None => format!("- {:?}", intent.id),
    }];
    if !intent.examples.is_empty() {
        let examples: Vec<String> = intent.examples.iter().map(|example| format!("{:?}", example.trim())).collect();
        lines.push(format!("  Examples: {}", examples.join(", ")));
    }
    if !intent.entities.is_empty() {
        let entities: Vec<String> =
            intent.entities.iter().map(|entity| format!("{:?} ({})", entity.name, entity.kind)).collect();
        lines.push(format!("  Entities: {}", entities.join(", ")));
    }
    lines.join("\n")
}

/// Reads the answer of the model.
///
/// An entity that is null or blank is one that the goal does not name.
///
/// # Errors
/// A sentence for the one retry: no JSON object, a field or an intent that nobody knows, an entity that the intent
/// does not have or of another type.
pub fn read(answer: &str, intents: &Intents) -> Result<DetectedIntent, String> {
    let mut fields = object(answer)?;
    let id = fields.remove("intent").ok_or("the field \"intent\" is missing")?;
    let entities = match fields.remove("entities") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(entities)) => entities,
        Some(_) => return Err("the field \"entities\" is not an object".to_owned()),
    };
    if let Some(name) = fields.keys().next() {
        return Err(format!("the field {:?} is not asked for", bounded(name, 64)));
    }
    let named_none = entities.values().all(Value::is_null);
    match id {
        Value::String(id) => {
            let intent = known(&id, intents)?;
            Ok(DetectedIntent { id: Some(id), entities: checked(intent, entities)?, out_of_domain: false })
        }
        Value::Null if named_none => Ok(DetectedIntent { out_of_domain: true, ..DetectedIntent::default() }),
        Value::Null => Err("without an intent there are no entities".to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err("the field \"intent\" is neither the id of an intent nor null".to_owned())
        }
    }
}

/// The entities that the intent requires and the goal does not name.
pub fn missing(intents: &Intents, detected: &DetectedIntent) -> Vec<String> {
    let required = entities(intents, detected).filter(|entity| entity.required == Some(true));
    required.map(|entity| entity.name.clone()).filter(|name| !detected.entities.contains_key(name)).collect()
}

/// What a person is asked about a missing entity, and what there is to choose from.
pub fn question(intents: &Intents, detected: &DetectedIntent, name: &str) -> (String, Vec<String>) {
    let kind = entities(intents, detected).find(|entity| entity.name == name).map(|entity| entity.kind);
    let choices = if kind == Some(ValueType::Boolean) { ["true", "false"].map(str::to_owned).to_vec() } else { vec![] };
    let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
    (format!("What is {name}{kind}? The Skill has to know it, and the goal does not say it."), choices)
}

/// Reads what a person says of a missing entity.
///
/// # Errors
/// A sentence for the person: it is empty, or not of the entity's type.
pub fn given(skill: &SkillSpec, detected: Option<&DetectedIntent>, name: &str, text: &str) -> Result<Value, String> {
    let intents = skill.intents.as_ref().zip(detected);
    let entity = intents.and_then(|(intents, detected)| entities(intents, detected).find(|entity| entity.name == name));
    let entity = entity.ok_or_else(|| format!("the Skill has no entity {:?}", bounded(name, 64)))?;
    let text = text.trim();
    let value = match entity.kind {
        ValueType::String => Value::String(text.to_owned()),
        ValueType::Number | ValueType::Integer | ValueType::Boolean | ValueType::Array | ValueType::Object => {
            canonical::parse(text).map_err(|_| format!("{:?} is not of the type {}", bounded(text, 64), entity.kind))?
        }
    };
    typed(entity, value)?.ok_or_else(|| "the answer is empty".to_owned())
}

fn entities<'a>(intents: &'a Intents, detected: &DetectedIntent) -> impl Iterator<Item = &'a Entity> {
    let intent = detected.id.as_ref().and_then(|id| intents.supported.iter().find(|intent| intent.id == *id));
    intent.into_iter().flat_map(|intent| &intent.entities)
}

fn known<'a>(id: &str, intents: &'a Intents) -> Result<&'a Intent, String> {
    let ids = || intents.supported.iter().map(|intent| intent.id.as_str());
    intents.supported.iter().find(|intent| intent.id == id).ok_or_else(|| {
        let names: Vec<&str> = ids().collect();
        let near = nearest(id, ids()).map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
        format!("there is no intent {:?}, but {} and null{near}", bounded(id, 64), names.join(", "))
    })
}

fn checked(intent: &Intent, entities: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut named = Map::new();
    for (name, value) in entities {
        if value.is_null() {
            continue;
        }
        let entity = intent.entities.iter().find(|entity| entity.name == name).ok_or_else(|| {
            format!(
                "the intent {:?} has no entity {:?}: it has {}",
                intent.id,
                bounded(&name, 64),
                match intent.entities.iter().map(|entity| entity.name.as_str()).collect::<Vec<_>>().as_slice() {
                    [] => "none".to_owned(),
                    several => several.join(", "),
                }
            )
        })?;
        if let Some(value) = typed(entity, value)? {
            named.insert(name, value);
        }
    }
    Ok(named)
}

/// The value of an entity, or nothing where the answer says that there is none.
fn typed(entity: &Entity, value: Value) -> Result<Option<Value>, String> {
    let fits = match &value {
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) if text.len() > MAX_ENTITY => {
            return Err(format!("the entity {:?} is longer than {MAX_ENTITY} bytes", entity.name));
        }
        Value::String(_) => entity.kind == ValueType::String,
        Value::Number(number) => match entity.kind {
            ValueType::Number => true,
            ValueType::Integer => number.is_i64() || number.is_u64(),
            ValueType::String | ValueType::Boolean | ValueType::Array | ValueType::Object => false,
        },
        Value::Bool(_) => entity.kind == ValueType::Boolean,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    if fits { Ok(Some(value)) } else { Err(format!("the entity {:?} is not of the type {}", entity.name, entity.kind)) }
}

#[cfg(test)]
mod tests;
