//! Remarks for the author of a Skill: parts of the Skill that have no effect, or that do not match the server.

use super::expectations::{self, Omission};
use super::tool_rules::ToolRules;
use crate::core_tools;
use crate::tool::{self, CatalogueTool};
use bloomery_crds::report::{MAX_REMARK_BYTES, MAX_REMARKS};
use bloomery_crds::text::bounded;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{OutputField, SkillSpec, ToolDeclaration, ToolInput, ToolOutput, ValueType};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns all remarks, the most severe first, within the bounds of the status.
pub(super) fn remarks(
    skill: &SkillSpec,
    tools: &[CatalogueTool],
    without_room: &[String],
    rules: &BTreeMap<String, ToolRules>,
) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for (tool, rules) in rules {
        remarks.extend(rules.errors().map(|error| format!("A condition of the tool {tool} cannot be used: {error}.")));
    }
    for declared in skill.tools.iter().filter(|declared| !core_tools::is_reserved(&declared.name)) {
        if !tools.iter().any(|tool| matches(&declared.name, &tool.name)) {
            let name = &declared.name;
            remarks.push(format!("The MCP server does not list the tool {name}, which the Skill declares."));
        }
        let described = tools.iter().filter(|tool| matches(&declared.name, &tool.name));
        for tool in described {
            remarks.extend(input_differences(declared, tool));
            // All declarations of a tool add inputs, but only the most exact one describes the output.
            let describes_output = skill.declaration_of(&tool.name) == Some(declared);
            let output = declared.output.as_ref().filter(|_| describes_output);
            remarks.extend(output.into_iter().flat_map(|output| output_differences(output, tool)));
        }
    }
    if !without_room.is_empty() {
        let quoted: Vec<String> = without_room.iter().map(|rule| format!("{rule:?}")).collect();
        remarks.push(format!(
            "The prompt has no room for these guardrails; only the finalization gate checks them: {}.",
            quoted.join(", ")
        ));
    }
    remarks
        .extend(expectations::omissions(skill).iter().map(|Omission { path, message }| format!("{path}: {message}.")));
    remarks.truncate(MAX_REMARKS);
    remarks.iter().map(|remark| bounded(remark, MAX_REMARK_BYTES)).collect()
}

/// Returns the differences between the declared and the listed inputs.
fn input_differences(declared: &ToolDeclaration, listed: &CatalogueTool) -> Vec<String> {
    let tool = &listed.name;
    let required = tool::required_fields(&listed.input_schema);
    let input_difference = |input: &ToolInput| {
        let difference = field_difference((&input.name, input.kind), &listed.input_schema, "argument", tool);
        if difference.is_some() {
            return difference;
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
    declared.inputs.iter().filter_map(input_difference).collect()
}

/// Returns the differences between the declared and the listed output.
fn output_differences(declared: &ToolOutput, listed: &CatalogueTool) -> Vec<String> {
    let tool = &listed.name;
    let Some(schema) = &listed.output_schema else {
        return vec![format!("The MCP server lists no output schema of the tool {tool}, which the Skill declares.")];
    };
    let listed_type = schema.get("type").and_then(Value::as_str);
    if let (Some(listed_type), Some(declared_type)) = (listed_type, declared.kind)
        && listed_type != declared_type.to_string()
    {
        return vec![format!(
            "The output of the tool {tool} is {listed_type}, and the Skill declares {declared_type}."
        )];
    }
    let required = tool::required_fields(schema);
    let difference = |field: &OutputField| {
        let only_skill_requires = field.required == Some(true) && !required.contains(&field.name.as_str());
        field_difference((&field.name, field.kind), schema, "returned field", tool).or_else(|| {
            let message = || {
                format!(
                    "The output of the tool {tool} does not require {}, which the Skill declares required.",
                    field.name
                )
            };
            only_skill_requires.then(message)
        })
    };
    declared.fields.iter().filter_map(difference).collect()
}

/// Returns a remark if a schema does not have the field, or has it with another type. `role` names the kind of field.
fn field_difference((name, kind): (&str, ValueType), schema: &Value, role: &str, tool: &str) -> Option<String> {
    let Some(property) = schema.get("properties").and_then(|properties| properties.get(name)) else {
        return Some(format!("The tool {tool} has no {role} {name}, which the Skill declares."));
    };
    let listed_type = property.get("type").and_then(Value::as_str)?;
    let declared_type = kind.to_string();
    (listed_type != declared_type).then(|| {
        format!("The {role} {name} of the tool {tool} is {listed_type}, and the Skill declares {declared_type}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::fixture;
    use crate::tool::ListedTool;
    use rstest::rstest;
    use serde_json::json;

    /// Returns the remarks about a tool with this declared output and this listed output schema.
    fn remarks_about(declared: &Value, listed: Option<Value>) -> Vec<String> {
        let mut run = fixture::run();
        run.skill.tools = vec![serde_json::from_value(json!({"name": "find", "output": declared})).unwrap()];
        let tool = ListedTool { name: "find".into(), output_schema: listed, ..fixture::listed()[0].clone() };
        let tools = catalogue::fix(&run, vec![tool]);
        remarks(&run.skill, &tools, &[], &BTreeMap::new())
    }

    #[test]
    fn only_the_most_exact_declaration_describes_the_output() {
        let mut run = fixture::run();
        let field = |name: &str| json!({"fields": [{"name": name, "type": "string"}]});
        let declared = json!([{"name": "*", "output": field("other")}, {"name": "find", "output": field("id")}]);
        run.skill.tools = serde_json::from_value(declared).unwrap();
        let output = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        let tool = ListedTool { name: "find".into(), output_schema: Some(output), ..fixture::listed()[0].clone() };
        let tools = catalogue::fix(&run, vec![tool]);
        let about_output = remarks(&run.skill, &tools, &[], &BTreeMap::new()).into_iter();
        let about_find: Vec<String> = about_output.filter(|remark| remark.contains("tool find ")).collect();
        assert_eq!(about_find, [""; 0]);
    }

    #[rstest]
    #[case::as_declared(
        json!({"type": "object", "fields": [{"name": "id", "type": "string", "required": true}, {"name": "note", "type": "string"}]}),
        Some(json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "note": {"type": "string"}}})),
        &[]
    )]
    #[case::no_schema(json!({"type": "object"}), None, &["The MCP server lists no output schema of the tool find, which the Skill declares."])]
    #[case::another_type(
        json!({"type": "array"}), Some(json!({"type": "object"})),
        &["The output of the tool find is object, and the Skill declares array."]
    )]
    #[case::other_fields(
        json!({"fields": [
            {"name": "id", "type": "string"}, {"name": "total", "type": "number", "required": true}, {"name": "state", "type": "string"},
        ]}),
        Some(json!({"type": "object", "properties": {"id": {"type": "integer"}, "total": {"type": "number"}}})),
        &[
            "The returned field id of the tool find is integer, and the Skill declares string.",
            "The output of the tool find does not require total, which the Skill declares required.",
            "The tool find has no returned field state, which the Skill declares.",
        ]
    )]
    fn differences_between_declared_and_listed_output_are_remarks(
        #[case] declared: Value,
        #[case] listed: Option<Value>,
        #[case] expected: &[&str],
    ) {
        assert_eq!(remarks_about(&declared, listed), expected);
    }
}
