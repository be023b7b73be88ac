//! A question that a stage of its own asks a model, and how often its answer could not be read.

/// How often an answer may be unreadable before no other is asked for: one retry, with the error.
const MAX_MISREAD: u32 = 2;

/// How far a question is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    answer: Option<String>,
    misread: u32,
    complaint: Option<String>,
}

impl Question {
    pub(super) fn answered(&mut self, text: &str) {
        self.answer = Some(text.to_owned());
    }

    pub(super) fn misread(&mut self, complaint: &str) {
        self.answer = None;
        self.misread += 1;
        self.complaint = Some(complaint.to_owned());
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
}
