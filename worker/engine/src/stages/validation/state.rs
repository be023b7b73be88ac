//! The state of a validation.

use crate::event::Event;
use crate::line::Entry;
use bloomery_crds::v1alpha1::{FeatureResult, Usage};

/// The results of the tested features.
#[derive(Debug, Default)]
pub(crate) struct Validation {
    results: Vec<FeatureResult>,
    usage: Usage,
}

impl Validation {
    pub(crate) fn apply(&mut self, entry: &Entry) {
        let Event::FeatureTested { result, usage } = &entry.event else { return };
        self.usage.add(usage);
        if self.results.len() < FeatureResult::MAX_RESULTS && self.result_of(&result.name).is_none() {
            self.results.push(result.clone());
        }
    }

    /// The results, in the order of the tests.
    pub(crate) fn results(&self) -> &[FeatureResult] {
        &self.results
    }

    /// Returns the result of a feature, if it was tested.
    pub(crate) fn result_of(&self, feature: &str) -> Option<&FeatureResult> {
        self.results.iter().find(|result| result.name == feature)
    }

    /// The usage of all tests.
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }
}
