//! Finds out whether a statement that a Job has taken changes anything. Of two statements about the same request, only one does.

use crate::error::{Error, ErrorKind};
use bloomery_engine::people::Statement;
use bloomery_engine::{Conversation, Event};

/// The effect of a statement that a Job has taken, found in the log of the Job.
#[derive(Debug)]
pub(super) struct Effect<'a> {
    statement: &'a Statement,
    /// The event that records the statement.
    event: Event,
    /// Whether the log has the event, and the Job waited for it.
    is_effective: bool,
    /// The person who made the last statement about the request while the Job waited for one.
    by: Option<String>,
}

impl<'a> Effect<'a> {
    /// Begins before the first event of the log. `event` is the event of the statement in the log, which has no secrets.
    pub(super) fn new(statement: &'a Statement, event: Event) -> Self {
        Self { statement, event, is_effective: false, by: None }
    }

    /// Looks at the next event of the log. `before` is the conversation before it.
    pub(super) fn look_at(&mut self, before: &Conversation, event: &Event) {
        if !is_awaited(self.statement, before) {
            return;
        }
        self.is_effective |= *event == self.event;
        if let Some(by) = person(self.statement, event) {
            self.by = Some(by.to_owned());
        }
    }

    /// Checks that the statement had an effect, or can still have one. `end` is the conversation at the end of the log.
    ///
    /// # Errors
    /// If the Job does not wait for the statement any more, because of another one.
    pub(super) fn check(self, end: &Conversation) -> Result<(), Error> {
        if self.is_effective || is_awaited(self.statement, end) {
            return Ok(());
        }
        let by = self.by.map(|by| format!(" by {by}")).unwrap_or_default();
        let closed = match self.statement {
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
