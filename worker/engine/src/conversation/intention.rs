//! What the goal means: the first stage (seed 002, section 2).

use bloomery_crds::v1alpha1::DetectedIntent;

/// How often an answer about the intent may be unusable.
const MAX_MISREAD: u32 = 2;

/// How far the intent is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intention {
    answer: Option<String>,
    misread: u32,
    complaint: Option<String>,
    detected: Option<DetectedIntent>,
    missing: Vec<String>,
}

impl Intention {
    pub(super) fn answered(&mut self, text: &str) {
        self.answer = Some(text.to_owned());
    }

    pub(super) fn misread(&mut self, complaint: &str) {
        self.answer = None;
        self.misread += 1;
        self.complaint = Some(complaint.to_owned());
    }

    pub(super) fn detected(&mut self, intent: &DetectedIntent, missing: &[String]) {
        self.answer = None;
        self.detected = Some(intent.clone());
        missing.clone_into(&mut self.missing);
    }

    /// The answer that has to be read.
    pub fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    /// What was wrong with the answer before.
    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// Whether no answer is asked for any more.
    pub fn is_given_up(&self) -> bool {
        self.misread >= MAX_MISREAD
    }

    /// What the goal means.
    pub fn intent(&self) -> Option<&DetectedIntent> {
        self.detected.as_ref()
    }

    /// Required entities that the goal does not name.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }
}
