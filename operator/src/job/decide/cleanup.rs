//! Which pods of a Job have served their time.

use super::ending;
use super::{Facts, Life, PodDeletion, WorkerPod};
use bloomery_crds::outcome::OutcomeCode;
use k8s_openapi::jiff::SignedDuration;

/// How long the pod of a Job that has ended may take to end itself: it waits for an acknowledgement 120 s.
const FAREWELL: SignedDuration = SignedDuration::from_secs(180);

/// The pods that are to be deleted now, and when to look again.
pub(super) fn plan(facts: &Facts) -> (Vec<PodDeletion>, Option<SignedDuration>) {
    let mut doomed = Vec::new();
    let mut again: Option<SignedDuration> = None;
    for pod in facts.pods.iter().filter(|pod| !pod.deleting) {
        let Some(left) = left(facts, pod) else { continue };
        if left <= SignedDuration::ZERO {
            doomed.push(PodDeletion { name: pod.name.clone(), uid: pod.uid.clone(), grace: ending::grace(facts, pod) });
        } else {
            again = Some(again.map_or(left, |again| again.min(left)));
        }
    }
    (doomed, again)
}

/// How long a pod may stay; none where it stays until something happens to it.
fn left(facts: &Facts, pod: &WorkerPod) -> Option<SignedDuration> {
    let since = |then| facts.now.duration_since(then);
    match &pod.life {
        Life::Ended { .. } if is_needed(facts, pod) => None,
        Life::Ended { .. } => pod.ended().map(|ended| facts.retention - since(ended)),
        Life::Alive(_) if facts.status.is_terminal() => match facts.status.outcome.as_ref().map(|outcome| outcome.code)
        {
            // Made as it was given up, and never recorded: there is nothing that it could tell.
            Some(OutcomeCode::Cancelled | OutcomeCode::SkillDeleted) if !is_recorded(facts, pod) => {
                Some(SignedDuration::ZERO)
            }
            _ => facts.status.completion_time.as_ref().map(|ended| FAREWELL - since(ended.0)),
        },
        Life::Alive(_) => ending::left(facts, pod),
    }
}

/// Whether a pod is of the attempt that is recorded.
pub(super) fn is_recorded(facts: &Facts, pod: &WorkerPod) -> bool {
    facts.status.attempt.as_ref().is_some_and(|recorded| recorded.number == pod.attempt)
}

/// Whether the end of this pod is all that is known of how its attempt went.
fn is_needed(facts: &Facts, pod: &WorkerPod) -> bool {
    let recorded = facts.status.attempt.as_ref();
    let is_settled = facts.status.is_terminal() || facts.status.awaits_people();
    !is_settled && recorded.is_none_or(|recorded| pod.attempt >= recorded.number)
}
