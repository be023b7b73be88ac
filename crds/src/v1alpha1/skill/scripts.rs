//! The scripts of a Skill.

use super::super::shared::duration_schema;
use kube::KubeSchema;
use kube::core::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The scripts of a Skill. Each is a tool of its Jobs. They run in a container of their own in the worker's pod, which has the file
/// systems that the Job binds, but no token, no key and no memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scripts {
    /// The image with the interpreters of the scripts.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// The contents of the scripts, by file name, such as `check.sh` or `check.py`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8, "additionalProperties" = {"type": "string", "minLength": 1, "maxLength": 4096}))]
    pub files: BTreeMap<String, String>,
    /// The name of a ConfigMap of the namespace with more scripts. The revision contains their texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub config_map: Option<String>,
    /// The time that a script may take, such as `30s`, at most `4m`. Default: 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub timeout: Option<Duration>,
}
