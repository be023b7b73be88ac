//! The record of a conversation that conditions read: what people wrote, and the earlier calls and results.
//!
//! It is a fold of the events, so a replay has the same record. It keeps only what the conditions of the Skill read, within bounds.
//! What is beyond a bound is not found, or is an error of the condition.

mod calls;
mod form;
mod groups;
mod iban;
mod needs;
mod writings;

pub(crate) use calls::read_json;

use crate::event::{CallId, Event};
use bloomery_cel::Facts;
use bloomery_crds::canonical::CanonicalJson;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::SkillSpec;
use calls::{Kept, ToolCalls};
use needs::Needs;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use writings::Writings;

/// The facts of a conversation.
#[derive(Debug, Default)]
pub struct Record {
    needs: Needs,
    lists: BTreeMap<String, Vec<Value>>,
    writings: Writings,
    /// The calls of each tool, by its name.
    tools: BTreeMap<String, ToolCalls>,
}

impl Record {
    /// Returns the record of a conversation before its first event.
    pub(crate) fn new(skill: &SkillSpec) -> Self {
        let lists = skill.policy.iter().flat_map(|policy| &policy.lists);
        let values = |items: &Vec<String>| items.iter().map(|item| Value::String(item.clone())).collect();
        Self {
            needs: Needs::new(skill),
            lists: lists.map(|(name, items)| (name.clone(), values(items))).collect(),
            ..Self::default()
        }
    }

    /// Takes the text of an event that a person wrote or bound.
    pub(crate) fn apply(&mut self, event: &Event) {
        if !self.needs.from_user {
            return;
        }
        match event {
            Event::ConversationOpened { goal, .. } => self.writings.add(goal),
            Event::UserReplied { text, .. } | Event::UserMessage { text, .. } => self.writings.add(text),
            Event::ResourcesBound { resources } => {
                resources
                    .iter()
                    .filter_map(|resource| resource.rendering.as_ref())
                    .for_each(|text| self.writings.add(text));
            }
            _ => {}
        }
    }

    /// Records that a call was started. A call that is sent again is recorded once.
    pub(crate) fn add_call(&mut self, tool: &str, id: &CallId, arguments: &CanonicalJson) {
        if !self.needs.wants_calls(tool) {
            return;
        }
        let calls = &mut self.tools.entry(tool.to_owned()).or_default().calls;
        match arguments.value() {
            Ok(_) if calls.complete().is_some_and(|calls| calls.iter().any(|(known, _)| known == id)) => {}
            Ok(value) => calls.add((id.clone(), value.clone()), arguments.text().len()),
            Err(_) => calls.miss(),
        }
    }

    /// Records the result of a call that completed. `None` if the result is too large for the log.
    pub(crate) fn add_result(&mut self, tool: &str, text: Option<&str>) {
        let (wants_results, wants_values) = (self.needs.wants_results(tool), self.needs.wants_values(tool));
        if !wants_results && !wants_values {
            return;
        }
        let calls = self.tools.entry(tool.to_owned()).or_default();
        let Some(text) = text else { return calls.results.miss() };
        let result = read_json(text);
        if let Some(result) = result.as_ref().filter(|_| wants_values) {
            calls.add_values(result);
        }
        if wants_results {
            calls.results.add(result.unwrap_or_else(|| Value::String(text.to_owned())), text.len());
        }
    }

    /// Returns the facts for the decision on a call.
    pub(crate) fn for_call<'a>(&'a self, call: &'a CallId) -> CallFacts<'a> {
        CallFacts { record: self, call, step: None }
    }

    fn matching<'a>(&'a self, pattern: &str) -> impl Iterator<Item = &'a ToolCalls> {
        self.tools.iter().filter(move |(tool, _)| matches(pattern, tool)).map(|(_, calls)| calls)
    }
}

/// The facts for the decision on one call.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    record: &'a Record,
    call: &'a CallId,
    step: Option<StepFacts<'a>>,
}

/// The facts that only the condition of a workflow step reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepFacts<'a> {
    /// The result of the call, if it has completed.
    pub(crate) result: Option<&'a Value>,
    /// The arguments and the result of each step of the workflow that is done.
    pub(crate) steps: &'a BTreeMap<String, Map<String, Value>>,
}

impl<'a> CallFacts<'a> {
    /// Adds the facts of a workflow step.
    pub(crate) fn with_step(self, step: StepFacts<'a>) -> Self {
        Self { step: Some(step), ..self }
    }
}

impl Facts for CallFacts<'_> {
    fn list(&self, name: &str) -> Option<&[Value]> {
        self.record.lists.get(name).map(Vec::as_slice)
    }

    fn is_from_user(&self, value: &str) -> bool {
        self.record.writings.contain(value)
    }

    fn is_from_tool(&self, value: &str, tool: &str) -> bool {
        form::key(value).is_some_and(|key| self.record.matching(tool).any(|calls| calls.has_value(&key)))
    }

    fn calls(&self, tool: &str) -> Result<Vec<&Value>, String> {
        let mut found = Vec::new();
        for calls in self.record.matching(tool) {
            let known = complete(&calls.calls, tool)?;
            // The call itself may have been sent before: an idempotent call whose answer was lost.
            found.extend(known.iter().filter(|(id, _)| id != self.call).map(|(_, arguments)| arguments));
        }
        Ok(found)
    }

    fn results(&self, tool: &str) -> Result<Vec<&Value>, String> {
        let mut found = Vec::new();
        for calls in self.record.matching(tool) {
            found.extend(complete(&calls.results, tool)?);
        }
        Ok(found)
    }

    fn result(&self) -> Option<&Value> {
        self.step?.result
    }

    fn step(&self, name: &str) -> Option<&Map<String, Value>> {
        self.step?.steps.get(name)
    }
}

fn complete<'a, T>(kept: &'a Kept<T>, tool: &str) -> Result<&'a [T], String> {
    kept.complete().ok_or_else(|| format!("the earlier calls of {tool} are too many or too large for a condition"))
}

#[cfg(test)]
mod tests;
