//! The fold of questions, replies and messages.

use super::state::{RefusedReply, StrayReply};
use crate::core_tools;
use crate::event::{Event, QuestionId, QuestionSubject, UserQuestion};
use crate::line::Entry;
use crate::shared::Shared;
use crate::stages::calls::CallState;
use crate::stages::calls::apply::complete_with;

/// Folds an event into the questions.
pub(crate) fn apply(entry: &Entry, shared: &mut Shared) {
    match &entry.event {
        Event::UserAsked { question, about } => open_question(question, about, shared),
        Event::UserReplied { question, text, by, nth } => {
            shared.questions.mark_read(*nth);
            take_reply(question, text, (by, *nth), shared);
        }
        Event::UserMessage { text, by: _, nth } => {
            shared.questions.mark_read(*nth);
            shared.history.receive(text);
            shared.record_evidence();
            shared.join_messages();
        }
        _ => {}
    }
}

fn open_question(question: &UserQuestion, about: &QuestionSubject, shared: &mut Shared) {
    shared.questions.open_question(question, about);
    if let QuestionSubject::Call(id) = about
        && let Some(call) = shared.calls.get_mut(id)
        // Any other call, or a settled one, is in a forged line.
        && call.tool == core_tools::ASK_USER
        && !call.is_settled()
    {
        call.state = CallState::AwaitingReply;
    }
}

/// Takes the reply to a call of `ask_user`. A reply to a question that is not open is kept for the status. Other stages take the
/// replies to their own questions.
fn take_reply(id: &QuestionId, text: &str, (by, nth): (&str, Option<u32>), shared: &mut Shared) {
    match shared.questions.about(id) {
        Some(QuestionSubject::Call(_)) if text.trim().is_empty() => {
            shared.settle_question(id, Err(RefusedReply::new("the answer is empty")));
        }
        Some(QuestionSubject::Call(call)) => {
            complete_with(&call, text, Some(text), shared);
            shared.settle_question(id, Ok(()));
        }
        Some(QuestionSubject::Entity(_) | QuestionSubject::Draft | QuestionSubject::LostCall(_)) => {}
        None => {
            let answered = shared.questions.was_asked(id);
            let (question, text, by) = (id.clone(), text.to_owned(), by.to_owned());
            shared.questions.keep_stray(StrayReply { question, text, by, nth, answered });
        }
    }
}
