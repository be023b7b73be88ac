//! Computes the status of a Job from what was applied: one function for each case.
//!
//! [`crate::report`] merges reports into the same status, and uses the messages and functions of this module.

mod messages;

pub use messages::{log_location, outcome_health, phase_health, quoted, remarks_condition, stray_replies_condition};

use super::applied::{AppliedPlan, StartedPod, TakenName};
use super::asked_calls;
use super::call_not_started;
use super::ending::EndCause;
use super::plan::{JobEnd, LostAttempt, MEMORY_FAULT_PAUSE, PeopleWait, Wait};
use super::pods::PodProblem;
use super::replies;
use crate::approval::evaluate::PendingDecision;
use crate::status::{StatusStamp, reason_of};
use bloomery_crds::conditions::{self, ConditionType, Health, Observation, Reason};
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::report::{ParkReason, PodEnd, TerminationMessage};
use bloomery_crds::v1alpha1::{Attempt, ChildJob, HeldCall, JobSpec, JobStatus, WaitingFor};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Computes the status. Returns the current status if only times would change.
pub fn compute(current: &JobStatus, spec: &JobSpec, applied: &AppliedPlan, stamp: &StatusStamp) -> JobStatus {
    match applied {
        AppliedPlan::Deleted => current.clone(),
        applied => replies::with_undelivered_replies(next_status(current, applied, stamp), spec, stamp),
    }
}

fn next_status(current: &JobStatus, applied: &AppliedPlan, stamp: &StatusStamp) -> JobStatus {
    match applied {
        AppliedPlan::Nothing | AppliedPlan::Deleted => unchanged(current, stamp),
        AppliedPlan::AwaitsPodEnd(cause, problem) => awaits_pod_end(current, *cause, problem.as_ref(), stamp),
        AppliedPlan::Observed(problem) => observed(current, problem.as_ref(), stamp),
        AppliedPlan::Paused(lost) => paused(current, lost, stamp),
        AppliedPlan::Waiting(wait, lost) => waiting(current, wait, lost.as_ref(), stamp),
        AppliedPlan::Started(pod, lost) => starting(current, pod.clone(), lost.as_ref(), stamp),
        AppliedPlan::NameTaken(taken, lost) => name_taken(current, taken, lost.as_ref(), stamp),
        AppliedPlan::WaitsForPeople(wait) => waits_for_people(current, wait, stamp),
        AppliedPlan::Parked(message) => parked(current, message, stamp),
        AppliedPlan::Ended(end, not_started) => ended(current, end, not_started.as_ref(), stamp),
    }
}

/// Puts the record of the children into a status. The message of a Job that waits for a child describes this record.
pub fn with_children(mut status: JobStatus, children: Vec<ChildJob>, stamp: &StatusStamp) -> JobStatus {
    if status.children == children {
        return status;
    }
    status.children = children;
    if status.phase != Some(Phase::AwaitingJob) {
        return status;
    }
    let health = phase_health(&status);
    with_health(status, health, stamp)
}

/// Returns whether a Job still waits for the same reason, and the two statuses differ only in their conditions, usually
/// in a message.
pub fn is_same_wait(current: &JobStatus, next: &JobStatus) -> bool {
    let reason = |status: &JobStatus| reason_of(&status.conditions, ConditionType::Reconciling);
    let next_without_conditions = JobStatus { conditions: current.conditions.clone(), ..next.clone() };
    next_without_conditions == *current && reason(current).is_some() && reason(current) == reason(next)
}

