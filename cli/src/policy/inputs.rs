//! The inputs of the Job of a case, and the tools that its server lists.

use super::test_file::Case;
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::nearest::did_you_mean;
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::scripts;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{ResourceType, SkillSpec, ToolDeclaration};
use bloomery_embed::run::skill::LoadedSkill;
use bloomery_engine::condition::{Condition, written};
use bloomery_engine::decisions::Decisions;
use bloomery_engine::run::Run;
use bloomery_engine::tool::ListedTool;
use serde_json::{Map, Value, json};

/// The context window, in tokens. No result of a case fills it.
const CONTEXT_WINDOW: u64 = 100_000_000;

/// Refuses an intent that the Skill does not have: its calls would not be narrowed.
fn check_intent(case: &Case, skill: &SkillSpec) -> Result<(), String> {
    let Some(intent) = &case.intent else { return Ok(()) };
    let ids = || skill.intents.iter().flat_map(|intents| &intents.supported).map(|intent| intent.id.as_str());
    if ids().any(|id| id == intent) {
        return Ok(());
    }
    Err(format!("the Skill has no intent {intent:?}.{}", did_you_mean(intent, ids())))
}

/// Returns the inputs of the Job of a case.
///
/// # Errors
/// If the Skill does not have the intent or a resource of the case, or the resource is secret.
pub fn run_of(case: &Case, skill: &LoadedSkill) -> Result<Run, String> {
    check_intent(case, &skill.spec)?;
    Ok(Run {
        run_key: "policy-test".to_owned(),
        job: None,
        skill_name: skill.name.clone(),
        skill: skill.spec.clone(),
        revision: Digest::of_bytes(&skill.source.bytes),
        goal: case.goal.clone(),
        limits: EffectiveLimits::resolve(skill.spec.limits(), None),
        resources: resources_of(case, &skill.spec)?,
        context_window: CONTEXT_WINDOW,
        continues: None,
        pins: None,
        tenant_tools: Vec::new(),
        allowed_effects: None,
        people: true,
        decisions: Decisions::Log,
        depth: 1,
        can_have_children: true,
        has_notes: false,
        max_output: 4096,
    })
}

fn resources_of(case: &Case, skill: &SkillSpec) -> Result<Vec<BoundResource>, String> {
    let names = || skill.resources.iter().map(|declared| declared.name.as_str());
    if let Some(unknown) = case.resources.keys().find(|name| names().all(|declared| declared != *name)) {
        return Err(format!("the Skill has no resource {unknown:?}.{}", did_you_mean(unknown, names())));
    }
    let mut bound = Vec::new();
    for declared in &skill.resources {
        let Some(value) = case.resources.get(&declared.name).cloned() else { continue };
        let source = match declared.kind {
            ResourceType::Filesystem => ResourceSource::Mount { path: value, read_only: false },
            ResourceType::ApiEndpoint => ResourceSource::Value(value),
            ResourceType::ConnectionString | ResourceType::Credential => {
                return Err(format!("the resource {:?} is secret: leave it out", declared.name));
            }
        };
        bound.push(BoundResource { name: declared.name.clone(), kind: declared.kind, source });
    }
    Ok(bound)
}

/// Returns the tools of a Job: those in the list of the server, and the scripts of the Skill, which win. Without a list, the tools that
/// the Skill declares.
pub fn tools(skill: &SkillSpec, listed: Option<&[ListedTool]>) -> Vec<ListedTool> {
    let scripts = scripts::tools_of(skill);
    let mut tools = listed.map_or_else(|| declared_tools(skill), <[ListedTool]>::to_vec);
    tools.retain(|tool| !scripts.contains_key(&tool.name));
    let input_schema: Value = serde_json::from_str(scripts::INPUT_SCHEMA).unwrap_or_default();
    let script = |name| ListedTool { name, input_schema: input_schema.clone(), ..ListedTool::default() };
    tools.extend(scripts.into_keys().map(script));
    tools
}

/// Returns the tools that a Skill declares, as a server would list them. A tool without declared inputs has those that the rules name, and
/// perhaps others.
fn declared_tools(skill: &SkillSpec) -> Vec<ListedTool> {
    let conditions: Vec<(&str, Condition)> = written(skill)
        .into_iter()
        .filter_map(|written| Some((written.tool, Condition::compile_as(written.text, written.dialect).ok()?)))
        .collect();
    let named_by_rules = |tool: &ToolDeclaration| -> Map<String, Value> {
        let of_tool = conditions.iter().filter(|(pattern, _)| matches(pattern, &tool.name));
        let names = of_tool.flat_map(|(_, condition)| condition.arguments());
        names.chain(tool.sends.iter().map(String::as_str)).map(|name| (name.to_owned(), json!({}))).collect()
    };
    let is_one = |tool: &&ToolDeclaration| !tool.name.ends_with('*');
    let listed = |tool: &ToolDeclaration| {
        let inputs = tool.inputs.iter().map(|input| (input.name.clone(), json!({"type": input.kind})));
        let properties: Map<String, Value> = inputs.collect();
        let schema = if properties.is_empty() {
            json!({"type": "object", "properties": named_by_rules(tool), "patternProperties": {}})
        } else {
            json!({"type": "object", "properties": properties})
        };
        ListedTool { name: tool.name.clone(), input_schema: schema, ..ListedTool::default() }
    };
    skill.tools.iter().filter(is_one).map(listed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_of_a_skill_are_tools() {
        let scripts = json!({"image": "busybox", "files": {"check.sh": "exit 0"}});
        let declared = json!([{"name": "script_check"}, {"name": "get"}]);
        let spec = json!({"problem": {"statement": "x"}, "tools": declared, "scripts": scripts});
        let skill: SkillSpec = serde_json::from_value(spec).unwrap();
        let names = |listed: Option<&[ListedTool]>| -> Vec<String> {
            tools(&skill, listed).into_iter().map(|tool| tool.name).collect()
        };
        assert_eq!(names(None), ["get", "script_check"]);
        let listed = [ListedTool { name: "other".into(), ..ListedTool::default() }];
        assert_eq!(names(Some(&listed)), ["other", "script_check"]);
    }
}
