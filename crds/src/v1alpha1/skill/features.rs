//! The features of a Skill, and the results of their tests.

use super::super::job::FeatureResult;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A feature of the Skill, with its test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Feature {
    /// The name, which is unique in the Skill.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$"))]
    pub name: String,
    /// The test, in the form Given, When, Then.
    #[schemars(length(min = 1, max = 512))]
    pub test_scenario: String,
    /// The result that the test must have.
    #[schemars(length(min = 1, max = 512))]
    pub expected_result: String,
    /// True if the agent applies the feature only when the goal refers to it or it fits. The call of `apply_feature` in the log records
    /// that it does. Default: false, so the feature applies to every goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// The implementation and the context of the feature. If there are several, a subskill comes before a script, and a script before a section of
    /// the documentation; the later ones are context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext: Option<FeatureExtension>,
    /// The tools with an effect that a validation of the feature may call: names, or prefixes of names with `*` at the end. A validation
    /// denies the calls of all other tools with an effect. The tool of `ext.script` needs no entry. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub allow: Vec<String>,
}

/// The implementation and the context of a feature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureExtension {
    /// The name of a Skill in `skills` that implements the feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub subskill: Option<String>,
    /// The name of a file of `scripts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9_][-_.A-Za-z0-9]*$"))]
    pub script: Option<String>,
    /// A section of `docs`: the anchor of its header on GitHub, or its title in any case, such as `#refunds`. `#refunds/limits` is a section
    /// within another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 256), regex(pattern = r"^#"))]
    pub skill_md_ref: Option<String>,
}

/// The latest result of a feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureStatus {
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
    /// The name of the tested revision.
    #[schemars(length(max = 63))]
    pub revision: String,
    /// The Job that tested the feature.
    #[schemars(length(max = 50))]
    pub job: String,
    /// The time of the result.
    pub time: Time,
    /// The tokens of the test.
    pub tokens: u64,
}

impl FeatureStatus {
    /// Returns the status of a feature that a Job has tested on a revision.
    pub fn new(result: FeatureResult, revision: &str, job: &str, time: Time) -> Self {
        let FeatureResult { name, passed, score, reason, tokens, seconds: _ } = result;
        Self { name, passed, score, reason, revision: revision.to_owned(), job: job.to_owned(), time, tokens }
    }

    /// Returns the new statuses, and the recorded ones of other features; at most [`FeatureResult::MAX_RESULTS`].
    pub fn merge(recorded: &[Self], new: Vec<Self>) -> Vec<Self> {
        let is_new = |recorded: &&Self| new.iter().any(|status| status.name == recorded.name);
        let others: Vec<Self> = recorded.iter().filter(|recorded| !is_new(recorded)).cloned().collect();
        new.into_iter().chain(others).take(FeatureResult::MAX_RESULTS).collect()
    }
}

impl Feature {
    /// Returns the Skill that implements and tests the feature, if another one does.
    pub fn subskill(&self) -> Option<&str> {
        self.ext.as_ref().and_then(|ext| ext.subskill.as_deref())
    }

    /// Returns the file of the script that implements the feature or is context for it, if there is one.
    pub fn script(&self) -> Option<&str> {
        self.ext.as_ref().and_then(|ext| ext.script.as_deref())
    }

    /// Returns whether the feature applies to every goal.
    pub fn is_required(&self) -> bool {
        !self.optional.unwrap_or(false)
    }
}
