//! The sections of the system prompt for the goal of the Skill, its features and the headers of its documentation.

use crate::core_tools::{APPLY_FEATURE, SKILL_DOC, USE_SKILL};
use crate::rules::features::{self, ListedFeatures};
use crate::shared::Shared;
use crate::stage_prompt::list;
use crate::tool::ToolSource;
use bloomery_crds::docs::Docs;
use bloomery_crds::scripts;
use bloomery_crds::v1alpha1::{FeatureExtension, SkillSpec};

/// The most bytes of the headers of the documentation in the prompt.
const MAX_OUTLINE_BYTES: usize = 1024;

/// Returns the section with the goal of the Skill.
pub(super) fn goal(skill: &SkillSpec) -> Option<String> {
    Some(format!("# Goal of the Skill\n{}", skill.goal.as_deref()?.trim()))
}

/// Returns the sections of the features and of the documentation. They name a tool only if the Job has it.
pub(super) fn sections(shared: &Shared) -> Vec<String> {
    let skill = &shared.run.skill;
    let has_tool = |name: &str| {
        let visible = shared.catalogue.visible().iter();
        visible.filter(|tool| tool.source == ToolSource::Core).any(|tool| tool.name == name)
    };
    let can_apply = has_tool(APPLY_FEATURE);
    let required = required_section(&features::required(skill), can_apply);
    let optional = optional_section(&features::optional(skill), can_apply);
    let means = means_section(shared, has_tool(USE_SKILL));
    let docs = skill.docs.as_deref().filter(|_| has_tool(SKILL_DOC)).map(docs_section);
    [required, optional, means, docs].into_iter().flatten().collect()
}

fn required_section(ListedFeatures { lines, without_room }: &ListedFeatures<'_>, can_apply: bool) -> Option<String> {
    if lines.is_empty() && without_room.is_empty() {
        return None;
    }
    let read = if can_apply { format!(" Read each with {APPLY_FEATURE} before you begin.") } else { String::new() };
    let further = further("These apply too, and there is no room here for their tests", without_room, &read);
    Some(format!("# Features\nEach of them applies to every goal:\n{}{further}", list(lines)))
}

fn optional_section(ListedFeatures { lines, without_room }: &ListedFeatures<'_>, can_apply: bool) -> Option<String> {
    if lines.is_empty() && without_room.is_empty() {
        return None;
    }
    let call = if can_apply {
        format!(" Before you apply one, call {APPLY_FEATURE}: it returns the expected result, and what implements it.")
    } else {
        String::new()
    };
    let further = further("There is no room here for the tests of these", without_room, "");
    Some(format!(
        "# Optional features\nApply one of them if the goal refers to it or it fits.{call}\n{}{further}",
        list(lines)
    ))
}

/// Returns a paragraph about the features without room, if there are any.
fn further(beginning: &str, without_room: &[&str], end: &str) -> String {
    if without_room.is_empty() { String::new() } else { format!("\n\n{beginning}: {}.{end}", without_room.join(", ")) }
}

/// Returns the section about the tools that invoke the Skills and run the scripts of features.
fn means_section(shared: &Shared, can_invoke: bool) -> Option<String> {
    let skill = &shared.run.skill;
    let extensions = || skill.features.iter().filter_map(|feature| feature.ext.as_ref());
    let has_subskill = extensions().any(|FeatureExtension { subskill, .. }| subskill.is_some());
    let invoke = (can_invoke && has_subskill).then(|| format!("Invoke a Skill that a feature names with {USE_SKILL}."));
    let tools = scripts::tools_of(skill);
    let of_script = |FeatureExtension { script, .. }: &FeatureExtension| {
        let file = script.as_deref()?;
        let (tool, _) = tools.iter().find(|(_, of_tool)| **of_tool == file)?;
        let is_visible = shared.catalogue.visible().iter().any(|visible| visible.name == *tool);
        is_visible.then(|| format!("Run the script `{file}` with the tool {tool}."))
    };
    let mut lines: Vec<String> = invoke.into_iter().collect();
    for line in extensions().filter_map(of_script) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    (!lines.is_empty()).then(|| format!("# How to apply features\n{}", lines.join("\n")))
}

fn docs_section(markdown: &str) -> String {
    let (mut shown, mut omitted) = (String::new(), 0_usize);
    for line in Docs::new(markdown).outline() {
        // A later line could seem to belong to another section.
        if omitted > 0 || shown.len() + line.len() >= MAX_OUTLINE_BYTES {
            omitted += 1;
        } else {
            shown.extend(["\n", line.as_str()]);
        }
    }
    let further = match omitted {
        0 => String::new(),
        omitted => format!("\n\nThere is no room here for further sections ({omitted})."),
    };
    format!("# Documentation\n{DOCS} Without section, it lists all of them.{shown}{further}")
}

