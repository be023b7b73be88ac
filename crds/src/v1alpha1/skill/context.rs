//! What a conversation knows before it opens (seed 000, "SW Dev: Senior Engineer").

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// What of the file systems that a Job binds is summed up in the first prompt: once, and in few words. The agent looks
/// at more with its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// The upper levels of each, with what of it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_structure: Option<bool>,
    /// The files of each that were changed last, and what git did last where its files are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent_changes: Option<bool>,
}
