//! What the goal means: the first stage (seed 002, section 2).

use super::Question;
use bloomery_crds::v1alpha1::DetectedIntent;
use serde_json::Value;

/// How far the intent is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intention {
    pub(super) question: Question,
    detected: Option<DetectedIntent>,
    missing: Vec<String>,
}

impl Intention {
    pub(super) fn detected(&mut self, intent: &DetectedIntent, missing: &[String]) {
        self.detected = Some(intent.clone());
        missing.clone_into(&mut self.missing);
    }

    /// Takes what a person says of an entity that was missing.
    pub(super) fn named(&mut self, name: &str, value: Value) {
        self.missing.retain(|missing| missing != name);
        if let Some(intent) = &mut self.detected {
            intent.entities.insert(name.to_owned(), value);
        }
    }

    /// What the model is asked.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// What the goal means.
    pub fn intent(&self) -> Option<&DetectedIntent> {
        self.detected.as_ref()
    }

    /// Required entities that neither the goal nor a person has named.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }
}
