//! Summaries of bound file systems in the first prompt.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Summaries of the bound file systems in the first prompt. They are short and written once; the agent can read more with
/// its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// True if the prompt contains the upper levels of each file system, with a note about omitted entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_structure: Option<bool>,
    /// True if the prompt contains the last changed files of each file system, and the end of the git log if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent_changes: Option<bool>,
}
