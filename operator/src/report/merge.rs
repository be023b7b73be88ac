//! Merges a report into a Job's status: pure, idempotent, and never backwards.

mod children;

use crate::approval::approval_names;
use crate::job::asked_calls::{self, TWO_WRITERS};
use crate::job::call_not_started::unstarted_call_of_report;
use crate::job::ending::EndCause;
use crate::job::status::{finish, phase_health, remarks_condition, stray_replies_condition, with_conditions};
use crate::status::{StatusStamp, reason_of};
use bloomery_crds::conditions::{self, ConditionType, Health, Reason};
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::{ExternalWait, ParkReason, PodEnd, Projection, Report};
use bloomery_crds::run::JobIdentity;
use bloomery_crds::v1alpha1::{AskedCall, Attempt, HeldCall, JobStatus, LogPosition, SecretKeyRef, WaitingFor};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// The result of merging a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Merged {
    /// The status does not change.
    Unchanged,
    /// The status changes, and the write may wait for the next report.
    Deferrable(Box<JobStatus>),
    /// The status changes in a way that people should see now.
    Urgent(Box<JobStatus>),
    /// The report contradicts an earlier one about the same event of the log. Holds the reason.
    Conflict(String),
}

/// Merges a report of the recorded attempt into the current status.
///
/// # Guarantees
/// Reports are ordered by (epoch, events). A report that is older than the status changes nothing, so repetitions and
/// reordering do no harm. A terminal status is final; phase, epoch and log never go back. A report that contradicts the
/// status about the same event changes nothing.
pub fn merge(current: &JobStatus, report: &Report, stamp: &StatusStamp) -> Merged {
    if let Some(why) = LogStatement::of_status(current).and_then(|earlier| earlier.contradiction(report)) {
        return Merged::Conflict(why);
    }
    if !is_current(current, report) {
        return Merged::Unchanged;
    }
    let asked_calls = match with_reported_call(current, report) {
        Ok(asked_calls) => asked_calls,
        Err(why) => return Merged::Conflict(why),
    };
    let status = merged_status(current, report, asked_calls, stamp);
    if status == *current {
        Merged::Unchanged
    } else if is_urgent(current, &status) {
        Merged::Urgent(Box::new(status))
    } else {
        Merged::Deferrable(Box::new(status))
    }
}

/// Returns how many events of the log are acknowledged.
///
/// After the end of a Job, nothing more is stored. Then all reported events count as acknowledged, so that the worker does
/// not wait.
pub fn acknowledged_events(current: &JobStatus, report: &Report) -> u64 {
    let stored = current.log.as_ref().map_or(0, |log| log.events);
    if current.is_terminal() { stored.max(report.projection.log.events) } else { stored }
}

/// The statement of a report, or of a status, about an event of the log. The events decide the head of the log and the held call, so
/// two different ones of either come from different logs.
#[derive(Debug, Clone)]
pub struct LogStatement {
    attempt: u32,
    epoch: Option<u64>,
    log: LogPosition,
    call: Option<HeldCall>,
}

impl LogStatement {
    /// Returns the statement of a report.
    pub fn of_report(report: &Report) -> Self {
        let Projection { log, waiting_for, .. } = &report.projection;
        Self { attempt: report.attempt, epoch: Some(report.epoch), log: log.clone(), call: call(waiting_for.as_ref()) }
    }

    fn of_status(status: &JobStatus) -> Option<Self> {
        let (attempt, log) = (status.attempt.as_ref()?, status.log.clone()?);
        Some(Self { attempt: attempt.number, epoch: attempt.epoch, log, call: call(status.waiting_for.as_deref()) })
    }

    /// Describes how a later report contradicts this statement about the same event; none if it does not.
    pub fn contradiction(&self, report: &Report) -> Option<String> {
        let later = Self::of_report(report);
        if (self.attempt, self.epoch, self.log.events) != (later.attempt, later.epoch, later.log.events) {
            return None;
        }
        let is_same_call = |one: &HeldCall, other: &HeldCall| {
            (&one.id, &one.tool, &one.digest, &one.approvers)
                == (&other.id, &other.tool, &other.digest, &other.approvers)
        };
        let what = match (&self.call, &later.call) {
            _ if self.log.head != later.log.head => "another head of the log than",
            (Some(one), Some(other)) if !is_same_call(one, other) => "another held call than",
            // A status without a held call may be that of a termination message, or of the end of the Job.
            (Some(_), None) => "no held call, unlike",
            _ => return None,
        };
        Some(format!(
            "a report has {what} an earlier one, both for event {} of epoch {}{TWO_WRITERS}",
            self.log.events, report.epoch
        ))
    }
}

