//! The results of features, and their table.

use super::conversation::Test;
use crate::summary::counted;
use crate::{table, text};
use bloomery_crds::v1alpha1::{Feature, PassCriteria};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

/// The result of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum TestResult {
    /// Enough tests have passed.
    Passed,
    /// Too few tests have passed.
    Failed,
    /// The Skill that implements the feature has the tests.
    Delegated,
}

/// The result of a feature, and its tests.
#[derive(Debug)]
pub struct FeatureReport {
    /// The name of the Skill.
    pub skill: String,
    /// The name of the feature.
    pub feature: String,
    /// The result. A feature that was not tested yet has failed.
    pub result: TestResult,
    /// The Skill that implements the feature.
    pub subskill: Option<String>,
    /// The reason why the feature has failed without a test.
    fault: Option<String>,
    criteria: PassCriteria,
    tests: Vec<Test>,
}

impl FeatureReport {
    /// Creates the report of a feature that was not tested yet. A feature has failed if it names a Skill that is not among the `read` ones:
    /// nothing tests it.
    pub fn new(skill: &str, feature: &Feature, criteria: PassCriteria, read: &BTreeSet<String>) -> Self {
        let subskill = feature.subskill().map(str::to_owned);
        let missing = subskill.as_ref().filter(|name| !read.contains(*name));
        let fault = missing.map(|name| {
            format!("The Skill {name} of ext.subskill is not among the Skills read: add its file, or correct the name.")
        });
        let is_delegated = subskill.is_some() && fault.is_none();
        let result = if is_delegated { TestResult::Delegated } else { TestResult::Failed };
        let (skill, feature) = (skill.to_owned(), feature.name.clone());
        Self { skill, feature, result, subskill, fault, criteria, tests: Vec::new() }
    }

    /// Adds a test. The feature has passed once enough of its tests have.
    pub fn add(&mut self, test: Test) {
        self.tests.push(test);
        let has_passed = self.criteria.is_met(self.count(|test| test.verdict.passed));
        self.result = if has_passed { TestResult::Passed } else { TestResult::Failed };
    }

    fn count(&self, is_counted: impl Fn(&Test) -> bool) -> u32 {
        self.tests.iter().map(|test| u32::from(is_counted(test))).sum()
    }

    /// Returns the lowest score of a test.
    fn score(&self) -> Option<f64> {
        self.tests.iter().filter_map(|test| test.verdict.score).reduce(f64::min)
    }

    /// Returns the time of all tests.
    pub fn time(&self) -> Duration {
        self.tests.iter().map(|test| test.time).sum()
    }

    /// Returns the different reasons why the feature, or one of its tests, has failed.
    pub fn reasons(&self) -> Vec<&str> {
        let failed = self.tests.iter().filter(|test| !test.verdict.passed);
        let reasons = failed.map(|test| test.verdict.reason.as_str()).chain(self.fault.as_deref());
        let reasons: BTreeSet<&str> = reasons.collect();
        reasons.into_iter().collect()
    }

    fn row(&self) -> [String; 6] {
        let none = || "-".to_owned();
        let (skill, feature) = (self.skill.clone(), self.feature.clone());
        if self.tests.is_empty() {
            return [skill, feature, self.result.to_string(), none(), none(), none()];
        }
        let (passed, all) = (self.count(|test| test.verdict.passed), self.count(|_| true));
        let result = if all == 1 { self.result.to_string() } else { format!("{} {passed}/{all}", self.result) };
        let score = self.score().map_or_else(none, |score| format!("{score:.2}"));
        let tokens = self.tests.iter().fold(0_u64, |sum, test| sum.saturating_add(test.tokens));
        [skill, feature, result, score, tokens.to_string(), format!("{:.1}s", self.time().as_secs_f64())]
    }

    /// Returns the lines about a feature that has failed, or is tested elsewhere, and about logs.
    fn remarks(&self) -> String {
        let mut lines = String::new();
        // Writing to a string cannot fail.
        if let Some(subskill) = self.subskill.as_ref().filter(|_| self.result == TestResult::Delegated) {
            let _ = writeln!(lines, "{}/{} is tested by the Skill {subskill}.", self.skill, self.feature);
        }
        for reason in self.reasons() {
            let _ = writeln!(lines, "{}/{}: {}", self.skill, self.feature, text::sanitized_line(reason));
        }
        for log in self.tests.iter().filter_map(|test| test.log.as_deref()) {
            let log = text::shell_quoted(&log.display().to_string());
            let _ = writeln!(lines, "{}/{}: bloomery events {log}", self.skill, self.feature);
        }
        lines
    }
}

