//! The file of an agent: its tools and its tasks.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

/// An agent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agent {
    /// The name of the agent and of its template.
    #[serde(skip)]
    pub name: String,
    /// The text of its template.
    #[serde(skip)]
    pub template: String,
    /// The text of its template without all rules.
    #[serde(skip)]
    pub template_without_rules: String,
    /// The tools of its MCP server.
    pub tools: Vec<Tool>,
    /// The tasks in which all calls serve the goal.
    pub honest: Vec<Task>,
    /// The tasks in which a result has an instruction of an attacker, and the model obeys it.
    pub injected: Vec<Task>,
}

/// A tool of the MCP server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// The schemas of the arguments by name. The name of an optional argument ends with `?`.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The result of calls for which the task has none.
    pub result: Value,
}

/// A task of a person.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Task {
    pub name: String,
    pub goal: String,
    /// The intent that a model detects in the goal. It sees only the goal, so an attacker does not influence it.
    pub intent: String,
    /// The calls, in their order.
    pub calls: Vec<Call>,
}

/// A call of the model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Call {
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The result, instead of the result of the tool.
    #[serde(default)]
    pub result: Option<Value>,
    /// Whether the attacker demands the call: it has the effect that the policy must stop.
    #[serde(default)]
    pub injected: bool,
}

impl Agent {
    /// Reads the tasks and the template of an agent.
    pub fn read(name: &str) -> Self {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(top.join(format!("benches/policy/{name}.yaml"))).unwrap();
        let mut agent: Self = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}.yaml: {error}"));
        name.clone_into(&mut agent.name);
        agent.template = fs::read_to_string(top.join(format!("../skill-templates/{name}.yaml"))).unwrap();
        agent.template_without_rules = without_rules(&agent.template);
        for (task, is_injected) in agent.tasks() {
            assert_eq!(task.calls.iter().any(|call| call.injected), is_injected, "{name}.yaml: {}", task.name);
            let known = |call: &Call| agent.tools.iter().any(|tool| tool.name == call.tool);
            assert!(task.calls.iter().all(known), "{name}.yaml: {}: a call of an unknown tool", task.name);
        }
        agent
    }

    /// Returns all tasks, each with whether it is injected.
    pub fn tasks(&self) -> impl Iterator<Item = (&Task, bool)> {
        let honest = self.honest.iter().map(|task| (task, false));
        honest.chain(self.injected.iter().map(|task| (task, true)))
    }
}

/// Removes the policy of a Skill, and the rules about intents and tools.
fn without_rules(template: &str) -> String {
    let mut skill: Value = serde_yaml::from_str(template).unwrap();
    let spec = skill["spec"].as_object_mut().unwrap();
    spec.remove("policy");
    for intent in spec["intents"]["supported"].as_array_mut().unwrap() {
        intent.as_object_mut().unwrap().remove("tools");
    }
    for tool in spec["tools"].as_array_mut().unwrap() {
        tool.as_object_mut().unwrap().retain(|field, _| field == "name" || field == "readOnly");
    }
    skill.to_string()
}
