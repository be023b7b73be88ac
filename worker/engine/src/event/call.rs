//! A call of a tool, as events tell of it.

use bloomery_crds::canonical::Document;
use bloomery_crds::v1alpha1::GateReason;
use serde::{Deserialize, Serialize};

/// A tool call, unique within a Job: the `seq` of the answer that asked for it, and its place in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl CallId {
    /// Names the call at `index` of the answer logged at `seq`.
    pub fn new(seq: u64, index: usize) -> Self {
        Self(format!("{seq}-{index}"))
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Arguments {
    /// What is ruled on and sent: an object.
    Canonical(Document),
    /// What the model wrote has no canonical form.
    Malformed {
        /// Why, for the model.
        reason: String,
    },
}

/// Why the pre-tool gate ruled as it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RulingReason {
    /// The layer.
    pub layer: GateReason,
    /// Why, for the model and for people.
    pub detail: String,
    /// Who has to approve, where the layer holds the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
}
