//! What a Job binds, as events tell of it.

use bloomery_crds::v1alpha1::ResourceType;
use serde::{Deserialize, Serialize};

/// A resource that the Job binds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundName {
    /// The name that the Skill gives it.
    pub name: String,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: ResourceType,
    /// What prompts may say of it: a mount path, a URL. Never of a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendering: Option<String>,
}
