//! What of a Skill does not hold as it is written, for the people who wrote it.

use super::tool_rules::ToolRules;
use crate::gate::core_tools;
use crate::tool::CatalogueTool;
use bloomery_crds::report::{MAX_REMARK, MAX_REMARKS};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{SkillSpec, ToolDeclaration, ToolInput};
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that is to be remarked, the gravest first, bounded.
pub(super) fn of(
    skill: &SkillSpec,
    tools: &[CatalogueTool],
    beyond_prompt: &[String],
    rules: &BTreeMap<String, ToolRules>,
) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for (tool, rules) in rules {
        remarks.extend(rules.faults().map(|fault| format!("A condition of the tool {tool} cannot be used: {fault}.")));
    }
    for declared in skill.tools.iter().filter(|declared| !core_tools::is_reserved(&declared.name)) {
        match tools.iter().find(|tool| tool.name == declared.name) {
            None => remarks
                .push(format!("The MCP server does not list the tool {}, of which the Skill speaks.", declared.name)),
            Some(tool) => remarks.extend(differences(declared, tool)),
        }
    }
    if !beyond_prompt.is_empty() {
        let quoted: Vec<String> = beyond_prompt.iter().map(|rule| format!("{rule:?}")).collect();
        remarks.push(format!(
            "The prompt has no room for these guardrails, only the finalization gate checks them: {}.",
            quoted.join(", ")
        ));
    }
    remarks.truncate(MAX_REMARKS);
    remarks.iter().map(|remark| bounded(remark, MAX_REMARK)).collect()
}

fn differences(declared: &ToolDeclaration, listed: &CatalogueTool) -> Vec<String> {
    let required = listed.required();
    let of_input = |input: &ToolInput| {
        let tool = &declared.name;
        let Some(property) = listed.input_schema.get("properties").and_then(|properties| properties.get(&input.name))
        else {
            return Some(format!("The tool {tool} has no argument {}, which the Skill declares.", input.name));
        };
        let kind = property.get("type").and_then(Value::as_str);
        if let Some(kind) = kind.filter(|kind| *kind != input.kind.to_string()) {
            return Some(format!(
                "The argument {} of the tool {tool} is {kind}, and the Skill declares {}.",
                input.name, input.kind
            ));
        }
        let is_required = required.contains(&input.name.as_str());
        match (is_required, input.required.unwrap_or(false)) {
            (true, false) => {
                Some(format!("The tool {tool} requires {}, which the Skill declares optional.", input.name))
            }
            (false, true) => {
                Some(format!("The tool {tool} does not require {}, which the Skill declares required.", input.name))
            }
            _ => None,
        }
    };
    declared.inputs.iter().filter_map(of_input).collect()
}
