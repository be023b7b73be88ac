//! Whether a caller may report for a Job: pure, over what is recorded of it.

mod bounds;

pub(crate) use bounds::questions_fault;

use super::auth::Caller;
use super::refusal::Refusal;
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use bloomery_crds::outcome::Outcome;
use bloomery_crds::report::{End, Report};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Attempt, Job};

/// What is to be thought of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The caller is the recorded pod.
    Accepted,
    /// The caller is another pod than the recorded one, of the same attempt: good only if that one is gone.
    OtherPod(Attempt),
    /// The report is not taken.
    Refused(Refusal),
}

/// Judges a report by the Job that it names.
pub fn judge(job: Option<&Job>, caller: &Caller, report: &Report) -> Judgement {
    let named = &report.job;
    let refused = |refusal: fn(String) -> Refusal, message: String| Judgement::Refused(refusal(message));
    if let Err(refusal) = check_tenant(caller, report) {
        return Judgement::Refused(refusal);
    }
    let Some(job) = job.filter(|job| job.metadata.uid.as_ref() == Some(&named.uid)) else {
        return refused(
            Refusal::NotFound,
            format!("there is no Job {}/{} of UID {}", named.namespace, named.name, named.uid),
        );
    };
    let recorded = job.status.as_ref().and_then(|status| status.attempt.as_ref());
    let too_early =
        || refused(Refusal::TooEarly, format!("attempt {} is not recorded yet: report again", report.attempt));
    let Some(recorded) = recorded.filter(|recorded| recorded.number >= report.attempt) else { return too_early() };
    if recorded.number > report.attempt {
        let message = format!("attempt {} is over: attempt {} goes on with the Job", report.attempt, recorded.number);
        return refused(Refusal::Superseded, message);
    }
    match &recorded.pod_uid {
        Some(uid) if *uid == caller.pod_uid => Judgement::Accepted,
        Some(_) => Judgement::OtherPod(recorded.clone()),
        None => too_early(),
    }
}

/// Refuses a report for a Job of another namespace than the caller's.
pub fn check_tenant(caller: &Caller, report: &Report) -> Result<(), Refusal> {
    let (of, named) = (&caller.namespace, &report.job.namespace);
    if of == named {
        return Ok(());
    }
    Err(Refusal::Forbidden(format!("a pod of namespace {of} cannot report for a Job of {named}")))
}

/// Refuses a report that names its Job by no possible name, contradicts itself, says more than a status holds, or
/// would make lists of Jobs unreadable.
pub fn check_report(report: &Report) -> Result<(), Refusal> {
    let job = &report.job;
    for (what, value) in [("namespace", &job.namespace), ("name", &job.name), ("UID", &job.uid)] {
        // They become paths of requests to the API server.
        if !is_dns_label(value) {
            return Err(Refusal::Invalid(format!("the {what} of the Job is not a DNS label")));
        }
    }
    if let Some(message) = depth_fault(report) {
        return Err(Refusal::Invalid(message));
    }
    let (phase, outcome) = (report.projection.phase, report.projection.outcome.as_ref());
    let ends_in = outcome.map(Outcome::phase);
    let contradiction = match (ends_in, &report.end) {
        (Some(end), _) if end != phase => {
            Some(format!("an outcome that rests in {end} does not go with the phase {phase}"))
        }
        (None, _) if phase.is_terminal() => Some(format!("the phase {phase} needs an outcome")),
        (None, Some(End::Finished)) => Some("a worker that finished has an outcome".to_owned()),
        (Some(_), Some(End::Parked(_))) => Some("a worker that parked has no outcome".to_owned()),
        _ => None,
    };
    let too_much =
        || bounds::projection_fault(&report.projection).or_else(|| bounds::hold_fault(report.hold.as_ref()?));
    match contradiction.or_else(too_much) {
        Some(message) => Err(Refusal::Invalid(message)),
        None if report.epoch == 0 || report.attempt == 0 => {
            Err(Refusal::Invalid("attempts and epochs are counted from 1".to_owned()))
        }
        None => Ok(()),
    }
}

/// What is wrong with the fields of the answer, the one part of a report that may have any form.
fn depth_fault(report: &Report) -> Option<String> {
    let fields = &report.projection.result.as_ref()?.fields;
    let (name, levels) =
        fields.iter().map(|(name, value)| (name, 1 + depth(value))).max_by_key(|(_, levels)| *levels)?;
    let path = format!("projection.result.fields.{}", bounded(name, 64));
    (levels > MAX_DEPTH).then(|| format!("{path} makes the fields {levels} levels deep: at most {MAX_DEPTH} are taken"))
}

/// Whether a text is a label of DNS as Kubernetes wants names to be (RFC 1123).
fn is_dns_label(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| is_alphanumeric(byte) || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests;
