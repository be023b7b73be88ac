//! The features of a Skill: what it can do, and how each of them is tested.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A part of what the Skill does, with its test.
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
    /// What implements or explains the feature. If there are several, a subskill comes before a script, and a script before a section of
    /// the documentation; the later ones are context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext: Option<FeatureExtension>,
}

/// What implements or explains a feature.
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

impl Feature {
    /// Returns whether the feature applies to every goal.
    pub fn is_required(&self) -> bool {
        !self.optional.unwrap_or(false)
    }
}