/// The status once the pod of an attempt was created.
fn starting(current: &JobStatus, started: StartedPod, lost: Option<&LostAttempt>, stamp: &StatusStamp) -> JobStatus {
    let StartedPod { pod, uid, attempt, revision, continued, approved_call, lowered_limits, created } = started;
    let before = current.attempt.as_ref();
    let mut status = current.clone();
    status.asked_calls = asked_calls::recorded(current);
    status.phase = Some(Phase::Starting);
    status.attempt = Some(Attempt {
        number: attempt,
        pod,
        pod_uid: Some(uid),
        epoch: before.and_then(|before| before.epoch),
        silent: lost.map(|lost| lost.silent).filter(|silent| *silent > 0),
        disrupted: lost.map(|lost| lost.disrupted).filter(|disrupted| *disrupted > 0),
        untold: before.and_then(|before| before.untold),
        waiting_for_key: None,
        memory_fault: lost.and_then(|lost| lost.memory_fault.clone()),
        ended: None,
    });
    status.skill_revision = Some(revision);
    let (continued_uid, continued_run_key) = continued.map(|continued| (continued.uid, continued.run_key)).unzip();
    status.continued_uid = continued_uid;
    status.continued_run_key = continued_run_key.flatten();
    status.approved_call = approved_call;
    status.start_time = status.start_time.take().or(created).or_else(|| Some(stamp.now.clone()));
    clear_wait_start(&mut status);
    let mut observations = phase_health(&status).observations();
    observations.extend(current_remarks(&status));
    // A limit may have been lowered since the last attempt.
    status.conditions.retain(|condition| condition.type_ != ConditionType::LimitsAsWritten.to_string());
    observations.extend(messages::lowered_limits_condition(&lowered_limits));
    with_conditions(status, observations, stamp)
}

/// The status while something that a new pod needs is missing.
fn waiting(current: &JobStatus, wait: &Wait, lost: Option<&LostAttempt>, stamp: &StatusStamp) -> JobStatus {
    let mut status = current.clone();
    let is_queued = current.attempt.is_some() || wait.reason == Reason::Queued;
    status.phase = Some(if is_queued { Phase::Queued } else { Phase::Pending });
    record_loss(&mut status, lost);
    clear_wait_start(&mut status);
    let message = messages::stable_message(current, wait.reason, &wait.message);
    with_health(status, Health::Reconciling(wait.reason, message), stamp)
}

/// The status if a pod of another making has the name of the attempt's pod. The attempt is over, and counts as disrupted.
fn name_taken(current: &JobStatus, taken: &TakenName, lost: Option<&LostAttempt>, stamp: &StatusStamp) -> JobStatus {
    let mut status = current.clone();
    status.phase = Some(Phase::Queued);
    record_loss(&mut status, lost);
    let before = status.attempt.take().unwrap_or_default();
    status.attempt = Some(Attempt {
        number: taken.attempt,
        pod: taken.pod.clone(),
        pod_uid: None,
        disrupted: Some(before.disrupted.unwrap_or(0).saturating_add(1)),
        ended: Some(stamp.now.clone()),
        waiting_for_key: None,
        ..before
    });
    clear_wait_start(&mut status);
    let message = format!(
        "the pod {} has no valid seal of the operator, or belongs to another Job, so it is not adopted: the Job continues in the next attempt after a \
         pause. Find out who created this pod, and delete it",
        taken.pod
    );
    with_health(status, Health::Reconciling(Reason::NameTaken, message), stamp)
}

/// Records that the Job no longer waits for people.
fn clear_wait_start(status: &mut JobStatus) {
    if let Some(waiting) = &mut status.waiting_for {
        waiting.since = None;
    }
}

/// The status once an attempt was lost, until the next one starts after a pause.
fn paused(current: &JobStatus, lost: &LostAttempt, stamp: &StatusStamp) -> JobStatus {
    let mut status = current.clone();
    status.phase = Some(Phase::Queued);
    record_loss(&mut status, Some(lost));
    let health = match &lost.memory_fault {
        Some(fault) => {
            let message = format!("{fault} The Job tries again every {} s", MEMORY_FAULT_PAUSE.as_secs());
            Health::Reconciling(Reason::NotWritable, message)
        }
        None => {
            Health::Reconciling(Reason::BackOff, format!("{}; the next attempt starts after a pause", lost.message))
        }
    };
    with_health(status, health, stamp)
}

/// Records the end of the current attempt, unless it is recorded already.
fn record_loss(status: &mut JobStatus, lost: Option<&LostAttempt>) {
    if let (Some(attempt), Some(lost)) = (&mut status.attempt, lost)
        && attempt.ended.is_none()
    {
        attempt.ended = Some(Time(lost.ended));
        attempt.waiting_for_key = None;
        attempt.silent = Some(lost.silent).filter(|silent| *silent > 0);
        attempt.disrupted = Some(lost.disrupted).filter(|disrupted| *disrupted > 0);
        attempt.memory_fault.clone_from(&lost.memory_fault);
    }
}

