//! The requests to people while a conversation runs, and the statements of people. The driver transports both.

mod statement;

pub use crate::stages::approval::ApprovalRequest;
pub use crate::stages::questions::OpenQuestion;
pub use statement::{MAX_STATEMENT_BYTES, Statement};

use crate::shared::Shared;
use crate::stages::approval;

/// A request that waits for people.
#[derive(Debug, Clone, PartialEq)]
pub enum HumanRequest<'a> {
    /// The approval of a held call.
    Approval(ApprovalRequest<'a>),
    /// A question.
    Question(&'a OpenQuestion),
}

/// Returns all requests that wait for people, approvals first.
pub(crate) fn open_requests(shared: &Shared) -> Vec<HumanRequest<'_>> {
    let held = shared
        .calls
        .all()
        .iter()
        .filter_map(|call| approval::approval_request(call, shared))
        .map(HumanRequest::Approval);
    held.chain(shared.questions.open().iter().map(HumanRequest::Question)).collect()
}

/// Returns whether a statement changes anything.
///
/// - A decision is relevant if its call still waits for it, and an approval only if it counts.
/// - A reply or message of the Job's spec is relevant if it was not read before.
/// - Limits are relevant if one of them is lower than the current one, blocked tools if one of them is not blocked yet, and a tool policy
///   of the tenant if it does not apply yet.
/// - Any other reply or message, such as one from a terminal, is always relevant.
pub(crate) fn is_relevant(statement: &Statement, shared: &Shared) -> bool {
    match statement {
        Statement::Approval { call, digest, decision } => {
            approval::is_awaited(call, Some(digest), decision, &shared.calls)
                && approval::counts(call, digest, &decision.approver, shared)
        }
        Statement::Denial { call, decision } => approval::is_awaited(call, None, decision, &shared.calls),
        Statement::Reply { nth, .. } | Statement::Message { nth, .. } => {
            nth.is_none_or(|nth| nth > shared.questions.replies_read())
        }
        Statement::BlockTools { tools } => tools.iter().any(|tool| !shared.run.is_blocked(tool)),
        Statement::RestrictTools { policy } => !shared.run.tenant_tools.contains(policy),
        Statement::LowerLimits { limits } => shared.run.limits.lowered_to(Some(limits)) != shared.run.limits,
    }
}
