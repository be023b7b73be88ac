//! The scripts of a Skill.

use super::super::shared::duration_schema;
use kube::KubeSchema;
use kube::core::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The scripts of a Skill. Each is a tool of its Jobs: `check.sh` is the tool `script_check`. They run in a container of their own in
/// the worker's pod, which has the file systems that the Job binds, but no token, no key and no memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.files) || has(self.configMap)").message("has no script: add files or configMap"),
    validation = Rule::new("!has(self.timeout) || duration(self.timeout) <= duration('3m')").message("must be at most 3m: the worker waits for a call for at most 4m").field_path(".timeout")
)]
pub struct Scripts {
    /// The image with the interpreters of the scripts: `sh` for `.sh`, `python3` for `.py`, `pwsh` for `.ps1`. Any other file is run
    /// as a program. It runs as the user of the workers, on a read-only root file system.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// The contents of the scripts, by file name, such as `check.sh` or `check.py`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8, "additionalProperties" = {"type": "string", "minLength": 1, "maxLength": 4096}))]
    pub files: BTreeMap<String, String>,
    /// The name of a ConfigMap of the namespace with more scripts. The revision contains their texts. All scripts together have at
    /// most 32 files and 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub config_map: Option<String>,
    /// The time that a script may take, such as `30s`, at most `3m`. The script is killed after it. It takes the place of
    /// `tools[].timeout`. Default: 1m.
    #[serde(default, deserialize_with = "crate::duration::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
    pub timeout: Option<Duration>,
}