const DOCS: &str = "You have documentation. Unlike other results of tools, it is a part of your instructions. Read a section \
    with skill_doc when you need it.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::fix_catalogue;
    use crate::conversation::Conversation;
    use crate::fixture;
    use crate::line::{Chain, EventTime};
    use crate::run::Run;
    use crate::tool::ListedTool;
    use serde_json::{Value, json};

    /// Returns the sections of a Skill with these fields.
    fn sections_of(fields: &Value) -> String {
        sections_of_run(fields, false, Vec::new())
    }

    fn listed(name: &str) -> ListedTool {
        ListedTool { name: name.into(), input_schema: json!({"type": "object"}), ..ListedTool::default() }
    }

    fn sections_of_run(fields: &Value, can_have_children: bool, listed: Vec<ListedTool>) -> String {
        let mut run = Run { can_have_children, ..fixture::run() };
        let mut skill = serde_json::to_value(&run.skill).unwrap();
        skill.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        run.skill = serde_json::from_value(skill).unwrap();
        let mut conversation = Conversation::new(run.clone());
        let stamp = EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 0 };
        let (_, entry) = Chain::new("/test").append(fix_catalogue(&run, listed), stamp).unwrap();
        conversation.apply(&entry);
        sections(&conversation.shared).join("\n\n")
    }

    fn feature(name: &str, optional: bool, bytes: usize) -> Value {
        json!({
            "name": name, "testScenario": format!("Given {}, then it works", "x".repeat(bytes)), "expectedResult": "It works",
            "optional": optional, "ext": {"subskill": "find", "skillMdRef": "#refunds"},
        })
    }

    #[test]
    fn the_agent_knows_its_features_and_the_headers_of_its_documentation() {
        let fields = json!({
            "features": [feature("lookup", false, 1), feature("express", true, 1)],
            "docs": "Read me.\n# Refunds\nWithin 30 days.\n## Limits\nAt most 500.\n",
        });
        insta::assert_snapshot!(sections_of(&fields), @r"
        # Features
        Each of them applies to every goal:
        - lookup: Given x, then it works. Expected: It works. Use the Skill `find`; the section `#refunds` may help.

        # Optional features
        Apply one of them if the goal refers to it or it fits. Before you apply one, call apply_feature: it returns the expected result, and what implements it.
        - express: Given x, then it works.

        # Documentation
        You have documentation. Unlike other results of tools, it is a part of your instructions. Read a section with skill_doc when you need it. Without section, it lists all of them.
        - #refunds
          - #limits
        ");
    }

    #[test]
    fn the_tools_that_invoke_skills_and_run_scripts_are_named_if_the_job_has_them() {
        let mut scripted = feature("check", false, 1);
        scripted["ext"] = json!({"script": "check.sh"});
        let fields = json!({
            "features": [feature("lookup", false, 1), scripted], "skills": ["find"],
            "scripts": {"image": "busybox", "files": {"check.sh": "exit 0"}},
        });
        let sections = sections_of_run(&fields, true, vec![listed("script_check")]);
        let how = "# How to apply features\nInvoke a Skill that a feature names with use_skill.\nRun the script `check.sh` with the tool script_check.";
        assert!(sections.ends_with(how), "{sections}");
        let without = sections_of_run(&fields, false, Vec::new());
        assert!(!without.contains("use_skill") && !without.contains("script_check"), "{without}");
    }

    #[test]
    fn a_tool_that_the_policy_blocks_is_not_named() {
        let fields = json!({
            "features": [feature("express", true, 1)], "docs": "# Refunds",
            "policy": {"tools": {"blocked": ["skill_doc", "apply_feature"]}},
        });
        insta::assert_snapshot!(sections_of(&fields), @r"
        # Optional features
        Apply one of them if the goal refers to it or it fits.
        - express: Given x, then it works.
        ");
    }

    #[test]
    fn the_sections_are_bounded_and_say_what_they_do_not_show() {
        let many = |optional: bool| (0..16).map(move |n| feature(&format!("{optional}-{n}"), optional, 480));
        let features: Vec<Value> = many(false).chain(many(true)).collect();
        let docs = (0..500).map(|n| format!("# Section {n}")).collect::<Vec<_>>().join("\n");
        let sections = sections_of(&json!({"features": features, "docs": docs}));
        assert!(sections.len() < 8500, "{}", sections.len());
        for part in [
            "\n\nThese apply too, and there is no room here for their tests: false-6, false-7,",
            "false-15. Read each with apply_feature before you begin.",
            "\n\nThere is no room here for the tests of these: true-3, true-4,",
            "\n- #section-0\n",
            "\n\nThere is no room here for further sections (4",
        ] {
            assert!(sections.contains(part), "{part:?} in {sections}");
        }
    }

    #[test]
    fn a_skill_without_features_and_documentation_has_no_section() {
        assert_eq!(sections_of(&json!({})), "");
        assert_eq!(goal(&fixture::skill()), None);
    }
}
