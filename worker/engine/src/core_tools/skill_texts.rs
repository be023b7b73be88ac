//! The core tools that read texts of the Skill: sections of its documentation, and the features that the prompt does not show completely.
//! A call of `apply_feature` also records in the log that the agent applies the feature.

use super::definition::{ToolEffect, core_tool, one_of, read_arguments};
use crate::rules::features;
use crate::run::Run;
use crate::tool::CatalogueTool;
pub use bloomery_crds::core_tools::{APPLY_FEATURE, SKILL_DOC};
use bloomery_crds::docs::Docs;
use bloomery_crds::nearest::did_you_mean;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::SkillSpec;
use serde::Deserialize;
use serde_json::json;

/// The longest reference to a section, in characters.
const MAX_REFERENCE_CHARS: usize = 256;

/// The longest name in an error, in bytes.
const MAX_SHOWN_BYTES: usize = 64;

/// Returns the tools for the texts that the Skill has.
pub(super) fn offered(run: &Run) -> Vec<CatalogueTool> {
    let docs = run.skill.docs.is_some().then(skill_doc);
    let features = features::read_on_demand(&run.skill);
    docs.into_iter().chain((!features.is_empty()).then(|| apply_feature(&features))).collect()
}

pub(super) fn skill_doc() -> CatalogueTool {
    core_tool(
        SKILL_DOC,
        "Reads a section of your documentation, and lists the sections in it.",
        json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "section": {
                    "type": "string", "minLength": 1, "maxLength": MAX_REFERENCE_CHARS,
                    "description": "The section, such as #refunds, or #refunds/limits for one within another. Without it, the call returns the text before the first section, and lists all sections.",
                },
            },
        }),
        ToolEffect::None,
    )
}

pub(super) fn apply_feature(names: &[&str]) -> CatalogueTool {
    core_tool(
        APPLY_FEATURE,
        "Returns the test of a feature, the expected result, and what implements it. Call it before you apply the feature.",
        json!({
            "type": "object", "required": ["feature"], "additionalProperties": false,
            "properties": {"feature": one_of(names, "The name of the feature.")},
        }),
        ToolEffect::None,
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DocArguments {
    #[serde(default)]
    section: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureArguments {
    feature: String,
}

/// Answers a call of a tool of this family, or returns nothing for another tool. An error is a sentence for the model.
pub fn answer(skill: &SkillSpec, tool: &str, arguments: &str) -> Option<Result<String, String>> {
    match tool {
        SKILL_DOC => {
            Some(read_arguments(arguments).and_then(|DocArguments { section }| read_docs(skill, section.as_deref())))
        }
        APPLY_FEATURE => {
            Some(read_arguments(arguments).and_then(|FeatureArguments { feature }| read_feature(skill, &feature)))
        }
        _ => None,
    }
}

fn read_docs(skill: &SkillSpec, section: Option<&str>) -> Result<String, String> {
    let docs = Docs::new(skill.docs.as_deref().ok_or("The Skill has no documentation.")?);
    let Some(section) = section else {
        let outline: Vec<String> = docs.outline().collect();
        let parts = [docs.introduction.to_owned(), outline.join("\n")];
        return Ok(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"));
    };
    docs.read(section).ok_or_else(|| {
        let near = docs.nearest(section).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
        format!(
            "The documentation has no section {:?}.{near} Call {SKILL_DOC} without section for a list of all.",
            bounded(section, MAX_SHOWN_BYTES)
        )
    })
}

fn read_feature(skill: &SkillSpec, name: &str) -> Result<String, String> {
    let feature = skill.features.iter().find(|feature| feature.name == name);
    feature.map(features::details).ok_or_else(|| {
        let near = did_you_mean(name, skill.features.iter().map(|feature| feature.name.as_str()));
        format!("There is no feature {:?}.{near}", bounded(name, MAX_SHOWN_BYTES))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::Value;

    fn skill() -> SkillSpec {
        serde_json::from_value(json!({
            "problem": {"statement": "Help"},
            "docs": "How the shop works.\n# Refunds\nWithin 30 days.\n## Limits\nAt most 500.\n",
            "features": [
                {"name": "refund", "testScenario": "Given an order", "expectedResult": "It is refunded"},
                {
                    "name": "express", "testScenario": "Given a hurry", "expectedResult": "It is faster", "optional": true,
                    "ext": {"skillMdRef": "#refunds"},
                },
            ],
        }))
        .unwrap()
    }

    #[rstest]
    #[case::a_section(SKILL_DOC, json!({"section": "#limits"}), Ok("## Limits\nAt most 500."))]
    #[case::with_sections_in_it(
        SKILL_DOC, json!({"section": "Refunds"}), Ok("# Refunds\nWithin 30 days.\n\nSections in it:\n  - #limits")
    )]
    #[case::all_sections(SKILL_DOC, json!({}), Ok("How the shop works.\n\n- #refunds\n  - #limits"))]
    #[case::no_section(
        SKILL_DOC, json!({"section": "#limit"}),
        Err("The documentation has no section \"#limit\". Did you mean #limits? Call skill_doc without section for a list of all.")
    )]
    #[case::a_feature(
        APPLY_FEATURE, json!({"feature": "express"}),
        Ok("Given a hurry. Expected: It is faster. Use the section `#refunds`.")
    )]
    #[case::no_feature(
        APPLY_FEATURE, json!({"feature": "expres"}), Err("There is no feature \"expres\". Did you mean \"express\"?")
    )]
    fn a_call_returns_a_text_of_the_skill(
        #[case] tool: &str,
        #[case] arguments: Value,
        #[case] expected: Result<&str, &str>,
    ) {
        let answer = answer(&skill(), tool, &arguments.to_string()).unwrap();
        assert_eq!(answer.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn invalid_arguments_and_other_tools_are_not_answered() {
        for arguments in ["", "[1]", "{\"section\": 1}", "{\"path\": \"a\"}"] {
            let error = answer(&skill(), SKILL_DOC, arguments).unwrap().unwrap_err();
            assert!(error.starts_with("The arguments are invalid: "), "{error}");
        }
        assert_eq!(answer(&skill(), "read_file", "{}"), None);
        let without = SkillSpec { docs: None, ..skill() };
        assert_eq!(answer(&without, SKILL_DOC, "{}").unwrap(), Err("The Skill has no documentation.".to_owned()));
    }
}
