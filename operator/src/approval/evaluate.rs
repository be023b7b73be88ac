//! What follows of the Approvals of a held call: a decision over values, with the clock as one of them.

use super::policy::PolicyState;
use crate::status::reason_of;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Approval, ApprovalSpec, ApprovalVerdict, HeldCall};
use k8s_openapi::jiff::Timestamp;

/// A held call, and the Approvals of it that are there.
#[derive(Debug, Clone, PartialEq)]
pub struct CallApprovals {
    /// The call.
    pub call: HeldCall,
    /// For each of its approvers, in order: the name of the Approval, and what is there under it.
    pub approvals: Vec<(String, Option<Approval>)>,
    /// Whether decisions are checked.
    pub policy: PolicyState,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// These are to be settled first.
    NeedsUpdate(Vec<ApprovalUpdate>),
    /// It is decided: the Job goes on.
    Decided,
    /// Decisions are not checked, so nobody is asked; why.
    PolicyMissing(String),
    /// An Approval is not there: the worker has to tell the call again.
    Missing,
    /// Some approvers have not decided yet; they may until then.
    Pending(Timestamp, Vec<PendingDecision>),
    /// Nobody can be asked: the call names no approver.
    NoApprover,
}

/// A decision on a call that is still to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDecision {
    /// The approver who decides.
    pub approver: String,
    /// The name of the Approval.
    pub approval: String,
}

/// What is to be done to one Approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalUpdate {
    /// Its decision is to count; or it has expired.
    Count(String),
    /// It is not what was made, or was decided while nothing checked decisions: it goes, and is asked anew.
    Void {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// Why, for people.
        why: &'static str,
    },
    /// Nobody need decide on it any more: it expires before its time.
    Withdraw {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// Why, for people.
        why: &'static str,
    },
    /// It approves the call, and the Job ended before a worker started that: it says so.
    CallNotStarted {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// How the Job ended, for people.
        why: &'static str,
    },
}

/// Why nobody else need decide on a call that one has denied.
const ALREADY_DENIED: &str = "the call is denied already";

/// Decides what follows of the Approvals of the call of this Job.
pub fn evaluate(job: &str, job_uid: &str, call_approvals: &CallApprovals, now: Timestamp) -> ApprovalState {
    let CallApprovals { call, approvals, policy } = call_approvals;
    let existing =
        || call.approvers.iter().zip(approvals).map(|(approver, (_, approval))| (approver, approval.as_ref()));
    let updates: Vec<ApprovalUpdate> = existing()
        .filter_map(|(approver, approval)| {
            required_update(approval?, &expected(job, job_uid, call, approver), policy, now)
        })
        .collect();
    if !updates.is_empty() {
        return ApprovalState::NeedsUpdate(updates);
    }
    if call.approvers.is_empty() {
        return ApprovalState::NoApprover;
    }
    let verdicts: Vec<Option<ApprovalVerdict>> =
        existing().map(|(_, approval)| Some(approval?.status.as_ref()?.counted.as_ref()?.verdict)).collect();
    let is_denied = verdicts.iter().flatten().any(|verdict| *verdict != ApprovalVerdict::Approve);
    let others = if is_denied {
        existing().filter_map(|(_, approval)| withdrawal(approval?, ALREADY_DENIED)).collect()
    } else {
        Vec::new()
    };
    if !others.is_empty() {
        return ApprovalState::NeedsUpdate(others);
    }
    // What has counted counts no more than what may: its status can be forged, too, while nothing checks who writes it.
    if let PolicyState::Missing(why) = policy {
        return ApprovalState::PolicyMissing(why.clone());
    }
    if is_denied || verdicts.iter().all(Option::is_some) {
        return ApprovalState::Decided;
    }
    let expiries: Option<Vec<Timestamp>> = existing().map(|(_, approval)| Some(approval?.spec.expires_at.0)).collect();
    match expiries.and_then(|expiries| expiries.into_iter().min()) {
        Some(first) => ApprovalState::Pending(first, pending(call_approvals, &verdicts)),
        None => ApprovalState::Missing,
    }
}

/// Returns the decisions that are still to be made, given what counts for each approver.
fn pending(call_approvals: &CallApprovals, verdicts: &[Option<ApprovalVerdict>]) -> Vec<PendingDecision> {
    let each = call_approvals.call.approvers.iter().zip(&call_approvals.approvals).zip(verdicts);
    let open = each.filter(|(_, verdict)| verdict.is_none());
    open.map(|((approver, (name, _)), _)| PendingDecision { approver: approver.clone(), approval: name.clone() })
        .collect()
}

/// What an Approval must say to be that of a call for an approver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedApproval<'a> {
    job: &'a str,
    job_uid: &'a str,
    call: &'a HeldCall,
    approver: &'a str,
}