/// Returns the calls that people were asked about, with the held call of a report with which the worker parks. Returns why the report
/// contradicts earlier ones, or asks about too many calls.
fn with_reported_call(current: &JobStatus, report: &Report) -> Result<Vec<AskedCall>, String> {
    let held = report.projection.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref());
    let recorded = asked_calls::recorded(current);
    let Some(held) = held else { return Ok(recorded) };
    let is_asked = people_phase(report).is_some();
    asked_calls::with_call(recorded, current.approved_call.as_ref(), held, is_asked)
}

fn call(waiting: Option<&WaitingFor>) -> Option<HeldCall> {
    waiting?.call.clone()
}

/// Returns whether a report belongs to the recorded attempt, and is not older than the status.
fn is_current(current: &JobStatus, report: &Report) -> bool {
    let Some(attempt) = &current.attempt else { return false };
    let events = current.log.as_ref().map_or(0, |log| log.events);
    let position = (report.epoch, report.projection.log.events);
    !current.is_terminal()
        && attempt.number == report.attempt
        && report.end != Some(PodEnd::Superseded)
        // A log that lost acknowledged events is ignored, even in a later epoch.
        && report.projection.log.events >= events
        && position >= (attempt.epoch.unwrap_or(0), events)
}

fn merged_status(current: &JobStatus, report: &Report, asked_calls: Vec<AskedCall>, stamp: &StatusStamp) -> JobStatus {
    // Without `..`, so that a new field of the projection does not compile here until it is merged.
    let Projection {
        phase,
        outcome,
        result,
        gates,
        features,
        workflows,
        tool_names,
        waiting_for,
        replies_heard,
        stray_replies,
        remarks,
        tools_changed,
        usage,
        log,
    } = &report.projection;
    let is_parking = matches!(report.end, Some(PodEnd::Parked(_)));
    let worker_wait = report.waiting.as_ref().filter(|_| !is_parking);
    let mut status = JobStatus { asked_calls, ..current.clone() };
    status.result.clone_from(result);
    status.gates = Some(gates.clone().into());
    status.features.clone_from(features);
    status.workflows.clone_from(workflows);
    status.tool_names.clone_from(tool_names);
    status.waiting_for = waiting_for.clone().map(|waiting| with_approval_names(waiting, &report.job).into());
    status.replies_heard = Some(*replies_heard).filter(|heard| *heard > 0);
    status.children = children::merged(&current.children, &report.children);
    status.usage = Some(usage.clone().into());
    status.log = Some(log.clone());
    if let Some(attempt) = &mut status.attempt {
        merge_attempt(attempt, report, has_progressed(current, report));
        attempt.waiting_for_key = worker_wait.and_then(missing_key);
    }
    let remark_observations = remarks_condition(remarks, *tools_changed)
        .into_iter()
        .chain(stray_replies_condition(stray_replies))
        .collect::<Vec<_>>();
    if let Some(outcome) = outcome {
        let not_started = unstarted_call_of_report(current, Some(usage));
        return finish(status, outcome.clone(), not_started, remark_observations, stamp);
    }
    let waiting_phase = waiting_phase(report);
    if let Some(waiting) = &mut status.waiting_for {
        waiting.since = waiting_since(current, people_phase(report), stamp);
    }
    if current.phase.is_some_and(|phase| phase == Phase::Queued || phase.is_waiting()) && waiting_phase.is_none() {
        // The worker has parked or was replaced. Its late report changes neither the phase nor the conditions.
        return status;
    }
    status.phase = Some(match (waiting_phase, phase) {
        (Some(waiting_phase), _) => waiting_phase,
        _ if is_parking => Phase::Queued,
        (None, Phase::Finalizing) => Phase::Finalizing,
        (None, _) => Phase::Running,
    });
    let health = persistent_health(current, report)
        .unwrap_or_else(|| worker_wait.map_or_else(|| phase_health(&status), worker_wait_health));
    let mut observations = health.observations();
    observations.extend(remark_observations);
    with_conditions(status, observations, stamp)
}

/// Records a report in the state of its attempt.
fn merge_attempt(attempt: &mut Attempt, report: &Report, has_progressed: bool) {
    attempt.epoch = Some(report.epoch);
    attempt.silent = None;
    attempt.memory_fault = None;
    if has_progressed {
        attempt.disrupted = None;
    }
    if report.end.is_some() {
        attempt.untold = None;
    }
}

/// Returns whether the log has more events than the status records, not counting those that begin an epoch.
fn has_progressed(current: &JobStatus, report: &Report) -> bool {
    let events = current.log.as_ref().map_or(0, |log| log.events);
    let epoch = current.attempt.as_ref().and_then(|attempt| attempt.epoch).unwrap_or(0);
    report.projection.log.events.saturating_sub(report.epoch) > events.saturating_sub(epoch)
}

