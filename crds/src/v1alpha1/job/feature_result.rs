//! The results of a Job that validates its Skill.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The task of a Job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum JobMode {
    /// The Job works on its goal.
    #[default]
    Run,
    /// The Job tests the features of its Skill. Its goal is for people only.
    Validate,
}

/// The result of the test of a feature.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureResult {
    /// The name of the feature.
    #[schemars(length(max = FeatureResult::MAX_NAME_BYTES))]
    pub name: String,
    /// True if the test passed.
    pub passed: bool,
    /// The score of the last answer that a model judged, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub score: Option<f64>,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = FeatureResult::MAX_REASON_BYTES))]
    pub reason: Option<String>,
    /// The tokens of the test.
    pub tokens: u64,
    /// The working time of the test, in seconds.
    pub seconds: u64,
}

impl FeatureResult {
    /// The largest number of results of a Job.
    pub const MAX_RESULTS: usize = 32;
    /// The longest name of a feature, in bytes.
    pub const MAX_NAME_BYTES: usize = 63;
    /// The longest reason, in bytes.
    pub const MAX_REASON_BYTES: usize = 256;
}
