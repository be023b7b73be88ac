//! What a Skill's Jobs leave for one another (seed 003, "Memory Bank").

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the Jobs of a Skill leave for one another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// What Jobs do with the memory bank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<BankUse>,
}

/// What Jobs do with the memory bank, notes that they share: `read` begins each Job with the core notes and lets it read
/// the others, `write` lets it change them too, `off` (in quotes, YAML takes it for `false`) does neither. Default `read`,
/// since what one Job writes is read by all later ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum BankUse {
    /// Nothing.
    Off,
    /// They read it.
    #[default]
    Read,
    /// They read it and write to it.
    Write,
}
