//! The prompt of the intent detection, and the reader of its answer. The reader guesses nothing: after an answer that cannot be
//! read, the stage asks once more, with the error.

use crate::stage_prompt::{AnswerSchema, DATA, Error, StagePrompt, exact_object, read_object};
use crate::stages::questions::RefusedReply;
use bloomery_crds::canonical;
use bloomery_crds::nearest::nearest;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{DetectedIntent, Entity, Intent, Intents, SkillSpec, ValueType};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The longest text of an entity, in bytes: a name or a number, not a document.
const MAX_ENTITY_BYTES: usize = 1024;

/// Returns the prompt that asks which of the Skill's intents the goal means.
pub fn prompt(skill: &SkillSpec, goal: &str) -> StagePrompt {
    let supported = skill.intents.as_ref().map_or(&[][..], |intents| &intents.supported);
    let intents: Vec<String> = supported.iter().map(description).collect();
    let system = format!(
        "You find out what a person wants of an agent. The agent's purpose: {}\n\n# Intents\n{}\n\n{ANSWER}\n\n{DATA}",
        skill.problem.statement.trim(),
        intents.join("\n"),
    );
    let user = format!("Which intent is this?\n\n{goal}");
    StagePrompt { system, user, answer_schema: Some(answer_schema(supported)) }
}

/// Returns the schema of the answer. It requires every entity of every intent, because providers accept no optional fields.
/// Null means that the entity belongs to another intent, or that the goal does not name it.
fn answer_schema(supported: &[Intent]) -> AnswerSchema {
    let mut types: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for entity in supported.iter().flat_map(|intent| &intent.entities) {
        types.entry(&entity.name).or_default().insert(entity.kind.to_string());
    }
    let nullable =
        |types: BTreeSet<String>| json!({"type": types.into_iter().chain(["null".to_owned()]).collect::<Vec<_>>()});
    let entities = exact_object(types.into_iter().map(|(name, types)| (name, nullable(types))));
    let ids: Vec<Option<&str>> = supported.iter().map(|intent| Some(intent.id.as_str())).chain([None]).collect();
    AnswerSchema::new("intent", [("intent", json!({"type": ["string", "null"], "enum": ids})), ("entities", entities)])
}

const ANSWER: &str = "# Answer\n\
    Answer with one JSON object and nothing else:\n\
    {\"intent\": \"<id of an intent>\", \"entities\": {\"<name>\": <value>}}\n\
    - If the goal is none of these intents: {\"intent\": null}. Do not stretch one to fit.\n\
    - Name only entities of that intent, each as the goal gives it and of its type. Leave out what the goal does not \
    say: never make one up.";

fn description(intent: &Intent) -> String {
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

/// Reads the answer of the model. A null or blank entity counts as not named.
///
/// # Errors
/// If the answer is not a JSON object, if it has an unknown field, intent or entity, or if an entity is too long or of another
/// type.
pub fn read(answer: &str, intents: &Intents) -> Result<DetectedIntent, Error> {
    let mut fields = read_object(answer)?;
    let id = fields.remove("intent").ok_or("the field \"intent\" is missing")?;
    let entities = match fields.remove("entities") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(entities)) => entities,
        Some(_) => return Err("the field \"entities\" is not an object".into()),
    };
    if let Some(name) = fields.keys().next() {
        return Err(format!("the field {:?} is not asked for", bounded(name, 64)).into());
    }
    let names_no_entity = entities.values().all(Value::is_null);
    match id {
        Value::String(id) => {
            let intent = find_intent(&id, intents)?;
            Ok(DetectedIntent { id: Some(id), entities: check_entities(intent, entities)?, out_of_domain: false })
        }
        Value::Null if names_no_entity => Ok(DetectedIntent { out_of_domain: true, ..DetectedIntent::default() }),
        Value::Null => Err("without an intent there are no entities".into()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err("the field \"intent\" is neither the id of an intent nor null".into())
        }
    }
}

