//! Evaluates the Approvals of a held call: pure, with the clock as an input.

use super::policy::PolicyState;
use crate::status::reason_of;
use bloomery_crds::conditions::{ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Approval, ApprovalSpec, ApprovalVerdict, HeldCall};
use k8s_openapi::jiff::Timestamp;

/// A held call and its existing Approvals.
#[derive(Debug, Clone, PartialEq)]
pub struct CallApprovals {
    /// The call.
    pub call: HeldCall,
    /// For each approver, in order: the name of the Approval, and the Approval if it exists.
    pub approvals: Vec<(String, Option<Approval>)>,
    /// The state of the admission policy.
    pub policy: PolicyState,
}

/// The state of a held call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// These updates must be written first.
    NeedsUpdate(Vec<ApprovalUpdate>),
    /// The call is decided: the Job continues.
    Decided,
    /// The admission policy is not in force, so approvers are not asked. Holds the reason.
    PolicyMissing(String),
    /// An Approval does not exist: the worker has to report the call again.
    Missing,
    /// Some approvers have not decided yet, and may decide until this time.
    Pending(Timestamp, Vec<PendingDecision>),
    /// The call names no approver, so no Approval can be created.
    NoApprover,
}

/// A decision on a call that is still pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDecision {
    /// The approver who decides.
    pub approver: String,
    /// The name of the Approval.
    pub approval: String,
}

/// A pending update of one Approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalUpdate {
    /// Record in its status that its decision counts, or that it expired without one. Holds the name of the Approval.
    Count(String),
    /// Delete it, so that a new one is created: it was changed, or was decided while the admission policy was not in
    /// force.
    Void {
        /// The name of the Approval.
        name: String,
        /// The UID of the Approval.
        uid: String,
        /// The reason, for people.
        why: &'static str,
    },
    /// Expire it early: no decision is needed any more.
    Withdraw {
        /// The name of the Approval.
        name: String,
        /// The UID of the Approval.
        uid: String,
        /// The reason, for people.
        why: &'static str,
    },
    /// Record that the approved call was not started before the Job ended.
    CallNotStarted {
        /// The name of the Approval.
        name: String,
        /// The UID of the Approval.
        uid: String,
        /// The end of the Job, for people.
        why: &'static str,
    },
}

/// The reason for withdrawing the other Approvals of a denied call.
const ALREADY_DENIED: &str = "the call is denied already";

/// Evaluates the Approvals of a call of this Job.
pub fn evaluate(job: &str, job_uid: &str, call_approvals: &CallApprovals, now: Timestamp) -> ApprovalState {
    let CallApprovals { call, approvals, policy } = call_approvals;
    let by_approver =
        || call.approvers.iter().zip(approvals).map(|(approver, (_, approval))| (approver, approval.as_ref()));
    let updates: Vec<ApprovalUpdate> = by_approver()
        .filter_map(|(approver, approval)| {
            required_update(approval?, &ExpectedApproval { job, job_uid, call, approver }, policy, now)
        })
        .collect();
    if !updates.is_empty() {
        return ApprovalState::NeedsUpdate(updates);
    }
    if call.approvers.is_empty() {
        return ApprovalState::NoApprover;
    }
    let verdicts: Vec<Option<ApprovalVerdict>> =
        by_approver().map(|(_, approval)| Some(approval?.status.as_ref()?.counted.as_ref()?.verdict)).collect();
    // An expired Approval counts as denied.
    let is_denied = verdicts.iter().flatten().any(|verdict| *verdict != ApprovalVerdict::Approve);
    let withdrawals = if is_denied {
        by_approver().filter_map(|(_, approval)| withdrawal(approval?, ALREADY_DENIED)).collect()
    } else {
        Vec::new()
    };
    if !withdrawals.is_empty() {
        return ApprovalState::NeedsUpdate(withdrawals);
    }
    // While no policy is in force, a status can be forged, so even counted decisions are not used.
    if let PolicyState::Missing(why) = policy {
        return ApprovalState::PolicyMissing(why.clone());
    }
    if is_denied || verdicts.iter().all(Option::is_some) {
        return ApprovalState::Decided;
    }
    let expiries: Option<Vec<Timestamp>> =
        by_approver().map(|(_, approval)| Some(approval?.spec.expires_at.0)).collect();
    match expiries.and_then(|expiries| expiries.into_iter().min()) {
        Some(first_expiry) => ApprovalState::Pending(first_expiry, pending_decisions(call_approvals, &verdicts)),
        None => ApprovalState::Missing,
    }
}

