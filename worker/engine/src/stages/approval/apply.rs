//! The fold of holds and decisions.

use super::held::MAX_APPROVERS;
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
        Event::ToolHeld { held } => set_held_call(held, &mut shared.calls),
        Event::ToolApproved { call, digest, decision } => {
            lift_holds(call, digest, &decision.approver, &mut shared.calls);
        }
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

fn set_held_call(held: &HeldCall, calls: &mut Calls) {
    if let Some(call) = calls.get_mut(&CallId(held.id.clone())) {
        call.held = Some(held.clone());
    }
}

/// Lifts the approver's holds of exactly this call. Once none is left, the gate rules on the call again.
///
/// An approval changes nothing if it is for other arguments, or if the approver does not have to approve.
fn lift_holds(id: &CallId, digest: &Digest, approver: &str, calls: &mut Calls) {
    let Some(call) = held_call_mut(id, calls).filter(|call| has_arguments(call, digest)) else { return };
    if !call.hold.lift(approver) {
        return;
    }
    if let Some(held) = &mut call.held {
        held.approvers = call.hold.approvers().into_iter().take(MAX_APPROVERS).map(str::to_owned).collect();
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
    let detail = denial(decision);
    let text = denied_text(decision, &detail);
    let reason = RulingReason { layer: GateReason::Approval, detail, approver: None };
    shared.calls.count_ruling(&tool, Verdict::Deny, &[reason]);
    settle(id, Settlement::Denied, &text, shared);
}

fn held_call_mut<'a>(id: &CallId, calls: &'a mut Calls) -> Option<&'a mut Call> {
    calls.get_mut(id).filter(|call| call.state == CallState::Held)
}

fn has_arguments(call: &Call, digest: &Digest) -> bool {
    matches!(&call.arguments, Some(Arguments::Canonical(arguments)) if arguments.digest() == digest)
}

/// Returns a clause with the person who denied a call, the approver, and the reason.
fn denial(decision: &Decision) -> String {
    let Decision { approver, by, reason } = decision;
    let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    if by == Decision::NO_PERSON {
        return format!("no decision for {approver} was seen in time{why}");
    }
    format!("{by} denied it for {approver}{why}")
}

fn denied_text(decision: &Decision, denial: &str) -> String {
    let denied = if decision.by == Decision::NO_PERSON { "Denied" } else { "Denied by a person" };
    format!("{denied}: {denial}. The call was not made.")
}
