//! Tool selection: where a Skill has more tools than a prompt should hold, one question says which of them the goal
//! needs (seed 000, "Tool Selection Cache"; `engine.md`, section 4).
//!
//! It is about the size of prompts and not about permission: a tool that was left out and is called all the same passes
//! the same gates.

use crate::ask::{DATA, Form, Prompt, data, list, object, wanted};
use crate::conversation::Conversation;
use crate::tool::{CatalogueTool, ToolSource};
use bloomery_crds::Digest;
use bloomery_crds::nearest::nearest;
use bloomery_crds::text::bounded;
use serde_json::{Value, json};

/// How many tools a prompt holds where the Skill says nothing: the most that OpenAI's chat completions take.
pub const DEFAULT_MAX: usize = 128;

/// How much of a tool's description is shown to who selects, in bytes.
const MAX_DESCRIPTION: usize = 256;

/// What there is to select from.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice<'a> {
    /// Tools that stay whatever the model says: the worker's own, and the steps of workflows.
    pub fixed: Vec<&'a CatalogueTool>,
    /// The others, in the order of the catalogue.
    pub open: Vec<&'a CatalogueTool>,
    /// How many of the others there is room for.
    pub room: usize,
}

/// The choice, where there are more tools than the Skill wants in a prompt.
pub fn choice(conversation: &Conversation) -> Option<Choice<'_>> {
    let tools = conversation.visible();
    let max = max(conversation);
    if tools.len() <= max {
        return None;
    }
    let stays =
        |tool: &CatalogueTool| tool.source == ToolSource::Core || conversation.rules().workflows.has_step(&tool.name);
    let (fixed, open): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| stays(tool));
    let room = max.saturating_sub(fixed.len());
    Some(Choice { fixed, open, room })
}

impl Choice<'_> {
    /// The first tools of the catalogue: what is taken where the model has no usable answer.
    pub fn first(&self) -> Vec<String> {
        self.open.iter().take(self.room).map(|tool| tool.alias.clone()).collect()
    }

    /// The question.
    pub fn prompt(&self, conversation: &Conversation) -> Prompt {
        let run = conversation.run();
        let described = self.open.iter().map(|tool| match tool.description.trim() {
            "" => tool.alias.clone(),
            description => format!("{}: {}", tool.alias, one_line(description)),
        });
        let system = format!(
            "You choose the tools that an agent needs. The agent's purpose: {}\n\n{ANSWER}\n\n{DATA}",
            run.skill.problem.statement.trim()
        );
        let meant = match conversation.intention().intent().and_then(|intent| intent.id.as_deref()) {
            Some(intent) => format!("\n\nThe detected intent is {intent:?}."),
            None => String::new(),
        };
        let user = format!(
            "Which of these tools does the goal need? Name at most {}.\n\n{}{meant}\n\n{}",
            self.room,
            wanted(conversation),
            data("tools", &list(described))
        );
        Prompt { system, user, form: Some(form()) }
    }

    /// Reads the answer: the names of the tools, each once, no more than there is room for.
    ///
    /// # Errors
    /// A sentence for the one retry: no JSON object of this form, or a tool that there is not.
    pub fn read(&self, answer: &str) -> Result<Vec<String>, String> {
        let mut fields = object(answer)?;
        let Some(Value::Array(named)) = fields.remove("tools") else {
            return Err("the field \"tools\" is not a list".to_owned());
        };
        if let Some(name) = fields.keys().next() {
            return Err(format!("the field {:?} is not asked for", bounded(name, 64)));
        }
        let mut selected: Vec<String> = Vec::new();
        for name in &named {
            let name = name.as_str().ok_or("the field \"tools\" holds something else than names")?;
            self.known(name)?;
            if selected.len() < self.room && !selected.iter().any(|earlier| earlier == name) {
                selected.push(name.to_owned());
            }
        }
        Ok(selected)
    }

    fn known(&self, name: &str) -> Result<(), String> {
        let names = || self.open.iter().map(|tool| tool.alias.as_str());
        // One that stays anyway may be named.
        if names().any(|known| known == name) || self.fixed.iter().any(|tool| tool.alias == name) {
            return Ok(());
        }
        let near = nearest(name, names()).map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
        Err(format!("there is no tool {:?}{near}", bounded(name, 64)))
    }
}

/// Which names there are the prompt says, and who reads the answer: there may be more than a schema may list.
fn form() -> Form {
    Form::new("tools", [("tools", json!({"type": "array", "items": {"type": "string"}}))])
}

/// Under what an answer may be remembered (`engine.md`, section 4): another Skill, goal, intent, bound or catalogue is
/// another question.
pub fn key(conversation: &Conversation) -> Digest {
    let run = conversation.run();
    let intent = conversation.intention().intent().and_then(|intent| intent.id.as_deref());
    let tools: Vec<&str> = conversation.visible().iter().map(|tool| tool.digest.as_str()).collect();
    Digest::of_value(&json!({
        "skill": run.skill_name, "goal": wanted(conversation), "intent": intent, "max": max(conversation), "tools": tools,
    }))
}

fn max(conversation: &Conversation) -> usize {
    let selection = conversation.run().skill.engine.as_ref().and_then(|engine| engine.tool_selection.as_ref());
    let max = selection.and_then(|selection| selection.max);
    max.map_or(DEFAULT_MAX, |max| usize::try_from(max).unwrap_or(usize::MAX))
}

fn one_line(description: &str) -> String {
    let words: Vec<&str> = description.split_whitespace().collect();
    bounded(&words.join(" "), MAX_DESCRIPTION)
}

const ANSWER: &str = "# Answer\n\
    Answer with one JSON object and nothing else:\n\
    {\"tools\": [\"<name of a tool>\"]}\n\
    - Name each tool that a step towards the goal may need, the most needed first. Leave out the others.\n\
    - Copy the names as they are listed.";

#[cfg(test)]
mod tests;
