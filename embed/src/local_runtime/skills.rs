//! Reads the Skills of a memory, and their tools.

use crate::error::{Error, ErrorKind};
use crate::run::execute::tokio_runtime;
use crate::run::options::RunOptions;
use crate::run::scripts::LocalScripts;
use crate::run::server::{self, Server};
use crate::run::skill::{self, LoadedSkill};
use crate::skill::{SkillState, SkillTool};
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::{ResourceDeclaration, ResourceType};
use bloomery_engine::catalogue;
use bloomery_engine::decisions::Decisions;
use bloomery_engine::run::Run;
use bloomery_engine::tool::{CatalogueTool, ListedTool};
use bloomery_mcp::StderrListener;
use bloomery_redact::Redactor;
use bloomery_worker::driver::{SkillTools, Tools};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The timeout for the list of tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the Skills of a memory and the templates, sorted by name.
pub(super) fn states(memory: &Path) -> Vec<SkillState> {
    skill::known_names(memory).into_iter().map(|name| state(memory, name)).collect()
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

/// Lists the tools of a Skill that its policy allows: those of its MCP server, its scripts if they may run, and the core tools of a Job that
/// binds all its resources. Blocks until the server has answered.
///
/// # Errors
/// If there is no such Skill, or its server or its scripts cannot be used.
pub(super) fn tools(options: &RunOptions, name: &str) -> Result<Vec<SkillTool>, Error> {
    let loaded = skill::find(&options.memory, name, false, &[])?.loaded;
    let listed = listed_tools(options, &loaded)?;
    Ok(allowed_tools(&loaded, listed))
}

/// Lists the tools of the MCP server of a Skill, and its scripts if they may run.
fn listed_tools(options: &RunOptions, skill: &LoadedSkill) -> Result<Vec<ListedTool>, Error> {
    let Server { mcp, program } = match server::from_options(&options.mcp)? {
        Some(server) => server,
        None => server::from_skill(skill)?,
    };
    let listener = || -> StderrListener { Arc::new(|_: &str| {}) };
    let client = server::client(mcp.as_ref(), program.as_ref(), listener(), &Redactor::default());
    let mut tools = SkillTools::new(client.map_err(|error| Error::invalid(error.to_string()))?);
    // Dropping the scripts removes their files.
    let scripts = LocalScripts::write(&skill.spec, options.allow_scripts)?;
    if let Some(scripts) = &scripts {
        tools = tools.with_scripts(scripts.client(listener(), Redactor::default()), &skill.spec);
    }
    let runtime = tokio_runtime()?;
    let listed = runtime.block_on(Box::pin(async {
        let listed = tools.list(LIST_TIMEOUT).await;
        tools.close().await;
        listed
    }));
    runtime.shutdown_background();
    listed.map_err(|error| Error::new(ErrorKind::Unavailable, error.message))
}

/// Returns the tools that the model of a Job sees before a selection.
fn allowed_tools(skill: &LoadedSkill, listed: Vec<ListedTool>) -> Vec<SkillTool> {
    let fixed = catalogue::fix(&run_with_all_resources(skill), listed);
    fixed.into_iter().filter(|tool| tool.visible).map(shown).collect()
}

/// Returns the inputs of a Job that binds all resources of its Skill. The values of the resources only select the core tools.
fn run_with_all_resources(skill: &LoadedSkill) -> Run {
    let bound = |declared: &ResourceDeclaration| {
        let source = match declared.kind {
            ResourceType::Filesystem => ResourceSource::Mount { path: "/".to_owned(), read_only: false },
            ResourceType::ApiEndpoint => ResourceSource::Value("https://example.com".to_owned()),
            ResourceType::ConnectionString | ResourceType::Credential => {
                ResourceSource::ForServer { secret: String::new(), key: String::new() }
            }
        };
        BoundResource { name: declared.name.clone(), kind: declared.kind, source }
    };
    Run {
        run_key: String::new(),
        job: None,
        skill_name: skill.name.clone(),
        skill: skill.spec.clone(),
        revision: Digest::of_bytes(b""),
        goal: String::new(),
        limits: EffectiveLimits::DEFAULT,
        resources: skill.spec.resources.iter().map(bound).collect(),
        context_window: 0,
        continues: None,
        people: true,
        pins: None,
        tenant_tools: Vec::new(),
        allowed_effects: None,
        decisions: Decisions::Log,
        depth: 1,
        can_have_children: true,
        has_notes: true,
        max_output: 0,
    }
}

fn shown(tool: CatalogueTool) -> SkillTool {
    let CatalogueTool { name, description, input_schema, .. } = tool;
    SkillTool { name, description, input_schema }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const SKILL: &str = "apiVersion: bloomery.dev/v1alpha1
kind: Skill
metadata: {name: desk}
spec:
  displayName: The desk
  problem: {statement: Help}
  policy: {tools: {allowed: ['read_*', note], blocked: [read_secret, write_file]}}
  resources:
    - {name: notes, type: filesystem, required: true, description: The notes}
    - {name: key, type: credential}
  features:
    - {name: brief, testScenario: 'Given a question, when it is asked', expectedResult: One sentence}
    - {name: letters, testScenario: 'Given a letter, when it is written', expectedResult: A greeting, optional: true}
";

    fn memory(skills: &[(&str, &str)]) -> TempDir {
        let memory = tempfile::tempdir().unwrap();
        for (name, text) in skills {
            fs::create_dir(memory.path().join(name)).unwrap();
            fs::write(memory.path().join(name).join("skill.yaml"), text).unwrap();
        }
        memory
    }

    #[test]
    fn a_skill_with_errors_is_listed_with_its_fault() {
        let memory = memory(&[("desk", SKILL), ("broken", "kind: Skill")]);
        let states = states(memory.path());
        let find = |name: &str| states.iter().find(|state| state.name == name).unwrap();
        assert_eq!((find("desk").display_name.as_deref(), &find("desk").fault), (Some("The desk"), &None));
        assert!(find("broken").fault.is_some());
        assert_eq!(find("sw-dev-agent").fault, None);
    }

    #[test]
    fn a_state_has_the_resources_and_features_of_the_skill() {
        let memory = memory(&[("desk", SKILL)]);
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
    fn the_policy_decides_on_the_tools_of_the_server_and_the_core_tools() {
        let memory = memory(&[("desk", SKILL)]);
        let loaded = skill::find(memory.path(), "desk", false, &[]).unwrap().loaded;
        let listed = ["read_order", "note", "read_secret", "refund"].map(|name| ListedTool {
            name: name.to_owned(),
            input_schema: serde_json::json!({"type": "object"}),
            ..ListedTool::default()
        });
        let tools = allowed_tools(&loaded, listed.to_vec());
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        for (tool, is_expected) in [
            ("read_order", true),
            ("note", true),
            ("read_secret", false),
            ("refund", false),
            ("list_files", true),
            ("write_file", false),
            ("ask_user", true),
        ] {
            assert_eq!(names.contains(&tool), is_expected, "{tool}: {names:?}");
        }
    }

    #[test]
    fn a_skill_without_a_server_has_core_tools() {
        let memory = memory(&[("desk", SKILL)]);
        let tools = tools(&RunOptions::new(memory.path()), "desk").unwrap();
        assert!(tools.iter().any(|tool| tool.name == "ask_user"), "{tools:?}");
    }
}
