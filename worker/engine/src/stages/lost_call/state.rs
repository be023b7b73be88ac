//! The state of the question about a lost call.

use super::finding::{Finding, did_not, happened};
use crate::event::{CallId, Event, QuestionSubject};
use crate::line::Entry;
use crate::shared::Shared;
use crate::stages::calls::apply::{completed, failed};
use crate::stages::questions::Refused;

/// The end of the Job at a lost call.
#[derive(Debug, Default)]
pub(crate) struct LostCall {
    /// The person who ended the Job.
    pub(super) stopped_by: Option<String>,
}

impl LostCall {
    pub(crate) fn apply(&mut self, entry: &Entry, shared: &mut Shared) {
        let Event::UserReplied { question, text, by, .. } = &entry.event else { return };
        if let Some(QuestionSubject::LostCall(call)) = shared.questions.about(question) {
            let taken = self.take_finding(&call, text, by, shared);
            shared.settle_question(question, taken);
        }
    }

    fn take_finding(&mut self, call: &CallId, text: &str, by: &str, shared: &mut Shared) -> Result<(), Refused> {
        match Finding::read(text)? {
            Finding::Happened => completed(call, &happened(by), shared),
            Finding::DidNot => failed(call, &did_not(by), shared),
            Finding::Stop => self.stopped_by = Some(by.to_owned()),
        }
        Ok(())
    }
}
