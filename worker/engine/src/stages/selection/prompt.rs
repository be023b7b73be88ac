//! The prompt of the tool selection, and the reader of its answer.

use crate::shared::Shared;
use crate::stage_prompt::{AnswerSchema, DATA, Error, StagePrompt, data, list, read_object};
use crate::tool::{CatalogueTool, ToolSource};
use bloomery_crds::nearest::nearest;
use bloomery_crds::text::bounded;
use serde_json::{Value, json};

/// The most tools in a prompt if the Skill sets no maximum. It is the limit of OpenAI's chat completions.
const DEFAULT_MAX_TOOLS: usize = 128;

/// The longest description of a tool in the prompt of the selection, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 256;

/// The tools to select from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice<'a> {
    /// The tools that the model always sees: core tools, and the steps of workflows.
    pub always_shown: Vec<&'a CatalogueTool>,
    /// The other tools, in the order of the catalogue.
    pub selectable: Vec<&'a CatalogueTool>,
    /// The number of other tools that fit into the prompt.
    pub room: usize,
}

/// Returns the tools to select from, or nothing if all tools fit into the prompt.
pub(super) fn choice(shared: &Shared) -> Option<Choice<'_>> {
    let tools = shared.catalogue.visible();
    let max = max_tools(shared);
    if tools.len() <= max {
        return None;
    }
    let is_always_shown =
        |tool: &CatalogueTool| tool.source == ToolSource::Core || shared.rules.workflows.has_step(&tool.name);
    let (always_shown, selectable): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| is_always_shown(tool));
    let room = max.saturating_sub(always_shown.len());
    Some(Choice { always_shown, selectable, room })
}

impl Choice<'_> {
    /// Returns the first selectable tools of the catalogue: the selection if the model gives no usable answer.
    pub(super) fn first_tools(&self) -> Vec<String> {
        self.selectable.iter().take(self.room).map(|tool| tool.alias.clone()).collect()
    }

    /// Returns the prompt that asks for the selection.
    pub(super) fn prompt(&self, shared: &Shared) -> StagePrompt {
        let described = self.selectable.iter().map(|tool| match tool.description.trim() {
            "" => tool.alias.clone(),
            description => format!("{}: {}", tool.alias, one_line(description)),
        });
        let system = format!(
            "You choose the tools that an agent needs. The agent's purpose: {}\n\n{ANSWER}\n\n{DATA}",
            shared.run.skill.problem.statement.trim()
        );
        let intent = match shared.intent_id() {
            Some(intent) => format!("\n\nThe detected intent is {intent:?}."),
            None => String::new(),
        };
        let user = format!(
            "Which of these tools does the goal need? Name at most {}.\n\n{}{intent}\n\n{}",
            self.room,
            shared.goal_data(),
            data("tools", &list(described))
        );
        StagePrompt { system, user, answer_schema: Some(answer_schema()) }
    }

    /// Reads the selected names from the answer of the model. Duplicates are dropped, and so are names for which
    /// there is no room.
    ///
    /// # Errors
    /// If the answer is not a JSON object of this form, or names an unknown tool.
    pub(super) fn read(&self, answer: &str) -> Result<Vec<String>, Error> {
        let mut fields = read_object(answer)?;
        let Some(Value::Array(named)) = fields.remove("tools") else {
            return Err("the field \"tools\" is not a list".into());
        };
        if let Some(name) = fields.keys().next() {
            return Err(format!("the field {:?} is not asked for", bounded(name, 64)).into());
        }
        let mut selected: Vec<String> = Vec::new();
        for name in &named {
            let name = name.as_str().ok_or("the field \"tools\" holds something else than names")?;
            self.check_name(name)?;
            if selected.len() < self.room && !selected.iter().any(|earlier| earlier == name) {
                selected.push(name.to_owned());
            }
        }
        Ok(selected)
    }

    fn check_name(&self, name: &str) -> Result<(), Error> {
        let names = || self.selectable.iter().map(|tool| tool.alias.as_str());
        // The model may also name a tool that it always sees.
        if names().any(|known| known == name) || self.always_shown.iter().any(|tool| tool.alias == name) {
            return Ok(());
        }
        let near = nearest(name, names()).map(|near| format!("; the nearest is {near:?}")).unwrap_or_default();
        Err(format!("there is no tool {:?}{near}", bounded(name, 64)).into())
    }
}

/// Returns the schema of the answer. It does not list the names: there may be more than providers allow in a schema.
fn answer_schema() -> AnswerSchema {
    AnswerSchema::new("tools", [("tools", json!({"type": "array", "items": {"type": "string"}}))])
}

/// Returns the maximum number of tools in a prompt.
pub(super) fn max_tools(shared: &Shared) -> usize {
    let selection = shared.run.skill.engine.as_ref().and_then(|engine| engine.tool_selection.as_ref());
    let max = selection.and_then(|selection| selection.max);
    max.map_or(DEFAULT_MAX_TOOLS, |max| usize::try_from(max).unwrap_or(usize::MAX))
}

fn one_line(description: &str) -> String {
    let words: Vec<&str> = description.split_whitespace().collect();
    bounded(&words.join(" "), MAX_DESCRIPTION_BYTES)
}

const ANSWER: &str = "# Answer\n\
    Answer with one JSON object and nothing else:\n\
    {\"tools\": [\"<name of a tool>\"]}\n\
    - Name each tool that a step towards the goal may need, the most needed first. Leave out the others.\n\
    - Copy the names as they are listed.";

#[cfg(test)]
mod tests;
