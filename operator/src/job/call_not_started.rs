//! The held call that no worker started before its Job ended. The Job's status and the Approvals record that it is not
//! made.

use super::plan::JobEnd;
use super::pods::WorkerPod;
use bloomery_crds::conditions::{ConditionType, Observation, Reason};
use bloomery_crds::v1alpha1::{ApprovalSpec, Attempt, CallNotStarted, HeldCall, JobStatus, LogPosition, Usage};

/// Returns the call as the status of an ended Job records it.
pub fn record(call: &HeldCall) -> CallNotStarted {
    CallNotStarted { id: call.id.clone(), tool: call.tool.clone() }
}

/// Returns the condition `AwaitingPeople` of a Job that ended before the call was started.
pub fn condition(call: &CallNotStarted) -> Observation {
    let CallNotStarted { id, tool } = call;
    let message = format!("the Job ended before the call {id} of {tool} was begun: it is not made");
    Observation::fails(ConditionType::AwaitingPeople, Reason::NotBegun, message)
}

/// Returns whether an Approval belongs to the call.
pub fn matches_approval(call: &CallNotStarted, approval: &ApprovalSpec) -> bool {
    approval.call_id == call.id && approval.tool == call.tool
}

/// Returns the held call of a Job that certainly ended without starting it: no worker ran since the Job parked, or the
/// last worker reported the same number of started calls as before.
pub fn unstarted_call_at_end<'a>(current: &'a JobStatus, pods: &[WorkerPod], end: &JobEnd) -> Option<&'a HeldCall> {
    let Some(message) = &end.read_from else {
        return held_call(current).filter(|_| is_parked_with_call(current, pods));
    };
    let events = |log: Option<&LogPosition>| log.map_or(0, |log| log.events);
    let is_up_to_date = events(message.log.as_ref()) >= events(current.log.as_ref());
    unstarted_call_of_report(current, message.usage.as_ref().filter(|_| is_up_to_date))
}

/// Returns the held call that a reported end left unstarted, given the reported usage.
pub fn unstarted_call_of_report<'a>(current: &'a JobStatus, usage: Option<&Usage>) -> Option<&'a HeldCall> {
    let before = current.usage.as_ref()?.tool_calls;
    held_call(current).filter(|_| usage.is_some_and(|usage| usage.tool_calls == before))
}

fn held_call(status: &JobStatus) -> Option<&HeldCall> {
    status.waiting_for.as_ref()?.call.as_ref()
}

/// Returns whether the last worker parked with the call and no pod of a later attempt exists. A Job in the phase
/// `Queued` does not count: a worker may have run since the call was held, and its last report may be lost.
fn is_parked_with_call(status: &JobStatus, pods: &[WorkerPod]) -> bool {
    let is_last = |attempt: &Attempt| pods.iter().all(|pod| pod.attempt <= attempt.number);
    status.awaits_people() && status.attempt.as_ref().is_some_and(is_last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{at, ended_pod, held_call, message, pod, status};
    use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
    use bloomery_crds::report::PodEnd;
    use bloomery_crds::v1alpha1::WaitingFor;
    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rstest::rstest;

    /// The status of a Job that has started three calls, and whose fourth call is held.
    fn holding(phase: Phase) -> JobStatus {
        let mut status = status(1, phase);
        status.waiting_for = Some(WaitingFor { call: Some(held_call()), ..WaitingFor::default() }.into());
        status.usage = Some(Usage { tool_calls: 3, ..Usage::default() }.into());
        status
    }

    fn lost(mut status: JobStatus) -> JobStatus {
        status.attempt.as_mut().unwrap().ended = Some(Time(at(10)));
        status
    }

    fn without_the_call(mut status: JobStatus) -> JobStatus {
        status.waiting_for = None;
        status
    }

    #[rstest]
    #[case::parked(holding(Phase::AwaitingApproval), vec![], true)]
    #[case::with_its_pod(holding(Phase::AwaitingApproval), vec![ended_pod(1, 10, None)], true)]
    #[case::with_an_open_question_too(holding(Phase::AwaitingReply), vec![], true)]
    #[case::queued(holding(Phase::Queued), vec![], false)]
    #[case::lost(lost(holding(Phase::Queued)), vec![], false)]
    #[case::started(holding(Phase::Starting), vec![], false)]
    #[case::running(holding(Phase::Running), vec![], false)]
    #[case::started_and_not_recorded(holding(Phase::AwaitingApproval), vec![pod(2, "Failed")], false)]
    #[case::waits_with_no_call(without_the_call(holding(Phase::AwaitingApproval)), vec![], false)]
    fn at_the_end_without_a_message_only_a_parked_job_has_an_unstarted_call(
        #[case] current: JobStatus,
        #[case] pods: Vec<Pod>,
        #[case] is_known: bool,
    ) {
        let read =
            |pod: &Pod| WorkerPod::read(pod, ("refund", crate::job::fixtures::UID), current.attempt.as_ref(), at(11));
        let pods: Vec<WorkerPod> = pods.iter().filter_map(read).collect();
        let end = JobEnd { outcome: Outcome::new(OutcomeCode::Cancelled, "cancelled"), read_from: None };
        assert_eq!(unstarted_call_at_end(&current, &pods, &end), is_known.then(held_call).as_ref());
    }

    #[rstest]
    #[case::no_further_call(3, 9, true)]
    #[case::one_further_call(4, 9, false)]
    #[case::log_that_lost_events(3, 4, false)]
    fn at_the_end_by_message_the_number_of_calls_decides(
        #[case] calls: u32,
        #[case] events: u64,
        #[case] is_known: bool,
    ) {
        let mut current = holding(Phase::Starting);
        current.log = Some(crate::job::fixtures::log(7));
        let mut message = message(1, PodEnd::Finished, Some(OutcomeCode::Cancelled));
        message.usage = Some(Usage { tool_calls: calls, ..Usage::default() });
        message.log = Some(crate::job::fixtures::log(events));
        let end = JobEnd { outcome: message.outcome.clone().unwrap(), read_from: Some(Box::new(message.clone())) };
        assert_eq!(unstarted_call_at_end(&current, &[], &end).is_some(), is_known);
        current.usage = None;
        assert_eq!(unstarted_call_at_end(&current, &[], &end), None, "the earlier number of calls is unknown");
        assert_eq!(unstarted_call_of_report(&holding(Phase::Running), None), None);
    }
}
