//! The fold of holds and decisions.

use super::Hold;
use super::held::{MAX_APPROVERS, approvals_tool};
use crate::decisions::ApprovalOf;
use crate::event::{Arguments, CallId, Decision, Event, RulingReason};
use crate::line::Entry;
use crate::shared::Shared;
use crate::stages::calls::apply::settle;
use crate::stages::calls::{Call, CallState, Calls, Settlement};
use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::{GateReason, HeldCall, Verdict};

/// Folds an event into the holds of calls.
pub(crate) fn apply(entry: &Entry, shared: &mut Shared) {
    match &entry.event {
        Event::ToolRuled { call, verdict: Verdict::Hold, reasons } => set_hold(call, reasons, &mut shared.calls),
        Event::ToolHeld { held } => set_held_call(held, shared),
        Event::ToolApproved { call, digest, decision } => approve(call, digest, decision, shared),
        Event::ToolDenied { call, decision } => deny(call, decision, shared),
        _ => {}
    }
}

/// Returns whether a decision changes anything: the call is held, the approver has to decide on it, and an approval is for
/// its arguments.
pub(crate) fn is_awaited(call: &CallId, digest: Option<&Digest>, decision: &Decision, calls: &Calls) -> bool {
    let held = calls.get(call).filter(|call| call.state == CallState::Held);
    held.is_some_and(|call| {
        let is_approver = call.hold.approvers().contains(&decision.approver.as_str());
        is_approver && digest.is_none_or(|digest| has_arguments(call, digest))
    })
}

fn set_hold(id: &CallId, reasons: &[RulingReason], calls: &mut Calls) {
    if let Some(call) = calls.get_mut(id) {
        call.hold.set_reasons(reasons);
    }
}

/// Sets the call as the status shows it. The tool and the digest are those of the call itself: the decisions are about them.
fn set_held_call(held: &HeldCall, shared: &mut Shared) {
    let id = CallId(held.id.clone());
    let tool = shared.calls.get(&id).and_then(|call| approvals_tool(call, shared));
    let Some(call) = shared.calls.get_mut(&id) else { return };
    let (Some(Arguments::Canonical(arguments)), Some(tool)) = (&call.arguments, tool) else { return };
    let approvers = asked_approvers(&call.hold);
    call.held = Some(HeldCall { tool, digest: arguments.digest().clone(), approvers, ..held.clone() });
}

/// Lifts the approver's holds of exactly this call. Once none is left, the gate rules on the call again.
///
/// An approval changes nothing if it is for other arguments, or if the approver does not have to approve. An approval that does
/// not count is not applied. If the operator has never passed it either, the log was tampered with, unless the call is settled already.
fn approve(id: &CallId, digest: &Digest, decision: &Decision, shared: &mut Shared) {
    if !is_awaited(id, Some(digest), decision, &shared.calls) {
        return;
    }
    let counts = counts(id, digest, &decision.approver, shared);
    let was_passed = shared.run.decisions.was_passed(&id.0, digest, &decision.approver);
    let Some(call) = shared.calls.get_mut(id) else { return };
    if !counts {
        if !was_passed {
            call.uncounted = Some(decision.clone());
        }
        return;
    }
    call.hold.lift(&decision.approver);
    let approvers = asked_approvers(&call.hold);
    if let Some(held) = &mut call.held {
        held.approvers = approvers;
    }
    if call.hold.reasons().is_empty() {
        call.state = CallState::Requested;
    }
}

/// Denies a held call. One denial is enough. The model reads the reason and may find another way.
fn deny(id: &CallId, decision: &Decision, shared: &mut Shared) {
    let is_approver = |call: &&mut Call| call.hold.approvers().contains(&decision.approver.as_str());
    let Some(call) = held_call_mut(id, &mut shared.calls).filter(is_approver) else { return };
    let tool = call.tool.clone();
    let detail = decision.denial();
    let text = denied_text(decision, &detail);
    let reason = RulingReason { layer: GateReason::Approval, detail, approver: None, rule: None };
    shared.calls.count_ruling(&tool, Verdict::Deny, &[reason]);
    shared.give_back(id);
    settle(id, Settlement::Denied, &text, shared);
}

/// Returns whether an approval of a call is one of the decisions that count.
pub(crate) fn counts(id: &CallId, digest: &Digest, approver: &str, shared: &Shared) -> bool {
    let tool = shared.calls.get(id).and_then(|call| approvals_tool(call, shared));
    tool.is_some_and(|tool| shared.run.decisions.contain(&ApprovalOf { call: &id.0, tool: &tool, digest, approver }))
}

/// Returns the approvers who are asked now.
fn asked_approvers(hold: &Hold) -> Vec<String> {
    hold.approvers().into_iter().take(MAX_APPROVERS).map(str::to_owned).collect()
}

fn held_call_mut<'a>(id: &CallId, calls: &'a mut Calls) -> Option<&'a mut Call> {
    calls.get_mut(id).filter(|call| call.state == CallState::Held)
}

fn has_arguments(call: &Call, digest: &Digest) -> bool {
    matches!(&call.arguments, Some(Arguments::Canonical(arguments)) if arguments.digest() == digest)
}

/// Returns a clause with the person who denied a call, the approver, and the reason.
fn denied_text(decision: &Decision, denial: &str) -> String {
    let denied = if decision.by == Decision::NO_PERSON { "Denied" } else { "Denied by a person" };
    format!("{denied}: {denial}. The call was not made.")
}