/// The status while the pod is alive, with the problem that keeps it from running, if any.
///
/// The state that a worker reported stays, unless its node no longer answers.
fn observed(current: &JobStatus, problem: Option<&PodProblem>, stamp: &StatusStamp) -> JobStatus {
    let current_reason = reason_of(&current.conditions, ConditionType::Reconciling);
    let problem =
        problem.filter(|problem| current.phase == Some(Phase::Starting) || problem.reason == Reason::NodeLost);
    match problem {
        // Each try to pull an image fails with another message: the message of the first try stays.
        Some(PodProblem { reason: Reason::ImageUnavailable, .. })
            if current_reason == Some(Reason::ImageUnavailable) =>
        {
            unchanged(current, stamp)
        }
        Some(problem) => {
            let message = messages::stable_message(current, problem.reason, &problem.message);
            with_health(current.clone(), Health::Reconciling(problem.reason, message), stamp)
        }
        None if current_reason.is_some_and(|reason| is_pod_problem(reason, current.phase)) => {
            with_health(current.clone(), phase_health(current), stamp)
        }
        None => unchanged(current, stamp),
    }
}

/// The status of a Job that is ending while its pod is alive.
fn awaits_pod_end(
    current: &JobStatus,
    cause: EndCause,
    problem: Option<&PodProblem>,
    stamp: &StatusStamp,
) -> JobStatus {
    let pod = current.attempt.as_ref().map_or("its pod", |attempt| &attempt.pod);
    let lost_node = problem.filter(|problem| problem.reason == Reason::NodeLost);
    let note = lost_node.map(|problem| format!("; {}", problem.message)).unwrap_or_default();
    let what = match cause {
        EndCause::Cancelled => "the Job is cancelled, and ends",
        EndCause::SkillDeleted => "the Skill was deleted, and the Job ends",
    };
    with_health(
        current.clone(),
        Health::Reconciling(cause.reason(), format!("{what} once {pod} has ended{note}")),
        stamp,
    )
}

fn is_pod_problem(reason: Reason, phase: Option<Phase>) -> bool {
    match reason {
        Reason::Unschedulable | Reason::ImageUnavailable | Reason::PodNotStarting | Reason::NodeLost => true,
        // The pod waits for its scheduling gates, or for a key of its MCP server. Later, the worker waits for a key, and says when the
        // wait is over.
        Reason::Queued | Reason::SecretMissing => phase == Some(Phase::Starting),
        _ => false,
    }
}

/// The status while the Job waits for people. It changes only if the admission policy is missing, was missing, or some
/// people have decided.
fn waits_for_people(current: &JobStatus, wait: &PeopleWait, stamp: &StatusStamp) -> JobStatus {
    let was_policy_missing =
        reason_of(&current.conditions, ConditionType::Reconciling) == Some(Reason::ApprovalPolicyMissing);
    match wait {
        PeopleWait::PolicyMissing(why) => policy_missing(current, why.clone(), stamp),
        PeopleWait::Approvers(pending) if was_policy_missing || !names_approvals(current, pending) => {
            let mut status = current.clone();
            if let Some(waiting) = &mut status.waiting_for {
                waiting.approvals = pending.iter().map(|decision| decision.approval.clone()).collect();
            }
            let approvers: Vec<&str> = pending.iter().map(|decision| decision.approver.as_str()).collect();
            let health = messages::approval_health(&status, &approvers);
            with_health(status, health, stamp)
        }
        PeopleWait::AsRecorded if was_policy_missing => with_health(current.clone(), phase_health(current), stamp),
        PeopleWait::AsRecorded | PeopleWait::Approvers(_) => unchanged(current, stamp),
    }
}