/// Returns the entities that the intent requires and the goal does not name.
pub fn missing_entities(intents: &Intents, detected: &DetectedIntent) -> Vec<String> {
    let required = entities_of(intents, detected).filter(|entity| entity.required == Some(true));
    required.map(|entity| entity.name.clone()).filter(|name| !detected.entities.contains_key(name)).collect()
}

/// Returns the question about a missing entity, and its choices.
pub fn question(intents: &Intents, detected: &DetectedIntent, name: &str) -> (String, Vec<String>) {
    let kind = entities_of(intents, detected).find(|entity| entity.name == name).map(|entity| entity.kind);
    let choices = if kind == Some(ValueType::Boolean) { ["true", "false"].map(str::to_owned).to_vec() } else { vec![] };
    let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
    (format!("What is {name}{kind}? The Skill has to know it, and the goal does not say it."), choices)
}

/// Reads the value of a missing entity from a person's reply.
///
/// # Errors
/// If the reply is empty, or does not have the type of the entity.
pub(super) fn read_entity(
    skill: &SkillSpec,
    detected: Option<&DetectedIntent>,
    name: &str,
    text: &str,
) -> Result<Value, RefusedReply> {
    let intents = skill.intents.as_ref().zip(detected);
    let entity =
        intents.and_then(|(intents, detected)| entities_of(intents, detected).find(|entity| entity.name == name));
    let entity = entity.ok_or_else(|| RefusedReply::new(format!("the Skill has no entity {:?}", bounded(name, 64))))?;
    let text = text.trim();
    let value = match entity.kind {
        ValueType::String => Value::String(text.to_owned()),
        ValueType::Number | ValueType::Integer | ValueType::Boolean | ValueType::Array | ValueType::Object => {
            canonical::parse(text)
                .map_err(|_| RefusedReply::new(format!("{:?} is not of the type {}", bounded(text, 64), entity.kind)))?
        }
    };
    check_type(entity, value)
        .map_err(|error| RefusedReply::new(error.to_string()))?
        .ok_or_else(|| RefusedReply::new("the answer is empty"))
}

/// Returns the entities of the detected intent.
fn entities_of<'a>(intents: &'a Intents, detected: &DetectedIntent) -> impl Iterator<Item = &'a Entity> {
    let intent = detected.id.as_ref().and_then(|id| intents.supported.iter().find(|intent| intent.id == *id));
    intent.into_iter().flat_map(|intent| &intent.entities)
}

fn find_intent<'a>(id: &str, intents: &'a Intents) -> Result<&'a Intent, Error> {
    let ids = || intents.supported.iter().map(|intent| intent.id.as_str());
    intents.supported.iter().find(|intent| intent.id == id).ok_or_else(|| {
        let names: Vec<&str> = ids().collect();
        let near = nearest(id, ids()).map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
        format!("there is no intent {:?}, but {} and null{near}", bounded(id, 64), names.join(", ")).into()
    })
}

/// Checks the names and types of entities. Returns those that are not null or blank.
fn check_entities(intent: &Intent, entities: Map<String, Value>) -> Result<Map<String, Value>, Error> {
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
                    known => known.join(", "),
                }
            )
        })?;
        if let Some(value) = check_type(entity, value)? {
            named.insert(name, value);
        }
    }
    Ok(named)
}

/// Checks the type of an entity's value. Returns the value, or nothing if it is blank.
fn check_type(entity: &Entity, value: Value) -> Result<Option<Value>, Error> {
    let fits = match &value {
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) if text.len() > MAX_ENTITY_BYTES => {
            return Err(format!("the entity {:?} is longer than {MAX_ENTITY_BYTES} bytes", entity.name).into());
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
    if fits {
        Ok(Some(value))
    } else {
        Err(format!("the entity {:?} is not of the type {}", entity.name, entity.kind).into())
    }
}

#[cfg(test)]
mod tests;
