//! The stages of the engine that send requests, and the default answers to them.
//!
//! The first sentence of the system prompt identifies the stage. A request with any other system prompt belongs to the
//! main loop. The engine's stages `intent`, `selection`, `finalization` and `polish` write these prompts and read the answers.

use bloomery_crds::v1alpha1::Stage;
use serde_json::{Value, json};

use super::request::Request;
use super::script::Turn;

/// The first sentences of the stages' system prompts.
const BEGINNINGS: [(&str, Stage); 4] = [
    ("You find out what a person wants of an agent.", Stage::Intent),
    ("You choose the tools that an agent needs.", Stage::Selection),
    ("You are a finalization gate.", Stage::Finalization),
    ("You are a reply formatter.", Stage::Polish),
];

/// Returns the stage that sent a request.
pub(super) fn detect(request: &Request) -> Stage {
    let system = request.system_text().unwrap_or_default();
    let found = BEGINNINGS.iter().find(|(beginning, _)| system.starts_with(beginning));
    found.map_or(Stage::Plan, |(_, stage)| *stage)
}

/// Returns the default answer to a request of a stage, for a script without such an answer. With it, the Job continues.
/// The main loop has no default answer.
pub(super) fn default_answer(stage: Stage, request: &Request) -> Option<Turn> {
    let answer = |say: String| Some(Turn { say: Some(say), ..Turn::default() });
    match stage {
        Stage::Plan => None,
        Stage::Intent => answer(first_intent(request).to_string()),
        Stage::Selection => answer(json!({ "tools": [] }).to_string()),
        Stage::Finalization => answer(json!({ "passed": true, "score": 1.0, "reasons": [] }).to_string()),
        // The unchanged draft, so the polished answer loses nothing.
        Stage::Polish => answer(tagged_data(request)),
    }
}

/// Returns the first intent of the prompt, with the entities that were found in the goal.
fn first_intent(request: &Request) -> Value {
    let system = request.system_text().unwrap_or_default();
    let mut lines = system.lines().skip_while(|line| *line != "# Intents").skip(1);
    let Some(id) = lines.next().and_then(|line| quoted(line.strip_prefix("- ")?)) else { return json!({}) };
    let about = lines.take_while(|line| line.starts_with("  "));
    let entities = about.filter_map(|line| line.strip_prefix("  Entities: ")).flat_map(|list| list.split(", "));
    let goal = tagged_data(request);
    let entities: serde_json::Map<String, Value> = entities
        .filter_map(|entity| Some((quoted(entity)?.to_owned(), entity_in(&goal, entity.contains("(string)"))?)))
        .collect();
    json!({ "intent": id, "entities": entities })
}

/// Returns the text between the first two quotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

/// Returns the value of an entity in a goal: the first word with a digit for a text, or the first number for a number.
fn entity_in(goal: &str, is_text: bool) -> Option<Value> {
    let mut words = goal.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    if is_text {
        return words.find(|word| word.contains(|c: char| c.is_ascii_digit())).map(Value::from);
    }
    words.find_map(|word| serde_json::from_str(word).ok().filter(Value::is_number))
}

/// Returns the tagged data in the first message of the user, or the whole message if it has no tag.
fn tagged_data(request: &Request) -> String {
    let message = request.first_text();
    text_in_tag(message).unwrap_or(message).to_owned()
}

/// Returns the text between a tag with an id and its closing tag.
fn text_in_tag(text: &str) -> Option<&str> {
    let open = text.lines().find(|line| line.starts_with('<') && line.ends_with("\">") && line.contains(" id=\""))?;
    let (_, inner) = text.split_once(open)?;
    let close = format!("\n</{}", open.get(1..)?);
    inner.strip_prefix('\n')?.split_once(&close).map(|(inner, _)| inner)
}
