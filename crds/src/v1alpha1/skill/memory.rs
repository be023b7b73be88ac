//! The memory that the Jobs of a Skill share.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory that the Jobs of a Skill share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// The use of the memory bank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<BankUse>,
}

/// The use of the memory bank: the notes that the Jobs of a Skill share. With `read`, the first prompt contains the core notes,
/// and the agent can read the others. With `write`, the agent can also change notes, which all later Jobs read. With `"off"`,
/// the agent cannot use the bank; the quotes are needed, because YAML reads `off` as `false`. Default: `read`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum BankUse {
    /// The agent cannot use the bank.
    Off,
    /// The agent can read notes.
    #[default]
    Read,
    /// The agent can read and write notes.
    Write,
}
