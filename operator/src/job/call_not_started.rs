//! Whether the call that people were asked about was begun before its Job ended, as far as that can be known: whoever let
//! it be made hears that it is not.

use super::decide::End;
use super::pods::WorkerPod;
use bloomery_crds::conditions::{self, ConditionType, Observation, Reason};
use bloomery_crds::v1alpha1::{Attempt, HeldCall, JobStatus, LogPosition, Usage};

/// The call that a Job waited with and that it has ended without: no worker was at work since, or the last one told that it
/// began no more calls than there were. Where neither is known, none.
pub fn at_end<'a>(standing: &'a JobStatus, pods: &[WorkerPod], end: &End) -> Option<&'a HeldCall> {
    let Some(message) = &end.read_from else {
        return held(standing).filter(|_| is_at_rest(standing, pods));
    };
    let events = |log: Option<&LogPosition>| log.map_or(0, |log| log.events);
    let is_later = events(message.log.as_ref()) >= events(standing.log.as_ref());
    as_told(standing, message.usage.as_ref().filter(|_| is_later))
}

/// The same, where a worker has told the end, and what was spent.
pub fn as_told<'a>(standing: &'a JobStatus, spent: Option<&Usage>) -> Option<&'a HeldCall> {
    let before = standing.usage.as_ref()?.tool_calls;
    held(standing).filter(|_| spent.is_some_and(|spent| spent.tool_calls == before))
}

fn held(status: &JobStatus) -> Option<&HeldCall> {
    status.waiting_for.as_ref()?.call.as_ref()
}

/// Whether the last worker parked with the call, and there is no pod of another one since. One that is queued may have been
/// at work since: what it told of its end may be lost.
fn is_at_rest(status: &JobStatus, pods: &[WorkerPod]) -> bool {
    let is_last = |attempt: &Attempt| pods.iter().all(|pod| pod.attempt <= attempt.number);
    status.awaits_people() && status.attempt.as_ref().is_some_and(is_last)
}

/// What is said of it in the Job's status.
pub fn told(call: &HeldCall) -> Observation {
    Observation::fails(ConditionType::AwaitingPeople, Reason::NotBegun, sentence(&call.id, &call.tool))
}

/// Whether a Job that has ended says so of a call.
pub fn is_told(status: &JobStatus, call: &str, tool: &str) -> bool {
    let told = conditions::find(&status.conditions, ConditionType::AwaitingPeople);
    told.is_some_and(|told| told.message == sentence(call, tool))
}

fn sentence(call: &str, tool: &str) -> String {
    format!("the Job ended before the call {call} of {tool} was begun: it is not made")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{at, ended_pod, held_call, message, pod, status};
    use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
    use bloomery_crds::report::End as PodEnd;
    use bloomery_crds::v1alpha1::WaitingFor;
    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rstest::rstest;

    /// A Job that has begun three calls, and waits with another one.
    fn holds(phase: Phase) -> JobStatus {
        let mut status = status(1, phase);
        status.waiting_for = Some(WaitingFor { call: Some(held_call()), ..WaitingFor::default() });
        status.usage = Some(Usage { tool_calls: 3, ..Usage::default() });
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
    #[case::rests(holds(Phase::AwaitingApproval), vec![], true)]
    #[case::with_its_pod(holds(Phase::AwaitingApproval), vec![ended_pod(1, 10, None)], true)]
    #[case::asks_besides(holds(Phase::AwaitingReply), vec![], true)]
    #[case::queued(holds(Phase::Queued), vec![], false)]
    #[case::lost(lost(holds(Phase::Queued)), vec![], false)]
    #[case::started(holds(Phase::Starting), vec![], false)]
    #[case::at_work(holds(Phase::Running), vec![], false)]
    #[case::started_and_not_recorded(holds(Phase::AwaitingApproval), vec![pod(2, "Failed")], false)]
    #[case::waits_with_no_call(without_the_call(holds(Phase::AwaitingApproval)), vec![], false)]
    fn of_a_job_that_ends_without_a_word_of_its_worker(
        #[case] standing: JobStatus,
        #[case] pods: Vec<Pod>,
        #[case] is_known: bool,
    ) {
        let read = |pod: &Pod| WorkerPod::read(pod, crate::job::fixtures::UID, standing.attempt.as_ref(), at(11));
        let pods: Vec<WorkerPod> = pods.iter().filter_map(read).collect();
        let end = End { outcome: Outcome::new(OutcomeCode::Cancelled, "cancelled"), read_from: None };
        assert_eq!(at_end(&standing, &pods, &end), is_known.then(held_call).as_ref());
    }

    #[rstest]
    #[case::none_was_begun(3, 9, true)]
    #[case::one_was(4, 9, false)]
    #[case::of_a_log_that_lost_events(3, 4, false)]
    fn of_a_job_whose_worker_told_the_end(#[case] calls: u32, #[case] events: u64, #[case] is_known: bool) {
        let mut standing = holds(Phase::Starting);
        standing.log = Some(crate::job::fixtures::log(7));
        let mut message = message(1, PodEnd::Finished, Some(OutcomeCode::Cancelled));
        message.usage = Some(Usage { tool_calls: calls, ..Usage::default() });
        message.log = Some(crate::job::fixtures::log(events));
        let end = End { outcome: message.outcome.clone().unwrap(), read_from: Some(Box::new(message.clone())) };
        assert_eq!(at_end(&standing, &[], &end).is_some(), is_known);
        standing.usage = None;
        assert_eq!(at_end(&standing, &[], &end), None, "nobody knows how many there were");
        assert_eq!(as_told(&holds(Phase::Running), None), None);
    }
}
