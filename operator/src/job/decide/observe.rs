//! Decides for a live pod, and reads the termination message of an ended one.

use super::facts::Facts;
use crate::job::plan::{Act, JobEnd};
use crate::job::pods::{PodState, WorkerPod};
use bloomery_crds::report::{ParkReason, PodEnd, TerminationMessage};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The interval for checking a pod that is not watched, because its labels were removed.
const UNWATCHED_POD_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The interval for checking a pod that is being deleted. On a lost node, the pod is not removed.
const DELETING_POD_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// The ages at which a pod is checked for problems that do not change the pod object.
const PROBLEM_CHECK_AGES: [SignedDuration; 2] = [SignedDuration::from_secs(5), SignedDuration::from_secs(60)];

/// Observes a live pod; none if no pod is alive.
pub(super) fn observe_alive(facts: &Facts, pod: Option<&WorkerPod>) -> Option<(Act, Option<SignedDuration>)> {
    let pod = pod?;
    match &pod.state {
        PodState::Alive(problem) => Some((Act::Observe(problem.clone()), next_check(pod, facts.now))),
        PodState::Ended { .. } => None,
    }
}

/// Returns when to check a live pod again.
pub(super) fn next_check(pod: &WorkerPod, now: Timestamp) -> Option<SignedDuration> {
    if pod.deleting {
        return Some(DELETING_POD_INTERVAL);
    }
    let until_next_age = pod.created.and_then(|created| {
        let age = now.duration_since(created);
        PROBLEM_CHECK_AGES.into_iter().find(|next| age < *next).map(|next| next - age)
    });
    let unwatched = (!pod.watched).then_some(UNWATCHED_POD_INTERVAL);
    [until_next_age, unwatched].into_iter().flatten().min()
}

/// The end of the Job in the termination message of a pod; none if the message has no outcome. This end counts although
/// no report has carried it, so no further pod is started to report it.
pub(super) fn end_in_message(pod: &WorkerPod) -> Option<JobEnd> {
    let message = pod.message.as_ref()?;
    let outcome = message.outcome.clone()?;
    Some(JobEnd { outcome, read_from: Some(Box::new(message.clone())) })
}

/// The termination message of a worker that parked for a person.
pub(super) fn parked_for_people(pod: &WorkerPod) -> Option<&TerminationMessage> {
    pod.message.as_ref().filter(|message| match message.end {
        PodEnd::Parked(ParkReason::Approval | ParkReason::Reply) => true,
        PodEnd::Parked(ParkReason::Drain | ParkReason::Suspension | ParkReason::Children)
        | PodEnd::Finished
        | PodEnd::Superseded => false,
    })
}