/// Returns whether a status names exactly the Approvals of the pending decisions.
fn names_approvals(status: &JobStatus, pending: &[PendingDecision]) -> bool {
    let named = status.waiting_for.as_ref().map(|waiting| waiting.approvals.as_slice()).unwrap_or_default();
    named.iter().eq(pending.iter().map(|decision| &decision.approval))
}

/// Returns the status of a Job whose approvers are not asked, because the admission policy is not in force.
pub fn policy_missing(current: &JobStatus, why: String, stamp: &StatusStamp) -> JobStatus {
    with_health(current.clone(), Health::Reconciling(Reason::ApprovalPolicyMissing, why), stamp)
}

/// The status while the Approvals of a call cannot be created. The worker reports the call again.
pub fn approvals_not_created(current: &JobStatus, why: &str, stamp: &StatusStamp) -> JobStatus {
    let message = format!("a call is held, and its approvers cannot be asked; the worker retries: {why}");
    with_health(current.clone(), Health::Reconciling(Reason::NobodyAsked, message), stamp)
}

/// The status once a worker parked for a person, if no report but only its termination message shows this.
fn parked(current: &JobStatus, message: &TerminationMessage, stamp: &StatusStamp) -> JobStatus {
    let mut status = current.clone();
    let (phase, awaited, questions) = match message.end {
        PodEnd::Parked(ParkReason::Reply) => (Phase::AwaitingReply, "question", message.questions.clone()),
        // This function is called only for a worker that parked for a person, so each other value means a held call.
        PodEnd::Parked(ParkReason::Approval | ParkReason::Drain | ParkReason::Suspension | ParkReason::Children)
        | PodEnd::Finished
        | PodEnd::Superseded => (Phase::AwaitingApproval, "call", Vec::new()),
    };
    status.phase = Some(phase);
    let is_complete = !questions.is_empty();
    // Of an earlier wait, only the start time is kept: its question or call may be answered by now.
    let since = status.waiting_for.take().and_then(|waiting| waiting.since).unwrap_or_else(|| stamp.now.clone());
    status.waiting_for = Some(WaitingFor { since: Some(since), questions, ..WaitingFor::default() }.into());
    adopt_progress(&mut status, message);
    if let Some(attempt) = &mut status.attempt {
        attempt.untold = (!is_complete).then(|| attempt.untold.unwrap_or(0).saturating_add(1));
    }
    let what = if is_complete {
        "its question was read from its termination message, and the conversation is in".to_owned()
    } else {
        format!("its termination message says that a {awaited} is waiting, and the {awaited} is in")
    };
    let mut observations = phase_health(&status).observations();
    observations.push(report_lost_condition(&status, &what));
    observations.extend(current_remarks(&status));
    with_conditions(status, observations, stamp)
}

/// The status of a Job that ended, if no report carried the end.
fn ended(current: &JobStatus, end: &JobEnd, not_started: Option<&HeldCall>, stamp: &StatusStamp) -> JobStatus {
    let mut status = current.clone();
    let mut more: Vec<Observation> = current_remarks(&status).collect();
    if let Some(message) = end.read_from.as_deref() {
        adopt_progress(&mut status, message);
        let what = match message.outcome {
            Some(_) => "the outcome was read from its termination message, and the answer is in",
            None => "its progress was read from its termination message, and the conversation is in",
        };
        more.push(report_lost_condition(&status, what));
    }
    finish(status, end.outcome.clone(), not_started, more, stamp)
}

/// Puts the outcome into a status, with the phase, the time and the conditions that belong to it, and `more` conditions. `not_started` is the held
/// call, if it is certain that no worker started it.
pub fn finish(
    mut status: JobStatus,
    outcome: Outcome,
    not_started: Option<&HeldCall>,
    more: Vec<Observation>,
    stamp: &StatusStamp,
) -> JobStatus {
    let mut observations = outcome_health(&outcome).observations();
    observations.extend(more);
    status.call_not_started = not_started.map(call_not_started::record);
    observations.extend(status.call_not_started.as_ref().map(call_not_started::condition));
    status.phase = Some(outcome.phase());
    status.outcome = Some(outcome);
    status.completion_time = Some(stamp.now.clone());
    // An ended Job waits for nobody.
    status.waiting_for = None;
    status.asked_calls = Vec::new();
    // No child is created any more.
    for child in &mut status.children {
        child.request = None;
    }
    if let Some(attempt) = &mut status.attempt {
        attempt.waiting_for_key = None;
        attempt.memory_fault = None;
    }
    with_conditions(status, observations, stamp)
}

