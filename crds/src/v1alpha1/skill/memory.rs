//! The memory that the Jobs of a Skill share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::IntoEnumIterator;

/// The memory that the Jobs of a Skill share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// The use of the memory bank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<BankUse>,
    /// The first content of notes of the memory bank, by name: a core note such as `projectbrief`, or `details/<name>`. The worker of a
    /// Job writes each note that does not exist before the first prompt. A note that exists is never changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 12, "additionalProperties" = {"type": "string", "maxLength": 4096}))]
    #[x_kube(validation = note_names())]
    pub notes: BTreeMap<String, String>,
    /// The core notes that a Job reads at its start. The agent can still read the others. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 6), extend("x-kubernetes-list-type" = "set"))]
    pub scope: Option<Vec<CoreNote>>,
    /// What happens to the Skill's directory in the memory when the Skill is deleted. `Delete` removes it, after the running Jobs
    /// of the Skill have ended. If the directory cannot be removed within five minutes, the Skill is deleted all the same, and an
    /// Event says what stays. Default: `Retain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// The size of the Skill's directory above which no new Job of the Skill starts, such as `2Gi`. Running Jobs continue. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), regex(pattern = r"^[1-9][0-9]{0,12}(k|M|G|T|Ki|Mi|Gi|Ti)?$"))]
    pub soft_limit: Option<String>,
}

/// The rule for the names of notes. `bloomery_files::bank` has the same grammar, with `.md` at the end.
fn note_names() -> Rule {
    Rule::new(
        "self.all(name, name.matches('^(projectbrief|productContext|systemPatterns|techContext|activeContext|progress\
         |details/[A-Za-z0-9_-][A-Za-z0-9._-]{0,63})$'))",
    )
    .message(
        "each name must be projectbrief, productContext, systemPatterns, techContext, activeContext, progress, or details/NAME, where NAME \
         has at most 64 letters, digits, dots, - and _, and does not begin with a dot",
    )
}

/// A core note of the memory bank.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
    strum::EnumString,
)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum CoreNote {
    /// The purpose of the work.
    Projectbrief,
    /// The users of the work, and their needs.
    ProductContext,
    /// How the parts of the work fit together.
    SystemPatterns,
    /// The technologies, and how to use them.
    TechContext,
    /// The current state of the work.
    ActiveContext,
    /// The completed work, and the remaining work.
    Progress,
}

impl CoreNote {
    /// Returns the names of all core notes, in the order in which agents read them.
    pub fn names() -> String {
        Self::iter().map(|note| note.to_string()).collect::<Vec<_>>().join(", ")
    }
}

/// What happens to the directory of a Skill when the Skill is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum ReclaimPolicy {
    /// The directory stays in the memory.
    #[default]
    Retain,
    /// The directory is removed.
    Delete,
}

/// The measured size of a Skill's directory in the memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryUsage {
    /// The sum of the sizes of all files, in bytes.
    pub bytes: u64,
    /// The part of each directory, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MemoryUsage::MAX_DIRECTORIES))]
    pub directories: Vec<DirectoryUsage>,
    /// The time at which the operator received the measurement from a worker.
    pub measured: Time,
}

impl MemoryUsage {
    /// The largest number of directories.
    pub const MAX_DIRECTORIES: usize = 8;
}

/// The measured size of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryUsage {
    /// The name of the directory, such as `jobs`. `other` for all that is in no known directory.
    #[schemars(length(max = DirectoryUsage::MAX_NAME_BYTES))]
    pub name: String,
    /// The sum of the sizes of its files, in bytes.
    pub bytes: u64,
}

impl DirectoryUsage {
    /// The longest name, in bytes.
    pub const MAX_NAME_BYTES: usize = 32;
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
