//! Selects an Approval by a name, and checks that it is open. The functions are pure.

use crate::error::{Error, ErrorKind};
use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, CountedDecision};
use jiff::Timestamp;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The Approvals that a name on the command line selects.
#[derive(Debug)]
pub enum NameMatch {
    /// The Approval with the name.
    Approval(Box<Approval>),
    /// The Approvals of the Job with the name: the name, and at least one Approval.
    OfJob(String, Vec<Approval>),
}

/// Selects the named Approval, or the only open Approval of the named Job.
///
/// # Errors
/// If the Approval is closed, or the Job has no open Approval or several.
pub fn select_open(found: NameMatch, now: Timestamp) -> Result<Approval, Error> {
    let approval = select_one(found, now)?;
    match closed_reason(&approval, now) {
        Some(reason) => Err(Error::too_late(format!("{} {reason}", approval.name_any()))),
        None => Ok(approval),
    }
}

/// Does the same as [`select_open`], but accepts a named Approval that is closed.
///
/// # Errors
/// If the Job has no open Approval, or several.
pub fn select_one(found: NameMatch, now: Timestamp) -> Result<Approval, Error> {
    let (job, approvals) = match found {
        NameMatch::Approval(approval) => return Ok(*approval),
        NameMatch::OfJob(job, approvals) => (job, approvals),
    };
    let is_open = |approval: &Approval| closed_reason(approval, now).is_none();
    let (mut open, closed): (Vec<_>, Vec<_>) = approvals.into_iter().partition(is_open);
    if open.len() > 1 {
        let list = list(&open, now);
        return Err(Error::invalid(format!("the Job {job} has several open Approvals. Name one of them:{list}")));
    }
    open.pop().ok_or_else(|| Error::too_late(format!("no Approval of the Job {job} is open:{}", list(&closed, now))))
}

/// Returns why an Approval cannot be decided, as the rest of a sentence that begins with its name: `is denied already, by ...`.
/// Returns `None` if the Approval is open.
pub fn closed_reason(approval: &Approval, now: Timestamp) -> Option<String> {
    let (spec, expires) = (&approval.spec, approval.spec.expires_at.0);
    let counted = approval.status.as_ref().and_then(|status| status.counted.as_ref());
    let has_expired = counted.is_some_and(|counted| counted.verdict == ApprovalVerdict::Expired);
    if let Some(decision) = &spec.decision {
        // The operator has decided `Expired`.
        if decision.verdict == ApprovalVerdict::Expired {
            return Some(expiry_reason(decision.reason.as_deref(), counted, expires));
        }
        if has_expired {
            let at = counted.map_or(expires, |counted| counted.at.0);
            let why = operator_message(approval)
                .unwrap_or_else(|| format!("the operator received the decision of {} only after that", decision.by));
            return Some(format!("expired at {at}: {why}"));
        }
        let reason = decision.reason.as_deref().unwrap_or_default();
        let suffix = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        return Some(format!("is {} already, by {}{suffix}", past_participle(decision.verdict), decision.by));
    }
    if approval.metadata.deletion_timestamp.is_some() {
        return Some("is being deleted".to_owned());
    }
    (now >= expires).then(|| format!("expired at {expires}, by the clock of this machine: {now}"))
}

/// Returns the message of the operator in the condition `Ready` of an Approval.
fn operator_message(approval: &Approval) -> Option<String> {
    let conditions = approval.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = conditions::find(conditions, ConditionType::Ready)?;
    Some(ready.message.clone()).filter(|message| !message.is_empty())
}

/// Describes an expiry. With a `reason`, the Approval may have expired before its time, because its decision is no longer needed.
/// The operator may also count an expiry late. So the earlier time is shown.
fn expiry_reason(reason: Option<&str>, counted: Option<&CountedDecision>, expires: Timestamp) -> String {
    let why = reason.filter(|why| !why.is_empty());
    match (why, counted.map(|counted| counted.at.0)) {
        (None, _) => format!("expired at {expires}: nobody decided in time"),
        (Some(why), Some(at)) => format!("expired at {}: {why}", at.min(expires)),
        (Some(why), None) => format!("expired: {why}"),
    }
}

/// Returns the past participle of a verdict.
pub fn past_participle(verdict: ApprovalVerdict) -> &'static str {
    match verdict {
        ApprovalVerdict::Approve => "approved",
        ApprovalVerdict::Deny => "denied",
        ApprovalVerdict::Expired => "expired",
    }
}

/// Lists Approvals with their state, one on a line.
fn list(approvals: &[Approval], now: Timestamp) -> String {
    let mut text = String::new();
    for approval in approvals {
        let spec = &approval.spec;
        let state = closed_reason(approval, now).unwrap_or_else(|| format!("waits for {}", spec.approver));
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {}  {}: {state}", approval.name_any(), spec.tool);
    }
    text
}

/// Returns a note that names the other approvers whose decision the call needs. Returns `None` if there are none.
pub fn other_approvers_note(approved: &Approval, of_job: &[Approval], now: Timestamp) -> Option<String> {
    let of_call = |other: &&Approval| other.spec.call_id == approved.spec.call_id && other.uid() != approved.uid();
    let open = of_job.iter().filter(of_call).filter(|other| closed_reason(other, now).is_none());
    let approvers: Vec<String> = open.map(|other| format!("{} ({})", other.spec.approver, other.name_any())).collect();
    (!approvers.is_empty()).then(|| format!("The call also waits for {}.", approvers.join(" and ")))
}

/// Checks that the Job of an Approval exists. `found` is the UID of the Job that has the name now.
///
/// # Errors
/// If the Job is deleted, even if a new Job has the same name.
pub fn check_job(approval: &Approval, found: Option<&str>) -> Result<(), Error> {
    let (name, job) = (approval.name_any(), &approval.spec.job);
    let reason = match found {
        Some(uid) if uid == approval.spec.job_uid => return Ok(()),
        Some(_) => format!("its Job {job} was deleted, and the Job of that name is a new one"),
        None => format!("its Job {job} was deleted"),
    };
    Err(Error::too_late(format!("{name} cannot be decided: {reason}. A decision would have no effect")))
}

/// Returns the error for a name without Approvals. `known` contains the names of all Approvals and their Jobs.
pub fn not_found(name: &str, namespace: &str, known: &BTreeSet<String>) -> Error {
    let near = nearest::did_you_mean(name, known.iter().map(String::as_str));
    let near = if known.is_empty() { " There are no Approvals in it.".to_owned() } else { near };
    Error::invalid(format!(
        "the namespace {namespace} has no Approval {name}, and no Job {name} that waits for an approval.{near}"
    ))
}

/// Returns the error for a Job that requests no decision.
pub fn not_requested_error(job: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("no decision is requested on the call of the Job {job}: {reason}"))
}

/// Returns the error for an Approval that has changed since it was shown. `current` is `None` if it was deleted.
pub fn changed_error(current: Option<&Approval>, name: &str, now: Timestamp) -> Error {
    match current.map(|approval| closed_reason(approval, now)) {
        Some(Some(reason)) => {
            Error::too_late(format!("{name} {reason}. This happened while you decided: your decision was not recorded"))
        }
        Some(None) => {
            let message = format!("{name} has changed since it was shown. Nothing was decided: check it again");
            Error::new(ErrorKind::Conflict, message)
        }
        None => Error::too_late(format!("{name} was deleted, because its Job needs no decision any more")),
    }
}

#[cfg(test)]
mod tests;
