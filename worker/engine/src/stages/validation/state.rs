//! The state of a validation.

use crate::event::Event;
use crate::line::Entry;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{FeatureResult, PassCriteria, SkillSpec, Usage};

/// The tests of features.
#[derive(Debug)]
pub(crate) struct Validation {
    criteria: PassCriteria,
    /// The tests of each feature, in the order of the features' first tests.
    features: Vec<TestedFeature>,
    usage: Usage,
}

/// The tests of a feature.
#[derive(Debug)]
struct TestedFeature {
    /// Its result, if the tests so far were all.
    result: FeatureResult,
    passed: u32,
    failed: u32,
    /// The reason of the first test that has failed; none if all have passed.
    failure: Option<String>,
    is_decided: bool,
}

impl Validation {
    /// Returns the state before the first test, with the criteria of the Skill.
    pub(crate) fn new(skill: &SkillSpec) -> Self {
        Self { criteria: PassCriteria::new(skill.validation()), features: Vec::new(), usage: Usage::default() }
    }

    pub(crate) fn apply(&mut self, entry: &Entry) {
        let Event::FeatureTested { result: test, usage } = &entry.event else { return };
        self.usage.add(usage);
        let is_new = self.features.iter().all(|tested| tested.result.name != test.name);
        if is_new && self.features.len() < FeatureResult::MAX_RESULTS {
            self.features.push(TestedFeature::new(test.name.clone()));
        }
        // A test after the result changes nothing.
        let open = self.features.iter_mut().find(|tested| tested.result.name == test.name && !tested.is_decided);
        if let Some(tested) = open {
            tested.add(test, self.criteria);
        }
    }

    /// The results of the features whose result is certain, in the order of the tests.
    pub(crate) fn results(&self) -> impl Iterator<Item = &FeatureResult> {
        self.features.iter().filter(|tested| tested.is_decided).map(|tested| &tested.result)
    }

    /// Returns the result of a feature, if it is certain.
    pub(crate) fn result_of(&self, feature: &str) -> Option<&FeatureResult> {
        self.results().find(|result| result.name == feature)
    }

    /// The usage of all tests.
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }
}

impl TestedFeature {
    fn new(name: String) -> Self {
        let result = FeatureResult { name, ..FeatureResult::default() };
        Self { result, passed: 0, failed: 0, failure: None, is_decided: false }
    }

    /// Adds a test. The result has the lowest score of all tests, and the reason of the first test that has failed.
    fn add(&mut self, test: &FeatureResult, criteria: PassCriteria) {
        if test.passed {
            self.passed += 1;
        } else {
            self.failed += 1;
            self.failure.get_or_insert_with(|| test.reason.clone().unwrap_or_default());
        }
        let decision = criteria.decision(self.passed, self.failed);
        self.is_decided = decision.is_some();
        let result = &mut self.result;
        result.passed = decision == Some(true);
        result.score = [result.score, test.score].into_iter().flatten().reduce(f64::min);
        result.tokens = result.tokens.saturating_add(test.tokens);
        result.seconds = result.seconds.saturating_add(test.seconds);
        let all = self.passed + self.failed;
        result.reason = match &self.failure {
            Some(reason) if all > 1 => {
                let reason = format!("{} of {all} tests failed: {reason}", self.failed);
                Some(bounded(&reason, FeatureResult::MAX_REASON_BYTES))
            }
            _ => test.reason.clone(),
        };
    }
}
