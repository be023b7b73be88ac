//! The state of the question about a lost call.

use super::answer::{LostCallAnswer, did_not_happen_text, happened_text};
use crate::event::{CallId, Event, QuestionSubject};
use crate::line::Entry;
use crate::shared::Shared;
use crate::stages::calls::apply::{complete, fail};
use crate::stages::questions::RefusedReply;

/// The decision of a person to end the Job at a lost call, if there is one.
#[derive(Debug, Default)]
pub(crate) struct LostCall {
    /// The person who ended the Job instead of saying whether the call happened.
    pub(super) stopped_by: Option<String>,
}

impl LostCall {
    pub(crate) fn apply(&mut self, entry: &Entry, shared: &mut Shared) {
        let Event::UserReplied { question, text, by, .. } = &entry.event else { return };
        if let Some(QuestionSubject::LostCall(call)) = shared.questions.about(question) {
            let reply = self.take_answer(&call, text, by, shared);
            shared.settle_question(question, reply);
        }
    }

    fn take_answer(&mut self, call: &CallId, text: &str, by: &str, shared: &mut Shared) -> Result<(), RefusedReply> {
        match LostCallAnswer::read(text)? {
            LostCallAnswer::Happened => complete(call, &happened_text(by), shared),
            LostCallAnswer::DidNotHappen => fail(call, &did_not_happen_text(by), shared),
            LostCallAnswer::EndJob => self.stopped_by = Some(by.to_owned()),
        }
        Ok(())
    }
}