/// Returns the pending decisions, given the counted verdict of each approver.
fn pending_decisions(call_approvals: &CallApprovals, verdicts: &[Option<ApprovalVerdict>]) -> Vec<PendingDecision> {
    let each = call_approvals.call.approvers.iter().zip(&call_approvals.approvals).zip(verdicts);
    let open = each.filter(|(_, verdict)| verdict.is_none());
    open.map(|((approver, (name, _)), _)| PendingDecision { approver: approver.clone(), approval: name.clone() })
        .collect()
}

/// The content that the Approval of a call for one approver must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedApproval<'a> {
    job: &'a str,
    job_uid: &'a str,
    call: &'a HeldCall,
    approver: &'a str,
}

/// Returns the names of the stored Approvals with a decision that the next worker needs. `held` is the call that the
/// status names, and `is_decided` says whether its Approvals decide it. `approvals` are those of the Job.
///
/// - Of the held call: all of them if it is decided, otherwise those of approvers who are not asked any more. The log
///   records their decisions already.
/// - Of the latest call that people were asked about, and of the other calls of its answer: all of them. The worker may have been lost
///   before it made them. Calls of earlier answers are settled, because the next answer is requested only after that.
pub fn needed_decisions<'a>(
    held: Option<&HeldCall>,
    is_decided: bool,
    approvals: impl Iterator<Item = &'a Approval> + Clone,
) -> Vec<String> {
    let counts = |approval: &&Approval| approval.status.as_ref().is_some_and(|status| status.counted.is_some());
    let counted = approvals.filter(counts);
    let latest = counted.clone().map(|approval| &approval.spec.call_id).max_by_key(|id| place_of_call(id));
    let answer = |id: &str| place_of_call(id).map(|(answer, _)| answer);
    let is_of_latest_answer = |id: &String| {
        latest.is_some_and(|latest| id == latest || (answer(id).is_some() && answer(id) == answer(latest)))
    };
    let is_needed = |approval: &&Approval| match held.filter(|call| call.id == approval.spec.call_id) {
        Some(call) => is_decided || !call.approvers.contains(&approval.spec.approver),
        None => is_of_latest_answer(&approval.spec.call_id),
    };
    counted.filter(is_needed).filter_map(|approval| approval.metadata.name.clone()).collect()
}

/// Returns the place of a call in its Job: the number of its answer in the log, and its place in the answer.
pub fn place_of_call(id: &str) -> Option<(u64, u64)> {
    let (answer, index) = id.split_once('-')?;
    Some((answer.parse().ok()?, index.parse().ok()?))
}

/// Returns the expected content of the Approval with this name; none if the call has no Approval of that name.
pub fn expected_approval<'a>(
    job: &'a str,
    job_uid: &'a str,
    call: &'a HeldCall,
    name: &str,
) -> Option<ExpectedApproval<'a>> {
    let approver = call.approvers.iter().find(|approver| names::approval(job, job_uid, &call.id, approver) == name)?;
    Some(ExpectedApproval { job, job_uid, call, approver })
}

