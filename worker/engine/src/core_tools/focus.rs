//! The core tool that reads offloaded results.

use super::definition::{ToolEffect, core_tool};
use super::workflow::SUBGOAL_DONE;
use crate::tool::{CatalogueTool, ListedTool};
pub use bloomery_crds::core_tools::FOCUS_READ;
use serde_json::json;

/// The most bytes that one call of [`FOCUS_READ`] returns.
pub const MAX_FOCUS_BYTES: u64 = 8 * 1024;

/// Returns `focus_read` if another tool may have results to offload. Every tool except `subgoal_done` may.
pub(super) fn offered(listed: &[ListedTool], others: &[CatalogueTool]) -> Vec<CatalogueTool> {
    let is_useful = !listed.is_empty() || others.iter().any(|tool| tool.name != SUBGOAL_DONE);
    is_useful.then(focus_read).into_iter().collect()
}

pub(super) fn focus_read() -> CatalogueTool {
    core_tool(
        FOCUS_READ,
        "Reads more of a result that was shown to you as an excerpt.",
        json!({
            "type": "object", "required": ["handle"], "additionalProperties": false,
            "properties": {
                "handle": {"type": "string", "description": "The handle in the excerpt."},
                "offset": {"type": "integer", "minimum": 0, "description": "Where to begin, in bytes. Default: 0."},
                "bytes": {"type": "integer", "minimum": 1, "maximum": MAX_FOCUS_BYTES, "description": "How many bytes to read. Default: as many as one call returns."},
            },
        }),
        ToolEffect::None,
    )
}
