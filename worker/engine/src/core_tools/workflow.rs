//! `subgoal_done`: closes a workflow step. The engine itself answers the call.

use super::definition::{ToolEffect, core_tool};
use crate::run::Run;
use crate::tool::CatalogueTool;
pub use bloomery_crds::core_tools::SUBGOAL_DONE;
use serde_json::json;

/// Returns `subgoal_done` if the Skill has workflows.
pub(super) fn offered(run: &Run) -> Vec<CatalogueTool> {
    let has_workflows = run.skill.policy.as_ref().is_some_and(|policy| !policy.workflows.is_empty());
    has_workflows.then(subgoal_done).into_iter().collect()
}

pub(super) fn subgoal_done() -> CatalogueTool {
    core_tool(
        SUBGOAL_DONE,
        "Closes a workflow step that is not a tool, when a tool result shows that the step is done or does not apply.",
        json!({
            "type": "object", "required": ["step", "evidence"], "additionalProperties": false,
            "properties": {
                "step": {"type": "string", "description": "The step, as named in the workflow."},
                "evidence": {"type": "integer", "minimum": 1, "description": "The number at the end of the tool result that shows it."},
                "notApplicable": {"type": "boolean", "description": "True if the result shows that the step does not apply."},
            },
        }),
        ToolEffect::None,
    )
}
