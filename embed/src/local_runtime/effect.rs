//! Finds out whether a statement that a Job has taken changes anything. Of two statements about the same request, only one does.

use crate::error::{Error, ErrorKind};
use crate::local::job_state::LogFold;
use bloomery_engine::people::Statement;
use bloomery_engine::{Conversation, Event};

/// Checks that a statement that a Job has taken had an effect, or can still have one. `event` is the event of the statement, as the log has
/// it. `fold` is at a position before this event.
///
/// # Errors
/// If the Job does not wait for the statement any more, because of another one; or the log cannot be read or is broken.
pub(super) fn check(statement: &Statement, event: &Event, fold: &mut LogFold) -> Result<(), Error> {
    // The person who made the last statement about the request while the Job waited for one.
    let (mut is_effective, mut by) = (false, None);
    fold.read_rest(|before, entry| {
        if is_awaited(statement, before) {
            is_effective |= entry.event == *event;
            if let Some(person) = person(statement, &entry.event) {
                by = Some(person.to_owned());
            }
        }
    })?;
    if is_effective || is_awaited(statement, &fold.conversation) {
        return Ok(());
    }
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let closed = match statement {
        Statement::Approval { call, .. } | Statement::Denial { call, .. } => {
            format!("the call {call} was decided already{by}")
        }
        Statement::Reply { question, .. } => format!("the question {question} was answered already{by}"),
        // The Job waits for any other statement.
        _ => return Ok(()),
    };
    let message = format!("{closed}: this input changes nothing. Read the open requests of the Job again");
    Err(Error::new(ErrorKind::Conflict, message))
}

/// Returns whether a conversation waits for a statement.
fn is_awaited(statement: &Statement, conversation: &Conversation) -> bool {
    match statement {
        Statement::Reply { question, .. } => {
            conversation.questions().open().iter().any(|open| open.question.id == *question)
        }
        _ => conversation.is_relevant(statement),
    }
}

/// Returns the person who made the statement of an event, if it is about the same request. A denial decides for all approvers.
fn person<'e>(statement: &Statement, event: &'e Event) -> Option<&'e str> {
    match (statement, event) {
        (
            Statement::Approval { call, decision, .. } | Statement::Denial { call, decision },
            Event::ToolApproved { call: decided, decision: first, .. },
        ) if call == decided && decision.approver == first.approver => Some(&first.by),
        (
            Statement::Approval { call, .. } | Statement::Denial { call, .. },
            Event::ToolDenied { call: decided, decision: first },
        ) if call == decided => Some(&first.by),
        (Statement::Reply { question, .. }, Event::UserReplied { question: answered, by, .. })
            if question == answered =>
        {
            Some(by)
        }
        _ => None,
    }
}
