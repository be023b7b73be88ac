//! Reads the Skills of a memory, and their tools.

use crate::error::{Error, ErrorKind};
use crate::local::memory;
use crate::run::options::RunOptions;
use crate::run::server::{self, Server};
use crate::run::skill;
use crate::skill::{SkillState, SkillTool, allows};
use bloomery_engine::tool::ListedTool;
use bloomery_redact::Redactor;
use bloomery_worker::driver::{SkillTools, Tools};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The timeout for the list of tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the Skills of a memory and the templates, sorted by name.
pub(super) fn states(memory: &Path) -> Vec<SkillState> {
    let mut names = memory::skill_names(memory);
    names.extend(skill::template_names().map(str::to_owned));
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| state(memory, name)).collect()
}

fn state(memory: &Path, name: String) -> SkillState {
    match skill::find(memory, &name, false, &[]) {
        Ok(found) => SkillState::new(name, &found.loaded.spec),
        Err(Error { message, findings, .. }) => {
            let details =
                findings.iter().map(|found| format!("line {}: {}", found.finding.line, found.finding.message));
            let fault = std::iter::once(message).chain(details).collect::<Vec<_>>().join("\n");
            SkillState { name, fault: Some(fault), ..SkillState::default() }
        }
    }
}

/// Lists the tools of the MCP server of a Skill that its policy allows. Blocks until the server has answered.
///
/// # Errors
/// If there is no such Skill, or its server cannot be used.
pub(super) fn tools(options: &RunOptions, name: &str) -> Result<Vec<SkillTool>, Error> {
    let loaded = skill::find(&options.memory, name, false, &[])?.loaded;
    let Server { mcp, program } = match server::from_options(&options.mcp)? {
        Some(server) => server,
        None => server::from_skill(&loaded)?,
    };
    let client = server::client(mcp.as_ref(), program.as_ref(), Arc::new(|_: &str| {}), &Redactor::default());
    let tools = SkillTools::new(client.map_err(|error| Error::invalid(error.to_string()))?);
    let failed = |error: io::Error| Error::failed(format!("the runtime cannot be started: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let listed = runtime.block_on(Box::pin(async {
        let listed = tools.list(LIST_TIMEOUT).await;
        tools.close().await;
        listed
    }));
    runtime.shutdown_background();
    let listed = listed.map_err(|error| Error::new(ErrorKind::Unavailable, error.message))?;
    Ok(listed.into_iter().filter(|tool| allows(&loaded.spec, &tool.name)).map(shown).collect())
}

fn shown(tool: ListedTool) -> SkillTool {
    let ListedTool { name, description, input_schema, .. } = tool;
    SkillTool { name, description, input_schema }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SKILL: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: desk}
spec:
  displayName: The desk
  problem: {statement: Help}
  policy: {tools: {allowed: ['read_*', note], blocked: [read_secret]}}
  resources:
    - {name: notes, type: filesystem, required: true, description: The notes}
    - {name: key, type: credential}
  features:
    - {name: brief, testScenario: 'Given a question, when it is asked', expectedResult: One sentence}
    - {name: letters, testScenario: 'Given a letter, when it is written', expectedResult: A greeting, optional: true}
";

    #[test]
    fn a_skill_with_errors_is_listed_with_its_fault() {
        let memory = tempfile::tempdir().unwrap();
        for (name, text) in [("desk", SKILL), ("broken", "kind: Skill")] {
            fs::create_dir(memory.path().join(name)).unwrap();
            fs::write(memory.path().join(name).join("skill.yaml"), text).unwrap();
        }
        let states = states(memory.path());
        let find = |name: &str| states.iter().find(|state| state.name == name).unwrap();
        assert_eq!((find("desk").display_name.as_deref(), &find("desk").fault), (Some("The desk"), &None));
        assert!(find("broken").fault.is_some());
        assert_eq!(find("sw-dev-agent").fault, None);
    }

    #[test]
    fn a_state_has_the_resources_and_features_of_the_skill() {
        let memory = tempfile::tempdir().unwrap();
        fs::create_dir(memory.path().join("desk")).unwrap();
        fs::write(memory.path().join("desk/skill.yaml"), SKILL).unwrap();
        let states = states(memory.path());
        let desk = serde_json::to_value(states.iter().find(|state| state.name == "desk").unwrap()).unwrap();
        let expected = serde_json::json!({
            "name": "desk", "displayName": "The desk", "description": "Help",
            "resources": [
                {"name": "notes", "type": "filesystem", "required": true, "description": "The notes"},
                {"name": "key", "type": "credential", "required": false},
            ],
            "features": [
                {
                    "name": "brief", "testScenario": "Given a question, when it is asked", "expectedResult": "One sentence",
                    "optional": false,
                },
                {
                    "name": "letters", "testScenario": "Given a letter, when it is written", "expectedResult": "A greeting",
                    "optional": true,
                },
            ],
        });
        assert_eq!(desk, expected);
    }

    #[test]
    fn the_policy_decides_on_the_tools() {
        let memory = tempfile::tempdir().unwrap();
        fs::create_dir(memory.path().join("desk")).unwrap();
        fs::write(memory.path().join("desk/skill.yaml"), SKILL).unwrap();
        let loaded = skill::find(memory.path(), "desk", false, &[]).unwrap().loaded;
        for (tool, is_expected) in [("read_order", true), ("note", true), ("read_secret", false), ("refund", false)] {
            assert_eq!(allows(&loaded.spec, tool), is_expected, "{tool}");
        }
    }
}
