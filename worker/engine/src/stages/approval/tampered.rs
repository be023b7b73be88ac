//! The end of a conversation whose log has an approval that does not count.

use super::held::approvals_tool;
use crate::shared::Shared;
use bloomery_crds::outcome::{Outcome, OutcomeCode};

/// Returns the outcome of a conversation whose log approves a call that is not settled, and that the operator's decisions do not
/// approve. A call that is settled is never sent again, so approvals of it have no effect.
pub(crate) fn tampering(shared: &Shared) -> Option<Outcome> {
    let call = shared.calls.all().iter().find(|call| !call.is_settled() && call.uncounted.is_some())?;
    let decision = call.uncounted.as_ref()?;
    let tool = approvals_tool(call, shared).unwrap_or_else(|| call.tool.clone());
    let sent = if call.is_sent() {
        "According to the log the call was sent: find out whether it happened, and create the Job again only if it did not."
    } else {
        "The call was not made: create the Job again."
    };
    let message = format!(
        "The log says that {} approved the call {} of {tool} for {}, and the operator has passed no such decision: \
         somebody wrote to the memory of the Skill. Find out who can write to it. {sent}",
        decision.by, call.id, decision.approver
    );
    Some(Outcome::new(OutcomeCode::LogTampered, message))
}
