//! Calls of tools.

use crate::amount::Amount;
use bloomery_crds::canonical::CanonicalJson;
use bloomery_crds::v1alpha1::GateReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The id of a tool call, unique within a Job: the `seq` of the answer that requested it, and its index in that answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallId(pub String);

impl CallId {
    /// Returns the id of the call at `index` of the answer logged at `seq`.
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
    /// The canonical JSON object. The gate rules on it, and the worker sends it.
    Canonical(CanonicalJson),
    /// The model's text has no canonical form.
    Malformed {
        /// The reason, for the model.
        reason: String,
    },
}

/// A reason for a ruling of the pre-tool gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RulingReason {
    /// The layer of the gate.
    pub layer: GateReason,
    /// The reason, for the model and for people.
    pub detail: String,
    /// The approver who must approve, if the layer holds the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    /// The rule, such as `policy.limits[0]`, if its `detail` may change between two rulings on the same call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl RulingReason {
    /// Returns whether two reasons are those of the same rule. An approval that lifts one of them lifts the other.
    pub fn is_same_rule(&self, other: &Self) -> bool {
        let has_rule = self.rule.is_some() && self.rule == other.rule;
        self == other || has_rule && (self.layer, &self.approver) == (other.layer, &other.approver)
    }
}

/// The answer of the ledger of the Skill to the reservation of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationAnswer {
    /// Whether the call counts in the ledger.
    pub reserved: bool,
    /// Whether it was to be reserved even beyond a limit, because people have approved it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// The amounts that other calls had spent, by limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<LimitUse>,
    /// The reason why the ledger could not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// The amount that other calls had spent of a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitUse {
    /// The position in `policy.limits`.
    pub limit: usize,
    /// The sum, or the number of calls.
    pub used: Amount,
}

/// A progress notification, or a line of the server's log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress {
    /// The progress so far, in a unit of the server's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The progress at the end of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// The severity of a log line, such as `warning`; none for a progress notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The message, cut to its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
