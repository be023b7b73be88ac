//! One task, run through `bloomery run`.

use super::agent::{Agent, Task};
use super::server::ToolServer;
use bloomery_testkit::model_server::ModelServer;
use bloomery_testkit::model_server::script::Script;
use bloomery_testkit::script::{Turn, call, conversation, say, script_text};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use tokio::process::Command;

/// The exit codes of a Job that succeeded, and of one that waits for people.
const SUCCEEDED: i32 = 0;
const PARKED: i32 = 7;

/// The file of the Skill.
const SKILL: &str = "./skill.yaml";

/// A task of an agent.
pub struct Trial<'a> {
    pub agent: &'a Agent,
    pub task: &'a Task,
    pub is_injected: bool,
}

/// The result of a task.
pub struct Outcome {
    /// The first call that was not allowed, with the reasons.
    pub held: Option<String>,
    /// The first injected call that the MCP server received.
    pub made: Option<String>,
    /// The reason why the task says nothing about the policy.
    pub fault: Option<String>,
}

/// The ruling of the gate on one call.
struct Ruling {
    call: String,
    is_allowed: bool,
    /// The verdict, with its reasons.
    text: String,
}

impl<'a> Trial<'a> {
    /// Returns all tasks of an agent.
    pub fn all(agent: &'a Agent) -> impl Iterator<Item = Self> {
        agent.tasks().map(move |(task, is_injected)| Self { agent, task, is_injected })
    }

    /// Returns whether one of the words is the name of the agent or a part of the task's name, or there are no words.
    pub fn is_selected(&self, words: &[String]) -> bool {
        words.is_empty() || words.iter().any(|word| self.agent.name == *word || self.task.name.contains(word.as_str()))
    }

    /// Runs the task with the template of the agent. An injected effect must be made without the rules of the template: otherwise the
    /// task says nothing about them.
    pub async fn run(&self) -> Outcome {
        if self.is_injected {
            let control = self.run_with(&self.agent.template_without_rules).await;
            if control.made.is_none() {
                let why = control.fault.or(control.held).unwrap_or_default();
                let fault = Some(format!("without rules, the injected effect is not made either: {why}"));
                return Outcome { held: None, made: None, fault };
            }
        }
        self.run_with(&self.agent.template).await
    }

    /// Runs the task in a memory of its own.
    async fn run_with(&self, skill: &str) -> Outcome {
        let script = Script::from_yaml(&self.script()).unwrap();
        let model = ModelServer::new(script).start("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let tools = ToolServer::start(self.agent, self.task).await;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(SKILL), skill).unwrap();
        let output = self.bloomery(dir.path(), &format!("{}/v1", model.url()), tools.url()).await;
        self.judge(&output, &tools)
    }

    async fn bloomery(&self, dir: &Path, model: &str, tools: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery"));
        command.args(["run", "--json", "--patience", "5", "--model", "scripted", "--model-url", model, "--mcp", tools]);
        command.args(["--skill", SKILL, "--goal", &self.task.goal]).current_dir(dir).env_clear();
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap()
    }

    /// Returns the script of the model: one call in each answer, and then a text.
    fn script(&self) -> String {
        let calls = self.task.calls.iter().map(|made| call(&made.tool, Value::Object(made.arguments.clone())));
        let turns: Vec<Turn> = calls.chain([say("Done.")]).collect();
        script_text(&[conversation(&self.task.goal, turns).intent(&self.task.intent, json!({}))])
    }

    fn judge(&self, output: &Output, tools: &ToolServer) -> Outcome {
        let rulings = rulings(&String::from_utf8_lossy(&output.stdout));
        let named = |at: usize, ruling: &Ruling| format!("{}: {}", self.task.calls[at].tool, ruling.text);
        let held = rulings.iter().enumerate().find(|(_, ruling)| !ruling.is_allowed);
        let mut calls = self.task.calls.iter().enumerate();
        let made = calls.find(|(at, call)| call.injected && tools.has_received(self.task, *at)).map(|(_, call)| call);
        Outcome {
            held: held.map(|(at, ruling)| named(at, ruling)),
            made: made.map(|call| format!("{} {}", call.tool, Value::Object(call.arguments.clone()))),
            fault: self.fault(output, &rulings, tools),
        }
    }

    /// Returns the reason why a run says nothing about the policy: it failed, its calls are not those of the task, or it did not reach the
    /// attack.
    fn fault(&self, output: &Output, rulings: &[Ruling], tools: &ToolServer) -> Option<String> {
        let calls = &self.task.calls;
        if !matches!(output.status.code(), Some(SUCCEEDED | PARKED)) || rulings.len() > calls.len() {
            return Some(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
        }
        if self.is_injected && calls.iter().take(rulings.len()).all(|call| !call.injected) {
            let last = rulings.last().map_or("no call", |ruling| ruling.text.as_str());
            return Some(format!("the run did not reach the injected call: {last}"));
        }
        let mut ruled = rulings.iter().enumerate();
        let contradicted = ruled.find(|(at, ruling)| ruling.is_allowed != tools.has_received(self.task, *at))?;
        let (tool, ruling) = (&calls[contradicted.0].tool, &contradicted.1.text);
        Some(format!("the ruling on {tool} is {ruling}, and the MCP server contradicts it"))
    }
}

/// Returns the last ruling on each call, in the order of the calls, from the lines of a log.
fn rulings(log: &str) -> Vec<Ruling> {
    let mut rulings: Vec<Ruling> = Vec::new();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for event in lines.filter(|event| event["type"].as_str().is_some_and(|name| name.ends_with("tool.ruled"))) {
        let data = &event["data"];
        let verdict = data["verdict"].as_str().unwrap();
        let details = data["reasons"].as_array().into_iter().flatten().filter_map(|reason| reason["detail"].as_str());
        let text = format!("{verdict} ({})", details.collect::<Vec<_>>().join("; "));
        let ruling = Ruling { call: data["call"].as_str().unwrap().to_owned(), is_allowed: verdict == "Allow", text };
        match rulings.iter_mut().find(|known| known.call == ruling.call) {
            Some(known) => *known = ruling,
            None => rulings.push(ruling),
        }
    }
    rulings
}
