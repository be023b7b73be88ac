//! Which Approval a name means, and whether it is open: decided over values.

use crate::error::Error;
use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::nearest;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, CountedDecision};
use jiff::Timestamp;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What there is under a name.
#[derive(Debug)]
pub(super) enum Found {
    /// An Approval of that name.
    Approval(Box<Approval>),
    /// Those of the Job of that name, at least one.
    OfJob(String, Vec<Approval>),
}

/// The one open Approval that is meant.
///
/// # Errors
/// If it is open no more, or there are several.
pub(super) fn select_open(named: Found, now: Timestamp) -> Result<Approval, Error> {
    let approval = select_one(named, now)?;
    match closed_reason(&approval, now) {
        Some(why) => Err(Error::too_late(format!("{} {why}", approval.name_any()))),
        None => Ok(approval),
    }
}

/// The one Approval that is meant: that of the name, open or not, or the Job's open one.
///
/// # Errors
/// If a Job has none that is open, or several.
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
            Err(Error::usage(format!("the Job {job} has several open Approvals; name one:{}", list(&open, now))))
        }
    }
}

/// Why nothing can be decided, where that is so.
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

/// What the operator says of it.
fn operator_message(approval: &Approval) -> Option<String> {
    let conditions = approval.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = conditions::find(conditions, ConditionType::Ready)?;
    Some(ready.message.clone()).filter(|message| !message.is_empty())
}

/// How it has expired: at its time, or before, where nobody need decide any more.
fn expired(reason: Option<&str>, counted: Option<&CountedDecision>, expires: Timestamp) -> String {
    let why = reason.filter(|why| !why.is_empty());
    match (why, counted.map(|counted| counted.at.0)) {
        (None, _) => format!("expired at {expires}: nobody decided in time"),
        (Some(why), Some(at)) => format!("expired at {}: {why}", at.min(expires)),
        (Some(why), None) => format!("expired: {why}"),
    }
}

/// What somebody has done who decided so.
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
        // Nothing fails that writes to a string.
        let _ = write!(text, "\n  {}  {}: {standing}", approval.name_any(), spec.tool);
    }
    text
}

/// Who else has to agree before the call is made, where somebody has.
pub(super) fn still_waiting(approved: &Approval, of_job: &[Approval], now: Timestamp) -> Option<String> {
    let of_call = |other: &&Approval| other.spec.call_id == approved.spec.call_id && other.uid() != approved.uid();
    let open = of_job.iter().filter(of_call).filter(|other| closed_reason(other, now).is_none());
    let asked: Vec<String> = open.map(|other| format!("{} ({})", other.spec.approver, other.name_any())).collect();
    (!asked.is_empty()).then(|| format!("The call waits for {} too.", asked.join(" and ")))
}

/// That an Approval is one of a Job that is there: `found` is the UID of the Job of that name.
///
/// # Errors
/// If it is gone, with or without another of its name.
pub(super) fn check_job(approval: &Approval, found: Option<&str>) -> Result<(), Error> {
    let (name, job) = (approval.name_any(), &approval.spec.job);
    let what = match found {
        Some(uid) if uid == approval.spec.job_uid => return Ok(()),
        Some(_) => format!("the Job {job} that it is of is gone, and the one of that name is another"),
        None => format!("the Job {job} that it is of is gone"),
    };
    Err(Error::too_late(format!("{name} cannot be decided: {what}. Nothing would come of a decision")))
}

/// That there is nothing of a name, with the name that is near. `known` are the names of Approvals and of their Jobs.
pub(super) fn not_found(name: &str, namespace: &str, known: &BTreeSet<String>) -> Error {
    let near = nearest::did_you_mean(name, known.iter().map(String::as_str));
    let near = if known.is_empty() { " There are no Approvals in it.".to_owned() } else { near };
    Error::usage(format!(
        "the namespace {namespace} has no Approval {name}, and no Job of that name asks for one.{near}"
    ))
}

/// That nobody is asked about the call of a Job.
pub(super) fn not_asked(job: &str, why: &str) -> Error {
    Error::failed(format!("nobody is asked to decide on the call of the Job {job}: {why}"))
}

/// That an Approval is not as it was when it was shown.
pub(super) fn changed(now_there: Option<&Approval>, name: &str, now: Timestamp) -> Error {
    match now_there.map(|approval| closed_reason(approval, now)) {
        Some(Some(why)) => Error::too_late(format!("{name} {why}, while you decided: your decision does not count")),
        Some(None) => Error::failed(format!("{name} has changed since it was shown: look again; nothing was decided")),
        None => Error::too_late(format!("{name} is gone: its Job asks for nothing any more")),
    }
}

#[cfg(test)]
mod tests;
