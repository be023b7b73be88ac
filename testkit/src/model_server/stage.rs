//! The stages that ask a model, and what they are answered where the script says nothing.
//!
//! A stage is known by how its system prompt begins; what begins otherwise is the main loop. The engine writes
//! these prompts (`intent`, `selection`, `gate::judge`, `polish`), and reads the answers.

use bloomery_crds::v1alpha1::Stage;
use serde_json::{Value, json};

use super::request::Request;
use super::script::Turn;

/// How the system prompts of the stages begin.
const BEGINNINGS: [(&str, Stage); 4] = [
    ("You find out what a person wants of an agent.", Stage::Intent),
    ("You choose the tools that an agent needs.", Stage::Selection),
    ("You are a finalization gate.", Stage::Finalization),
    ("You are a reply formatter.", Stage::Polish),
];

/// Returns the stage that asks.
pub(super) fn detect(request: &Request) -> Stage {
    let system = request.system_text().unwrap_or_default();
    let found = BEGINNINGS.iter().find(|(beginning, _)| system.starts_with(beginning));
    found.map_or(Stage::Plan, |(_, stage)| *stage)
}

/// Answers a stage of which the script says nothing, as a willing model would; the main loop has no such answer.
pub(super) fn default(stage: Stage, request: &Request) -> Option<Turn> {
    let answer = |say: String| Some(Turn { say: Some(say), ..Turn::default() });
    match stage {
        Stage::Plan => None,
        Stage::Intent => answer(first_intent(request).to_string()),
        Stage::Selection => answer(json!({ "tools": [] }).to_string()),
        Stage::Finalization => answer(json!({ "passed": true, "score": 1.0, "reasons": [] }).to_string()),
        // Word for word: there is nothing that could be lost.
        Stage::Polish => answer(asked(request)),
    }
}

/// The first intent of the prompt, with the entities that the goal seems to name.
fn first_intent(request: &Request) -> Value {
    let system = request.system_text().unwrap_or_default();
    let mut lines = system.lines().skip_while(|line| *line != "# Intents").skip(1);
    let Some(id) = lines.next().and_then(|line| quoted(line.strip_prefix("- ")?)) else { return json!({}) };
    let about = lines.take_while(|line| line.starts_with("  "));
    let entities = about.filter_map(|line| line.strip_prefix("  Entities: ")).flat_map(|list| list.split(", "));
    let asked = asked(request);
    let entities: serde_json::Map<String, Value> = entities
        .filter_map(|entity| Some((quoted(entity)?.to_owned(), entity_in(&asked, entity.contains("(string)"))?)))
        .collect();
    json!({ "intent": id, "entities": entities })
}

/// The text between the first two quotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

/// The first word with a digit, or the first number: orders, amounts and the like.
fn entity_in(goal: &str, is_text: bool) -> Option<Value> {
    let mut words = goal.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    if is_text {
        return words.find(|word| word.contains(|c: char| c.is_ascii_digit())).map(Value::from);
    }
    words.find_map(|word| serde_json::from_str(word).ok().filter(Value::is_number))
}

/// The data in the first message of the user, else all of it.
fn asked(request: &Request) -> String {
    let message = request.first_text();
    marked(message).unwrap_or(message).to_owned()
}

/// What stands between a tag with an id and its closing tag.
fn marked(text: &str) -> Option<&str> {
    let open = text.lines().find(|line| line.starts_with('<') && line.ends_with("\">") && line.contains(" id=\""))?;
    let (_, inner) = text.split_once(open)?;
    let close = format!("\n</{}", open.get(1..)?);
    inner.strip_prefix('\n')?.split_once(&close).map(|(inner, _)| inner)
}
