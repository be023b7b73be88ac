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
        Event::ToolRuled { call, verdict: Verdict::Hold, reasons } => held(call, reasons, &mut shared.calls),
        Event::ToolHeld { held } => asked(held, &mut shared.calls),
        Event::ToolApproved { call, digest, decision } => approved(call, digest, &decision.approver, &mut shared.calls),
        Event::ToolDenied { call, decision } => denied(call, decision, shared),
        _ => {}
    }
}

/// Returns whether a decision still counts: an approver of a held call gives it, and an approval is for the call's own
/// arguments.
pub(crate) fn is_awaited(call: &CallId, digest: Option<&Digest>, decision: &Decision, calls: &Calls) -> bool {
    let held = calls.get(call).filter(|call| call.state == CallState::Held);
    held.is_some_and(|call| {
        let is_approver = call.hold.approvers().contains(&decision.approver.as_str());
        is_approver && digest.is_none_or(|digest| has_arguments(call, digest))
    })
}

fn held(id: &CallId, reasons: &[RulingReason], calls: &mut Calls) {
    if let Some(call) = calls.get_mut(id) {
        call.hold.set(reasons);
    }
}

fn asked(held: &HeldCall, calls: &mut Calls) {
    if let Some(call) = calls.get_mut(&CallId(held.id.clone())) {
        call.held = Some(held.clone());
    }
}

/// Lifts the approver's holds of exactly this call. Once none is left, the gate rules on the call again.
///
/// An approval of another call, of other arguments, or by nobody who still has to approve changes nothing.
fn approved(id: &CallId, digest: &Digest, approver: &str, calls: &mut Calls) {
    let Some(call) = held_mut(id, calls).filter(|call| has_arguments(call, digest)) else { return };
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

/// Denies the call for the model, which may find another way. One denial is enough.
fn denied(id: &CallId, decision: &Decision, shared: &mut Shared) {
    let is_approver = |call: &&mut Call| call.hold.approvers().contains(&decision.approver.as_str());
    let Some(call) = held_mut(id, &mut shared.calls).filter(is_approver) else { return };
    let tool = call.tool.clone();
    let detail = denial(decision);
    let text = denied_text(decision, &detail);
    let reason = RulingReason { layer: GateReason::Approval, detail, approver: None };
    shared.calls.count_ruling(&tool, Verdict::Deny, &[reason]);
    settle(id, Settlement::Denied, &text, shared);
}

fn held_mut<'a>(id: &CallId, calls: &'a mut Calls) -> Option<&'a mut Call> {
    calls.get_mut(id).filter(|call| call.state == CallState::Held)
}

fn has_arguments(call: &Call, digest: &Digest) -> bool {
    matches!(&call.arguments, Some(Arguments::Canonical(arguments)) if arguments.digest() == digest)
}

/// Returns by whom a call was denied, for which approver, and why.
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
