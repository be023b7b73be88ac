//! The features of a Skill: what it can do, and how each of them is tested.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A part of what the Skill does, with its test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Feature {
    /// The name.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$"))]
    pub name: String,
    /// The test, in the form Given, When, Then.
    #[schemars(length(min = 1, max = 1024))]
    pub test_scenario: String,
    /// The result that the test must have.
    #[schemars(length(min = 1, max = 1024))]
    pub expected_result: String,
    /// True if the agent applies the feature only when the goal refers to it or it fits. Default: it applies always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// What implements or explains the feature. A subskill comes before a script, and a script before a section of the documentation;
    /// the later ones serve as context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext: Option<FeatureExtension>,
    /// The tools with an effect that a validation of the feature may call: names, or prefixes of names with `*` at the end. A validation
    /// denies the calls of all other tools with an effect. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 128), regex(pattern = r"^[^*]*\*?$")), extend("x-kubernetes-list-type" = "set"))]
    pub allow: Vec<String>,
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
    /// A section of `docs`, such as `#refunds` or `#refunds/limits`.
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
