//! The file of an agent: its tools and its tasks.

use serde::Deserialize;
use serde_json::{Map, Value};

/// An agent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agent {
    /// The name of the agent and of its template.
    #[serde(skip)]
    pub name: String,
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
    /// Reads a file.
    pub fn read(name: &str, text: &str) -> Self {
        let mut agent: Self = serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{name}.yaml: {error}"));
        name.clone_into(&mut agent.name);
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