/// Returns the phase in which the Job waits for people or for a child; none if it does not wait.
///
/// A Job waits for people if its worker parked, for any reason, with a held call or an open question. A running worker may
/// report such a call or question, too, but its Job does not wait.
fn waiting_phase(report: &Report) -> Option<Phase> {
    match report.end {
        Some(PodEnd::Parked(ParkReason::Approval)) => Some(Phase::AwaitingApproval),
        Some(PodEnd::Parked(ParkReason::Reply)) => Some(Phase::AwaitingReply),
        Some(PodEnd::Parked(ParkReason::Children)) => Some(Phase::AwaitingJob),
        Some(PodEnd::Parked(ParkReason::Drain | ParkReason::Suspension)) => {
            Some(report.projection.phase).filter(|phase| phase.awaits_people())
        }
        Some(PodEnd::Finished | PodEnd::Superseded) | None => None,
    }
}

/// Returns the phase in which the Job waits for people; none if it does not wait for them.
pub(super) fn people_phase(report: &Report) -> Option<Phase> {
    waiting_phase(report).filter(|phase| phase.awaits_people())
}

/// The time since which the Job waits for people; none if it does not wait. Repeated reports do not change this time.
fn waiting_since(current: &JobStatus, waiting_phase: Option<Phase>, stamp: &StatusStamp) -> Option<Time> {
    if !current.awaits_people() {
        return waiting_phase.map(|_| stamp.now.clone());
    }
    current.waiting_for.as_ref().and_then(|waiting| waiting.since.clone()).or_else(|| Some(stamp.now.clone()))
}

/// Adds the names of the Approvals to the wait of a Job.
fn with_approval_names(waiting: WaitingFor, job: &JobIdentity) -> WaitingFor {
    let approvals = waiting.call.as_ref().map(|call| approval_names(&job.name, &job.uid, call)).unwrap_or_default();
    WaitingFor { approvals, ..waiting }
}

/// Returns the health that a report does not replace. The health of an ending Job stays until it has ended. The health of
/// a Job on a lost node stays until its log grows.
fn persistent_health(current: &JobStatus, report: &Report) -> Option<Health> {
    let reason = reason_of(&current.conditions, ConditionType::Reconciling)?;
    let is_log_unchanged = current.log.as_ref().is_some_and(|log| log.events == report.projection.log.events);
    let persists = EndCause::recorded(current).is_some()
        || (reason == Reason::NodeLost && is_log_unchanged && report.end.is_none());
    let message = &conditions::find(&current.conditions, ConditionType::Reconciling)?.message;
    persists.then(|| Health::Reconciling(reason, message.clone()))
}

/// The health of a Job whose worker waits.
pub fn worker_wait_health(waiting: &ExternalWait) -> Health {
    let (reason, message) = match waiting {
        ExternalWait::SecretMissing { name, key, until } => {
            let until = until.and_then(|seconds| Timestamp::from_second(seconds).ok());
            let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
            let message = format!(
                "the worker waits{until} for the key {key} of the Secret {name}: create it, and the worker continues by itself"
            );
            (Reason::SecretMissing, message)
        }
        ExternalWait::McpUnavailable { message } => (Reason::McpUnavailable, format!("the worker waits: {message}")),
        ExternalWait::ModelUnavailable { message } => {
            (Reason::ModelUnavailable, format!("the worker waits: {message}"))
        }
    };
    Health::Reconciling(reason, message)
}

/// Returns the key of a Secret that a worker waits for.
fn missing_key(waiting: &ExternalWait) -> Option<SecretKeyRef> {
    match waiting {
        ExternalWait::SecretMissing { name, key, until: _ } => {
            Some(SecretKeyRef { name: name.clone(), key: key.clone() })
        }
        ExternalWait::McpUnavailable { .. } | ExternalWait::ModelUnavailable { .. } => None,
    }
}

/// Returns whether people should see the change now, and not with the next write.
fn is_urgent(current: &JobStatus, merged: &JobStatus) -> bool {
    let epoch = |status: &JobStatus| status.attempt.as_ref().and_then(|attempt| attempt.epoch);
    let is_in = |status: &JobStatus, phase| status.phase == Some(phase);
    let enters_or_leaves = |phase| is_in(current, phase) != is_in(merged, phase);
    merged.is_terminal()
        || epoch(current) != epoch(merged)
        || enters_or_leaves(Phase::Queued)
        || enters_or_leaves(Phase::AwaitingApproval)
        || enters_or_leaves(Phase::AwaitingReply)
        || enters_or_leaves(Phase::AwaitingJob)
        // The leader creates a child once its request is in the status.
        || current.children.len() != merged.children.len()
        || worker_wait_reason(current) != worker_wait_reason(merged)
}

/// The reason for which a worker waits, according to the conditions of its Job.
fn worker_wait_reason(status: &JobStatus) -> Option<Reason> {
    reason_of(&status.conditions, ConditionType::Reconciling)
        .filter(|reason| matches!(reason, Reason::SecretMissing | Reason::McpUnavailable | Reason::ModelUnavailable))
}

#[cfg(test)]
mod tests;
