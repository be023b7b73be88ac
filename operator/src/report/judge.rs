//! Decides whether a caller may report for a Job: pure, over the recorded attempt.

mod bounds;

pub(crate) use bounds::questions_fault;

use super::auth::Caller;
use super::refusal::Refusal;
use bloomery_crds::canonical::{MAX_DEPTH, depth};
use bloomery_crds::outcome::Outcome;
use bloomery_crds::report::{PodEnd, Report};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Attempt, Job};

/// The maximum size of a field's name in a message, in bytes.
const MAX_FIELD_NAME_BYTES: usize = 64;

/// The decision on a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The caller is the recorded pod: the report is accepted.
    Accepted,
    /// The caller reports for the recorded attempt, but is not the recorded pod. The report is accepted only if the caller
    /// has replaced that pod.
    OtherPod(Attempt),
    /// The report is refused.
    Refused(Refusal),
}

/// Decides on a report, given the Job that it names.
pub fn judge(job: Option<&Job>, caller: &Caller, report: &Report) -> Judgement {
    let named = &report.job;
    let refused = |refusal: fn(String) -> Refusal, message: String| Judgement::Refused(refusal(message));
    if let Err(refusal) = check_tenant(caller, report) {
        return Judgement::Refused(refusal);
    }
    let Some(job) = job.filter(|job| job.metadata.uid.as_ref() == Some(&named.uid)) else {
        return refused(
            Refusal::NotFound,
            format!("there is no Job {}/{} with the UID {}", named.namespace, named.name, named.uid),
        );
    };
    let recorded = job.status.as_ref().and_then(|status| status.attempt.as_ref());
    let too_early =
        || refused(Refusal::TooEarly, format!("attempt {} is not recorded yet: report again", report.attempt));
    let Some(recorded) = recorded.filter(|recorded| recorded.number >= report.attempt) else { return too_early() };
    if recorded.number > report.attempt {
        let message = format!("attempt {} is over: attempt {} continues the Job", report.attempt, recorded.number);
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
    let (caller_namespace, job_namespace) = (&caller.namespace, &report.job.namespace);
    if caller_namespace == job_namespace {
        return Ok(());
    }
    Err(Refusal::Forbidden(format!("a pod of namespace {caller_namespace} cannot report for a Job of {job_namespace}")))
}

/// Refuses a report that contradicts itself, contains an invalid name, or does not fit into a status by its size or depth.
pub fn check_report(report: &Report) -> Result<(), Refusal> {
    let job = &report.job;
    for (what, value) in [("namespace", &job.namespace), ("name", &job.name), ("UID", &job.uid)] {
        // These values become parts of request paths to the API server.
        if !is_dns_label(value) {
            return Err(Refusal::Invalid(format!("the {what} of the Job is not a DNS label")));
        }
    }
    if let Some(message) = depth_fault(report) {
        return Err(Refusal::Invalid(message));
    }
    let (phase, outcome) = (report.projection.phase, report.projection.outcome.as_ref());
    let end_phase = outcome.map(Outcome::phase);
    let contradiction = match (end_phase, &report.end) {
        (Some(end_phase), _) if end_phase != phase => {
            Some(format!("an outcome of the phase {end_phase} contradicts the phase {phase}"))
        }
        (None, _) if phase.is_terminal() => Some(format!("the phase {phase} needs an outcome")),
        (None, Some(PodEnd::Finished)) => Some("a worker that finished must report an outcome".to_owned()),
        (Some(_), Some(PodEnd::Parked(_))) => Some("a worker that parked must not report an outcome".to_owned()),
        _ => None,
    };
    let size_fault = || {
        bounds::projection_fault(&report.projection)
            .or_else(|| bounds::hold_fault(report.hold.as_ref()?))
            .or_else(|| bounds::children_fault(&report.children))
    };
    match contradiction.or_else(size_fault) {
        Some(message) => Err(Refusal::Invalid(message)),
        None if report.epoch == 0 || report.attempt == 0 => {
            Err(Refusal::Invalid("attempts and epochs are counted from 1".to_owned()))
        }
        None => Ok(()),
    }
}

/// Describes the most deeply nested field of the answer; none if its depth is allowed. The object of all fields is the
/// first level.
fn depth_fault(report: &Report) -> Option<String> {
    let fields = &report.projection.result.as_ref()?.fields;
    let (name, levels) =
        fields.iter().map(|(name, value)| (name, 1 + depth(value))).max_by_key(|(_, levels)| *levels)?;
    let path = format!("projection.result.fields.{}", bounded(name, MAX_FIELD_NAME_BYTES));
    (levels > MAX_DEPTH)
        .then(|| format!("{path} makes the fields {levels} levels deep, and the maximum is {MAX_DEPTH}"))
}

/// Returns whether a text is a DNS label as Kubernetes requires for names (RFC 1123).
pub(super) fn is_dns_label(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| is_alphanumeric(byte) || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests;
