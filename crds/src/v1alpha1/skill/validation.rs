//! The automatic validation of a Skill, and its effect on Jobs.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The validation of the Skill: the tests of its features on each revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// True if the operator tests the features of each new revision once, in a Job with `mode: Validate` that it creates when the Skill is
    /// ready and the revision is 10 s old. The Job binds no resources. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_change: Option<bool>,
    /// The number of tests of each feature. A feature is not tested again once its result is certain. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = Validation::MAX_RUNS))]
    pub runs: Option<u32>,
    /// The share of its tests that a feature must pass, 0.05 to 1. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.05, max = 1.0))]
    pub pass_rate: Option<f64>,
    /// The largest number of tokens of all tests together, in a Job that the operator creates. A feature without a result has failed when
    /// they are used up. At most `engine.limits.tokens`. Default: `engine.limits.tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub tokens: Option<u64>,
    /// The Jobs that need a validated revision. With `run`, a new Job runs on the latest revision on which all features have passed
    /// (`status.validatedRevision`), and waits while there is none. Jobs with `mode: Validate` and Jobs that have started are not affected.
    /// Default: none, so a new Job runs on the current revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_for: Option<RequireFor>,
}

/// The Jobs that need a validated revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RequireFor {
    /// All Jobs that work on a goal.
    Run,
}

impl Validation {
    /// The largest number of tests of a feature.
    pub const MAX_RUNS: u32 = 20;

    /// Returns the settings that a revision contains, `runs` and `passRate`; none if both are absent. The others apply at once, and a change
    /// of them needs no other revision.
    #[must_use]
    pub fn of_revision(&self) -> Option<Self> {
        let tests = Self { runs: self.runs, pass_rate: self.pass_rate, ..Self::default() };
        (tests != Self::default()).then_some(tests)
    }
}

/// The number of tests of a feature, and the share of them that must pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassCriteria {
    /// The number of tests.
    pub runs: u32,
    /// The share of tests that must pass.
    pub pass_rate: f64,
}

impl PassCriteria {
    /// The tolerance of the comparison with the pass rate, because products such as 20 * 0.55 are not exact.
    const TOLERANCE: f64 = 1e-9;

    /// Returns the criteria of a Skill; the default is one test, which must pass.
    pub fn new(validation: Option<&Validation>) -> Self {
        let runs = validation.and_then(|validation| validation.runs).unwrap_or(1);
        let pass_rate = validation.and_then(|validation| validation.pass_rate).unwrap_or(1.0);
        Self { runs: runs.clamp(1, Validation::MAX_RUNS), pass_rate }
    }

    /// Returns whether this number of passed tests is enough. No passed test is never enough.
    pub fn is_met(&self, passed: u32) -> bool {
        passed > 0 && f64::from(passed) + Self::TOLERANCE >= f64::from(self.runs) * self.pass_rate
    }

    /// Returns whether a feature passes; none while this depends on further tests.
    pub fn decision(&self, passed: u32, failed: u32) -> Option<bool> {
        if self.is_met(passed) {
            Some(true)
        } else if self.is_met(self.runs.saturating_sub(failed)) {
            None
        } else {
            Some(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::one_test(1, 1.0, (0, 0), None)]
    #[case::one_passed(1, 1.0, (1, 0), Some(true))]
    #[case::one_failed(1, 1.0, (0, 1), Some(false))]
    #[case::all_must_pass(3, 1.0, (2, 0), None)]
    #[case::all_have_passed(3, 1.0, (3, 0), Some(true))]
    #[case::one_failure_is_too_much(3, 1.0, (0, 1), Some(false))]
    #[case::two_of_three(3, 0.66, (1, 1), None)]
    #[case::two_of_three_have_passed(3, 0.66, (2, 0), Some(true))]
    #[case::two_of_three_have_failed(3, 0.66, (0, 2), Some(false))]
    #[case::an_inexact_product(20, 0.55, (11, 0), Some(true))]
    #[case::no_number(1, f64::NAN, (1, 0), Some(false))]
    #[case::nothing(1, 0.0, (0, 1), Some(false))]
    fn a_feature_is_decided_as_soon_as_its_result_is_certain(
        #[case] runs: u32,
        #[case] pass_rate: f64,
        #[case] (passed, failed): (u32, u32),
        #[case] expected: Option<bool>,
    ) {
        let criteria = PassCriteria { runs, pass_rate };
        assert_eq!(criteria.decision(passed, failed), expected);
    }

    #[test]
    fn a_revision_contains_only_the_settings_of_the_tests() {
        let json = serde_json::json!({"onChange": true, "tokens": 9, "requireFor": "run"});
        let validation: Validation = serde_json::from_value(json).unwrap();
        assert_eq!(validation.of_revision(), None);
        let tests = Validation { runs: Some(3), ..Validation::default() };
        assert_eq!(Validation { runs: Some(3), ..validation }.of_revision(), Some(tests));
    }
}