/// Copies the progress from a termination message into the status, unless the status has more events already.
fn adopt_progress(status: &mut JobStatus, message: &TerminationMessage) {
    let current = status.log.as_ref().map_or(0, |log| log.events);
    if let Some(log) = message.log.as_ref().filter(|log| log.events >= current) {
        status.log = Some(log.clone());
        if let Some(usage) = &message.usage {
            status.usage = Some(usage.clone().into());
        }
        let heard = Some(message.replies_heard).filter(|heard| *heard > 0);
        status.replies_heard = status.replies_heard.max(heard);
    }
    if let Some(attempt) = &mut status.attempt {
        attempt.epoch = attempt.epoch.max(message.epoch);
    }
}

fn report_lost_condition(status: &JobStatus, what: &str) -> Observation {
    let pod = status.attempt.as_ref().map_or("the worker", |attempt| &attempt.pod);
    let log = status.log.as_ref().map_or("the Skill's memory", |log| &log.path);
    let message = format!("the last report of pod {pod} did not arrive: {what} {log}");
    Observation::fails(ConditionType::Reported, Reason::ReportLost, message)
}

/// The current status, with the observed generation updated. A status that was never computed stays empty.
fn unchanged(current: &JobStatus, stamp: &StatusStamp) -> JobStatus {
    if current.observed_generation == stamp.generation || current.phase.is_none() {
        return current.clone();
    }
    let is_own_condition = |condition: &Condition| condition.type_.parse::<ConditionType>().is_ok();
    let mut status = current.clone();
    status.observed_generation = stamp.generation;
    for condition in status.conditions.iter_mut().filter(|condition| is_own_condition(condition)) {
        condition.observed_generation = stamp.generation;
    }
    status
}

/// Puts the health of a Job that has not ended into its status. The worker's remarks stay.
fn with_health(status: JobStatus, health: Health, stamp: &StatusStamp) -> JobStatus {
    let mut observations = health.observations();
    observations.extend(current_remarks(&status));
    with_conditions(status, observations, stamp)
}

/// Puts conditions into a status, and adds the condition `AwaitingPeople` if it is not listed. Bloomery's own conditions
/// that are not listed are removed, except `LimitsAsWritten`, which describes the attempt.
pub fn with_conditions(mut status: JobStatus, mut observations: Vec<Observation>, stamp: &StatusStamp) -> JobStatus {
    if !observations.iter().any(|observation| observation.kind == ConditionType::AwaitingPeople) {
        let is_asked = observations.iter().all(|observation| observation.reason != Reason::ApprovalPolicyMissing);
        observations.extend(messages::awaiting_people_condition(&status, is_asked));
    }
    let is_listed = observations.iter().any(|observation| observation.kind == ConditionType::LimitsAsWritten);
    if let Some(limits) = conditions::find(&status.conditions, ConditionType::LimitsAsWritten).filter(|_| !is_listed) {
        let limits = Observation::fails(ConditionType::LimitsAsWritten, Reason::AboveSkill, limits.message.clone());
        observations.push(limits);
    }
    status.observed_generation = stamp.generation;
    status.conditions = conditions::merge(&status.conditions, &observations, stamp.generation, &stamp.now);
    status
}

/// The worker's remarks on the Skill and on replies. They stay until another report changes them.
fn current_remarks(status: &JobStatus) -> impl Iterator<Item = Observation> {
    let kinds = [ConditionType::SkillAsWritten, ConditionType::RepliesTaken];
    kinds.into_iter().filter_map(|kind| {
        let current = conditions::find(&status.conditions, kind)?;
        let reason = current.reason.parse().unwrap_or(Reason::Differs);
        Some(Observation::fails(kind, reason, current.message.clone()))
    })
}

#[cfg(test)]
mod tests;
