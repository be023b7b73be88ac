//! The views of a held call: the request to its approvers, and its part of the status.

use crate::event::{Arguments, CallId, Decision, RulingReason};
use crate::people::Statement;
use crate::shared::Shared;
use crate::stages::calls::gate::Ruling;
use crate::stages::calls::{Call, CallState};
use crate::tool::CatalogueTool;
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{HeldCall, Verdict};
use std::collections::BTreeSet;

/// The most approvers that a status names. Further approvers are asked once these have approved.
pub(super) const MAX_APPROVERS: usize = 8;

/// The longest reason in a status, in bytes.
const MAX_REASON_BYTES: usize = 1024;

/// The request to the approvers of a held call.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest<'a> {
    /// The id of the call.
    pub call: &'a CallId,
    /// The tool, as the Skill names it.
    pub tool: &'a str,
    /// The exact arguments that would be sent, as canonical JSON.
    pub arguments: &'a str,
    /// The digest of the arguments, which an approval names.
    pub digest: &'a Digest,
    /// The reasons that still hold the call.
    pub reasons: &'a [RulingReason],
    /// The approvers who still have to approve. All of them must.
    pub approvers: Vec<&'a str>,
    /// The goal of the Job.
    pub goal: &'a str,
    /// The text of the answer that requested the call.
    pub answer_text: &'a str,
}

impl ApprovalRequest<'_> {
    /// Returns the approval of this call with these arguments.
    pub fn approve(&self, decision: Decision) -> Statement {
        Statement::Approval { call: self.call.clone(), digest: self.digest.clone(), decision }
    }

    /// Returns the denial of this call.
    pub fn deny(&self, decision: Decision) -> Statement {
        Statement::Denial { call: self.call.clone(), decision }
    }
}

/// Returns the request to approve a call, if the call is held.
pub(crate) fn approval_request<'a>(call: &'a Call, shared: &'a Shared) -> Option<ApprovalRequest<'a>> {
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return None };
    let tool = shared.catalogue.tool(&call.tool)?;
    (call.state == CallState::Held).then(|| ApprovalRequest {
        call: &call.id,
        tool: &tool.name,
        arguments: arguments.text(),
        digest: arguments.digest(),
        reasons: call.hold.reasons(),
        approvers: call.hold.approvers(),
        goal: &shared.run.goal,
        answer_text: shared.calls.answer_text(),
    })
}

/// Returns the tool of a call as its approvers see it.
pub(super) fn approvals_tool(call: &Call, shared: &Shared) -> Option<String> {
    shared.catalogue.tool(&call.tool).map(CatalogueTool::shown_name)
}

/// Returns the held call for the status, if the ruling holds it.
pub(crate) fn held_call(call: &Call, ruling: &Ruling, shared: &Shared) -> Option<HeldCall> {
    if ruling.verdict != Verdict::Hold {
        return None;
    }
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return None };
    let mut approvers: Vec<String> = ruling.reasons.iter().filter_map(|reason| reason.approver.clone()).collect();
    approvers.sort();
    approvers.dedup();
    approvers.truncate(MAX_APPROVERS);
    // Several rules may give the same reason.
    let mut seen = BTreeSet::new();
    let reasons = ruling.reasons.iter().map(|reason| reason.detail.as_str()).filter(|reason| seen.insert(*reason));
    let reason = reasons.collect::<Vec<_>>().join("; ");
    Some(HeldCall {
        id: call.id.to_string(),
        tool: approvals_tool(call, shared)?,
        digest: arguments.digest().clone(),
        approvers,
        reason: bounded(&reason, MAX_REASON_BYTES),
    })
}