/// Formats the table of all features, the reasons of those that have failed, and a summary.
pub fn render(reports: &[FeatureReport]) -> String {
    let header = ["SKILL", "FEATURE", "RESULT", "SCORE", "TOKENS", "TIME"];
    let mut printed = table::render(&header, reports.iter().map(FeatureReport::row));
    let remarks: String = reports.iter().map(FeatureReport::remarks).collect();
    if !remarks.is_empty() {
        printed.push('\n');
        printed.push_str(&remarks);
    }
    let count = |result| reports.iter().filter(|report| report.result == result).count();
    let numbers = [TestResult::Passed, TestResult::Failed, TestResult::Delegated]
        .map(|result| (count(result), result))
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, result)| format!("{count} {result}"));
    let numbers: Vec<String> = numbers.collect();
    let all = counted(u64::try_from(reports.len()).unwrap_or(u64::MAX), "feature");
    let _ = writeln!(printed, "\n{all}: {}", numbers.join(", "));
    printed
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bloomery_engine::validation::FeatureVerdict;
    use rstest::rstest;
    use serde_json::json;

    /// Returns a test that takes a second and a half.
    pub fn test(passed: bool, score: f64, reason: &str) -> Test {
        let verdict = FeatureVerdict { passed, score: Some(score), reason: reason.to_owned() };
        Test { verdict, tokens: 100, time: Duration::from_millis(1500), log: None }
    }

    /// Returns the report of a feature of the Skill `greeter`. The Skill `lister` was read too.
    pub fn report(name: &str, subskill: Option<&str>, tests: Vec<Test>) -> FeatureReport {
        let ext = json!({ "subskill": subskill });
        let feature = json!({"name": name, "testScenario": "x", "expectedResult": "y", "ext": ext});
        let criteria = PassCriteria { runs: tests.len().try_into().unwrap(), pass_rate: 1.0 };
        let read = BTreeSet::from(["greeter".to_owned(), "lister".to_owned()]);
        let mut report = FeatureReport::new("greeter", &serde_json::from_value(feature).unwrap(), criteria, &read);
        for test in tests {
            report.add(test);
        }
        report
    }

    #[rstest]
    #[case::all(4, 1.0, TestResult::Passed)]
    #[case::not_all(3, 1.0, TestResult::Failed)]
    #[case::enough(3, 0.75, TestResult::Passed)]
    #[case::too_few(2, 0.75, TestResult::Failed)]
    fn a_feature_passes_at_the_pass_rate(#[case] passed: usize, #[case] rate: f64, #[case] expected: TestResult) {
        let mut report = report("greets", None, Vec::new());
        report.criteria = PassCriteria { runs: 4, pass_rate: rate };
        for nth in 0..4 {
            report.add(test(nth < passed, 0.5, ""));
        }
        assert_eq!(report.result, expected);
    }

    #[test]
    fn the_table_is_followed_by_the_reasons() {
        let reports = [
            report("greets", None, vec![test(true, 0.9, "")]),
            report("refuses", None, vec![test(true, 0.8, ""), test(false, 0.25, "GateFailed: it \u{1b}[2Jgreets")]),
            report("lists", Some("lister"), Vec::new()),
            report("finds", Some("finder"), Vec::new()),
        ];
        let expected = "\
SKILL     FEATURE   RESULT       SCORE   TOKENS   TIME
greeter   greets    passed       0.90    100      1.5s
greeter   refuses   failed 1/2   0.25    200      3.0s
greeter   lists     delegated    -       -        -
greeter   finds     failed       -       -        -

greeter/refuses: GateFailed: it  [2Jgreets
greeter/lists is tested by the Skill lister.
greeter/finds: The Skill finder of ext.subskill is not among the Skills read: add its file, or correct the name.

4 features: 1 passed, 2 failed, 1 delegated
";
        assert_eq!(render(&reports), expected);
    }
}