/// What the Approval of this name must say; none of a name that is none of the call's.
pub fn expected_approval<'a>(
    job: &'a str,
    job_uid: &'a str,
    call: &'a HeldCall,
    name: &str,
) -> Option<ExpectedApproval<'a>> {
    let approver = call.approvers.iter().find(|approver| names::approval(job, job_uid, &call.id, approver) == name)?;
    Some(expected(job, job_uid, call, approver))
}

fn expected<'a>(job: &'a str, job_uid: &'a str, call: &'a HeldCall, approver: &'a str) -> ExpectedApproval<'a> {
    ExpectedApproval { job, job_uid, call, approver }
}

/// What is to be done to an Approval that is there.
pub fn required_update(
    approval: &Approval,
    expected: &ExpectedApproval<'_>,
    policy: &PolicyState,
    now: Timestamp,
) -> Option<ApprovalUpdate> {
    let (name, uid) = (approval.metadata.name.clone()?, approval.metadata.uid.clone()?);
    if !matches(&approval.spec, expected) {
        return Some(ApprovalUpdate::Void { name, uid, why: "it is not what was asked" });
    }
    if let PolicyState::InForce(digest) = policy
        && approval.spec.guard.as_ref() != Some(digest)
    {
        return Some(ApprovalUpdate::Void {
            name,
            uid,
            why: "what checks decisions was away, or has changed, since it was made",
        });
    }
    if approval.status.as_ref().is_some_and(|status| status.counted.is_some()) {
        let is_forged = approval.spec.decision.is_none();
        return is_forged.then_some(ApprovalUpdate::Void {
            name,
            uid,
            why: "its status says that it is decided, and nobody has",
        });
    }
    if approval.spec.decision.is_none() {
        return (now >= approval.spec.expires_at.0).then_some(ApprovalUpdate::Count(name));
    }
    Some(match policy {
        PolicyState::InForce(_) => ApprovalUpdate::Count(name),
        PolicyState::Missing(_) => {
            ApprovalUpdate::Void { name, uid, why: "it was decided while nothing checked decisions" }
        }
    })
}

/// The mark of an Approval of which nothing has come yet, and that nobody need decide on any more.
pub fn withdrawal(approval: &Approval, why: &'static str) -> Option<ApprovalUpdate> {
    let (name, uid) = (approval.metadata.name.clone()?, approval.metadata.uid.clone()?);
    is_uncounted(approval).then_some(ApprovalUpdate::Withdraw { name, uid, why })
}

/// The mark of an Approval that approves a call, and does not say yet that the Job ended before the call was started.
pub fn call_not_started(approval: &Approval, why: &'static str) -> Option<ApprovalUpdate> {
    let (name, uid) = (approval.metadata.name.clone()?, approval.metadata.uid.clone()?);
    let status = approval.status.as_ref()?;
    let approves = status.counted.as_ref()?.verdict == ApprovalVerdict::Approve;
    let is_recorded = reason_of(&status.conditions, ConditionType::Ready) == Some(Reason::JobEnded);
    (approves && !is_recorded && approval.metadata.deletion_timestamp.is_none())
        .then_some(ApprovalUpdate::CallNotStarted { name, uid, why })
}

/// Whether nothing counts yet of an Approval, be it decided or not.
pub fn is_uncounted(approval: &Approval) -> bool {
    let counts = approval.status.as_ref().is_some_and(|status| status.counted.is_some());
    !counts && approval.metadata.deletion_timestamp.is_none()
}

/// Whether an Approval that counts as expired was withdrawn before its time: it says nothing of the call.
pub fn is_withdrawn(approval: &Approval) -> bool {
    let decided = approval.spec.decision.as_ref().is_some_and(|decision| decision.verdict == ApprovalVerdict::Expired);
    let counted = approval.status.as_ref().and_then(|status| status.counted.as_ref());
    decided && counted.is_some_and(|counted| counted.at.0 < approval.spec.expires_at.0)
}

fn matches(spec: &ApprovalSpec, expected: &ExpectedApproval<'_>) -> bool {
    let ExpectedApproval { job, job_uid, call, approver } = expected;
    spec.job == *job
        && spec.job_uid == *job_uid
        && spec.approver == *approver
        && spec.tool == call.tool
        && spec.call_id == call.id
        && spec.arguments_digest == call.digest
}

/// What counts of a decision that is seen now: one that comes too late is none.
pub fn verdict_at(spec: &ApprovalSpec, now: Timestamp) -> ApprovalVerdict {
    let decided = spec.decision.as_ref().map(|decision| decision.verdict);
    decided.filter(|_| now < spec.expires_at.0).unwrap_or(ApprovalVerdict::Expired)
}

#[cfg(test)]
mod tests;
