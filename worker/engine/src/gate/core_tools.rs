//! The tools that the worker brings itself, and that no server can take over (seed 000; `engine.md`, section 3).

use crate::tool::{self, CatalogueTool, ToolSource};
use bloomery_crds::v1alpha1::SkillSpec;
use serde_json::{Value, json};

use super::catalogue::core_refusal;

/// Closes a step of a workflow that is no tool.
pub const SUBGOAL_DONE: &str = "subgoal_done";

/// Reads more of a result that was put aside.
pub const FOCUS_READ: &str = "focus_read";

/// Names that mean something to the engine: a server that lists one of them does not get its calls.
const RESERVED: [&str; 4] = ["ask_user", "use_skill", FOCUS_READ, SUBGOAL_DONE];

/// The most that one call of [`FOCUS_READ`] gives, in bytes.
pub const FOCUS_BYTES: u64 = 8 * 1024;

/// Whether a name is never a server's.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The core tools of a Skill: `subgoal_done` where it has workflows, `focus_read` where a server may answer at length.
pub fn offered(skill: &SkillSpec) -> Vec<CatalogueTool> {
    let policy = skill.policy.as_ref();
    let has_workflows = policy.is_some_and(|policy| !policy.workflows.is_empty());
    let tools = policy.and_then(|policy| policy.tools.as_ref());
    [(has_workflows, subgoal_done()), (skill.mcp_server.is_some(), focus_read())]
        .into_iter()
        .filter_map(|(offered, tool)| offered.then_some(tool))
        .map(|tool| CatalogueTool { visible: core_refusal(tools, &tool.name).is_none(), ..tool })
        .collect()
}

fn subgoal_done() -> CatalogueTool {
    core_tool(
        SUBGOAL_DONE,
        "Closes a step of a workflow that is not itself a tool, once a tool's result shows that it is done, or that it \
         does not apply.",
        json!({
            "type": "object", "required": ["step", "evidence"], "additionalProperties": false,
            "properties": {
                "step": {"type": "string", "description": "The step, as the workflow names it."},
                "evidence": {"type": "integer", "minimum": 1, "description": "The number at the end of the tool's result that shows it."},
                "notApplicable": {"type": "boolean", "description": "True where the result shows that the step does not apply."},
            },
        }),
    )
}

fn focus_read() -> CatalogueTool {
    core_tool(
        FOCUS_READ,
        "Reads more of a result of which you were shown an excerpt.",
        json!({
            "type": "object", "required": ["handle"], "additionalProperties": false,
            "properties": {
                "handle": {"type": "string", "description": "The handle in the excerpt."},
                "offset": {"type": "integer", "minimum": 0, "description": "Where to begin, in bytes. Default 0."},
                "bytes": {"type": "integer", "minimum": 1, "maximum": FOCUS_BYTES, "description": "How much to read. Default all that one call gives."},
            },
        }),
    )
}

/// Core tools change nothing outside.
fn core_tool(name: &str, description: &str, input_schema: Value) -> CatalogueTool {
    CatalogueTool {
        name: name.to_owned(),
        alias: name.to_owned(),
        description: description.to_owned(),
        digest: tool::digest(name, description, &input_schema),
        input_schema,
        source: ToolSource::Core,
        read_only: true,
        idempotent: true,
        visible: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::fixture;
    use crate::gate::schema::Schema;

    #[test]
    fn core_tools_are_offered_where_they_are_of_use_and_blocked_by_name() {
        let mut skill = fixture::skill();
        skill.policy = serde_json::from_value(json!({"workflows": [{"name": "w", "steps": ["a"]}]})).unwrap();
        let names = |skill: &SkillSpec| {
            offered(skill).into_iter().filter(|tool| tool.visible).map(|tool| tool.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&skill), [SUBGOAL_DONE]);
        skill.mcp_server = serde_json::from_value(json!({"service": {"name": "orders", "port": 80}})).unwrap();
        assert_eq!(names(&skill), [SUBGOAL_DONE, FOCUS_READ]);
        skill.policy = serde_json::from_value(json!({"tools": {"allowed": [], "blocked": ["focus_*"]}})).unwrap();
        assert_eq!(names(&skill), [""; 0]);
    }

    #[test]
    fn their_schemas_compile() {
        for tool in [subgoal_done(), focus_read()] {
            let fault = Schema::compile(&tool.input_schema).fault(&json!({"step": 1, "handle": 1})).unwrap();
            assert!(!fault.contains("cannot be used"), "{fault}");
        }
    }
}
