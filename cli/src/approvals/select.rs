//! Selects the Approval that a name means, and checks that it is open. Pure functions.

use crate::error::Error;
use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, CountedDecision};
use jiff::Timestamp;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The Approvals of a name.
#[derive(Debug)]
pub(super) enum Found {
    /// The Approval of that name.
    Approval(Box<Approval>),
    /// The Approvals of the Job of that name, at least one.
    OfJob(String, Vec<Approval>),
}

/// Selects the only open Approval.
///
/// # Errors
/// If it is closed, or several are open.
pub(super) fn select_open(named: Found, now: Timestamp) -> Result<Approval, Error> {
    let approval = select_one(named, now)?;
    match closed_reason(&approval, now) {
        Some(why) => Err(Error::too_late(format!("{} {why}", approval.name_any()))),
        None => Ok(approval),
    }
}

/// Selects an Approval: that of the name, open or not, or the only open one of the Job.
///
/// # Errors
/// If the Job has none that is open, or several.
pub(super) fn select_one(named: Found, now: Timestamp) -> Result<Approval, Error> {
    let (job, all) = match named {
        Found::Approval(approval) => return Ok(*approval),
        Found::OfJob(job, all) => (job, all),
    };
    let (mut open, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|approval| closed_reason(approval, now).is_none());
    match (open.pop(), open.len()) {
        (Some(approval), 0) => Ok(approval),
        (None, _) => Err(Error::too_late(format!("no Approval of the Job {job} is open:{}", list(&others, now)))),
        (Some(last), _) => {
            open.push(last);
            Err(Error::usage(format!(
                "the Job {job} has several open Approvals. Name one of them:{}",
                list(&open, now)
            )))
        }
    }
}

/// Returns why an Approval cannot be decided; `None` if it is open.
pub(super) fn closed_reason(approval: &Approval, now: Timestamp) -> Option<String> {
    let (spec, expires) = (&approval.spec, approval.spec.expires_at.0);
    let counted = approval.status.as_ref().and_then(|status| status.counted.as_ref());
    let has_expired = counted.is_some_and(|counted| counted.verdict == ApprovalVerdict::Expired);
    if let Some(decision) = &spec.decision {
        if decision.verdict == ApprovalVerdict::Expired {
            return Some(expired(decision.reason.as_deref(), counted, expires));
        }
        if has_expired {
            let at = counted.map_or(expires, |counted| counted.at.0);
            let why = operator_message(approval)
                .unwrap_or_else(|| format!("the decision of {} was seen only after it had expired", decision.by));
            return Some(format!("expired at {at}: {why}"));
        }
        let (word, reason) = (past_participle(decision.verdict), decision.reason.as_deref().unwrap_or_default());
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        return Some(format!("is {word} already, by {}{because}", decision.by));
    }
    if approval.metadata.deletion_timestamp.is_some() {
        return Some("is being deleted".to_owned());
    }
    (now >= expires).then(|| format!("expired at {expires}, by the clock of this machine: {now}"))
}

/// Returns the operator's message about an Approval.
fn operator_message(approval: &Approval) -> Option<String> {
    let conditions = approval.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = conditions::find(conditions, ConditionType::Ready)?;
    Some(ready.message.clone()).filter(|message| !message.is_empty())
}

/// Describes the expiry: at its time, or earlier if the decision is no longer needed.
fn expired(reason: Option<&str>, counted: Option<&CountedDecision>, expires: Timestamp) -> String {
    let why = reason.filter(|why| !why.is_empty());
    match (why, counted.map(|counted| counted.at.0)) {
        (None, _) => format!("expired at {expires}: nobody decided in time"),
        (Some(why), Some(at)) => format!("expired at {}: {why}", at.min(expires)),
        (Some(why), None) => format!("expired: {why}"),
    }
}

/// Returns the past participle of a verdict.
pub(super) fn past_participle(verdict: ApprovalVerdict) -> &'static str {
    match verdict {
        ApprovalVerdict::Approve => "approved",
        ApprovalVerdict::Deny => "denied",
        ApprovalVerdict::Expired => "expired",
    }
}

fn list(approvals: &[Approval], now: Timestamp) -> String {
    let mut text = String::new();
    for approval in approvals {
        let spec = &approval.spec;
        let standing = closed_reason(approval, now).unwrap_or_else(|| format!("asks {}", spec.approver));
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {}  {}: {standing}", approval.name_any(), spec.tool);
    }
    text
}

/// Returns the other approvers whose decision the call still needs; `None` if there are none.
pub(super) fn still_waiting(approved: &Approval, of_job: &[Approval], now: Timestamp) -> Option<String> {
    let of_call = |other: &&Approval| other.spec.call_id == approved.spec.call_id && other.uid() != approved.uid();
    let open = of_job.iter().filter(of_call).filter(|other| closed_reason(other, now).is_none());
    let asked: Vec<String> = open.map(|other| format!("{} ({})", other.spec.approver, other.name_any())).collect();
    (!asked.is_empty()).then(|| format!("The call also waits for {}.", asked.join(" and ")))
}

/// Checks that the Job of an Approval exists. `found` is the UID of the Job of that name.
///
/// # Errors
/// If the Job is gone, or was replaced by another one.
pub(super) fn check_job(approval: &Approval, found: Option<&str>) -> Result<(), Error> {
    let (name, job) = (approval.name_any(), &approval.spec.job);
    let what = match found {
        Some(uid) if uid == approval.spec.job_uid => return Ok(()),
        Some(_) => format!("its Job {job} was deleted, and the current Job of that name is another one"),
        None => format!("its Job {job} was deleted"),
    };
    Err(Error::too_late(format!("{name} cannot be decided: {what}. A decision would have no effect")))
}

/// Returns the error for a name without Approvals. `known` are the names of all Approvals and their Jobs.
pub(super) fn not_found(name: &str, namespace: &str, known: &BTreeSet<String>) -> Error {
    let near = nearest::did_you_mean(name, known.iter().map(String::as_str));
    let near = if known.is_empty() { " There are no Approvals in it.".to_owned() } else { near };
    Error::usage(format!(
        "the namespace {namespace} has no Approval {name}, and no Job of that name asks for one.{near}"
    ))
}

/// Returns the error for a Job that asks for no decision.
pub(super) fn not_asked(job: &str, why: &str) -> Error {
    Error::failed(format!("no decision is requested on the call of the Job {job}: {why}"))
}

/// Returns the error for an Approval that has changed since it was shown.
pub(super) fn changed(now_there: Option<&Approval>, name: &str, now: Timestamp) -> Error {
    match now_there.map(|approval| closed_reason(approval, now)) {
        Some(Some(why)) => Error::too_late(format!("{name} {why}, while you decided: your decision was not recorded")),
        Some(None) => {
            Error::failed(format!("{name} has changed since it was shown. Nothing was decided: check it again"))
        }
        None => Error::too_late(format!("{name} was deleted: its Job needs no decision any more")),
    }
}

#[cfg(test)]
mod tests;
