//! The questions to people while a conversation runs, and the statements of people. The driver brings both across.

mod statement;

pub use crate::stages::approval::HeldAsk;
pub use crate::stages::questions::OpenQuestion;
pub use statement::{MAX_WORDS_BYTES, Statement};

use crate::shared::Shared;
use crate::stages::approval;

/// A question to people.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask<'a> {
    /// Whether a held call may be made.
    Call(HeldAsk<'a>),
    /// A question.
    Question(&'a OpenQuestion),
}

/// Returns everything that waits for people, held calls first.
pub(crate) fn asks(shared: &Shared) -> Vec<Ask<'_>> {
    let held = shared.calls.all().iter().filter_map(|call| approval::ask(call, shared)).map(Ask::Call);
    held.chain(shared.questions.open().iter().map(Ask::Question)).collect()
}

/// Returns whether a statement changes anything. A decision that was taken before, or is about another call or other
/// arguments, does not; nor does a reply of the Job's spec that was taken before.
pub(crate) fn is_awaited(statement: &Statement, shared: &Shared) -> bool {
    match statement {
        Statement::Approval { call, digest, decision } => {
            approval::is_awaited(call, Some(digest), decision, &shared.calls)
        }
        Statement::Denial { call, decision } => approval::is_awaited(call, None, decision, &shared.calls),
        Statement::Reply { nth, .. } | Statement::Message { nth, .. } => {
            nth.is_none_or(|nth| nth > shared.questions.replies_taken())
        }
    }
}