/// Returns the update that an existing Approval needs, if any.
pub fn required_update(
    approval: &Approval,
    expected: &ExpectedApproval<'_>,
    policy: &PolicyState,
    now: Timestamp,
) -> Option<ApprovalUpdate> {
    let (name, uid) = (approval.metadata.name.clone()?, approval.metadata.uid.clone()?);
    if !has_expected_content(&approval.spec, expected) {
        return Some(ApprovalUpdate::Void { name, uid, why: "its content was changed" });
    }
    if let PolicyState::InForce(guard) = policy
        && !guard.accepts(approval.spec.guard.as_ref())
    {
        return Some(ApprovalUpdate::Void {
            name,
            uid,
            why: "the admission policy was missing, or means something else, since the Approval was created",
        });
    }
    if let Some(counted) = approval.status.as_ref().and_then(|status| status.counted.as_ref()) {
        let decided = approval.spec.decision.as_ref().map(|decision| decision.verdict);
        let is_forged = decided.is_none_or(|decided| ![decided, ApprovalVerdict::Expired].contains(&counted.verdict));
        return is_forged.then_some(ApprovalUpdate::Void {
            name,
            uid,
            why: "its status records a decision that nobody made",
        });
    }
    if approval.spec.decision.is_none() {
        return (now >= approval.spec.expires_at.0).then_some(ApprovalUpdate::Count(name));
    }
    Some(match policy {
        PolicyState::InForce(_) => ApprovalUpdate::Count(name),
        PolicyState::Missing(_) => {
            ApprovalUpdate::Void { name, uid, why: "it was decided while no admission policy validated decisions" }
        }
    })
}

/// Returns the withdrawal of an Approval; none if it is not open.
pub fn withdrawal(approval: &Approval, why: &'static str) -> Option<ApprovalUpdate> {
    let (name, uid) = (approval.metadata.name.clone()?, approval.metadata.uid.clone()?);
    is_open(approval).then_some(ApprovalUpdate::Withdraw { name, uid, why })
}

/// Returns the update that records in an Approval that the approved call was not started; none if it is recorded
/// already, or if the Approval does not approve the call.
pub fn call_not_started(approval: &Approval, why: &'static str) -> Option<ApprovalUpdate> {
    let (name, uid) = (approval.metadata.name.clone()?, approval.metadata.uid.clone()?);
    let status = approval.status.as_ref()?;
    let approves = status.counted.as_ref()?.verdict == ApprovalVerdict::Approve;
    let is_recorded = reason_of(&status.conditions, ConditionType::Ready) == Some(Reason::JobEnded);
    (approves && !is_recorded && approval.metadata.deletion_timestamp.is_none())
        .then_some(ApprovalUpdate::CallNotStarted { name, uid, why })
}

/// Returns whether the Approval is open: no decision on it has counted yet, and it is not being deleted. A person may
/// have decided already.
pub fn is_open(approval: &Approval) -> bool {
    let counts = approval.status.as_ref().is_some_and(|status| status.counted.is_some());
    !counts && approval.metadata.deletion_timestamp.is_none()
}

/// Returns whether the operator expired an Approval before its time, because no decision was needed any more. Such an
/// Approval does not decide the call.
pub fn is_withdrawn(approval: &Approval) -> bool {
    let decided = approval.spec.decision.as_ref().is_some_and(|decision| decision.verdict == ApprovalVerdict::Expired);
    let counted = approval.status.as_ref().and_then(|status| status.counted.as_ref());
    decided && counted.is_some_and(|counted| counted.at.0 < approval.spec.expires_at.0)
}

fn has_expected_content(spec: &ApprovalSpec, expected: &ExpectedApproval<'_>) -> bool {
    let ExpectedApproval { job, job_uid, call, approver } = expected;
    spec.job == *job
        && spec.job_uid == *job_uid
        && spec.approver == *approver
        && spec.tool == call.tool
        && spec.call_id == call.id
        && spec.arguments_digest == call.digest
}

/// Returns the verdict that counts at `now`: the decision, or `Expired` after the expiry or without a decision.
pub fn verdict_at(spec: &ApprovalSpec, now: Timestamp) -> ApprovalVerdict {
    let decided = spec.decision.as_ref().map(|decision| decision.verdict);
    decided.filter(|_| now < spec.expires_at.0).unwrap_or(ApprovalVerdict::Expired)
}

#[cfg(test)]
mod tests;
