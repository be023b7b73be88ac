//! The ends of child Jobs.

use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The end of a child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildEnd {
    /// The code of its outcome.
    pub code: OutcomeCode,
    /// The message of its outcome.
    pub message: String,
    /// The text of its answer, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The fields of its answer.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// The budgets that it and its own children consumed.
    pub usage: Usage,
}
