//! Decides which pods of a Job to delete.

use super::ending;
use super::facts::Facts;
use crate::job::plan::{PodDeletion, earlier};
use crate::job::pods::{PodState, WorkerPod};
use bloomery_crds::outcome::OutcomeCode;
use k8s_openapi::jiff::SignedDuration;

/// The time that the pod of an ended Job may take to end by itself. Its worker waits 120 s for the acknowledgement of
/// its final report.
const LAST_REPORT_TIMEOUT: SignedDuration = SignedDuration::from_secs(180);

/// Returns the pods to delete now, and when to look again.
pub(super) fn pods_to_delete(facts: &Facts) -> (Vec<PodDeletion>, Option<SignedDuration>) {
    let mut delete = Vec::new();
    let mut requeue_after: Option<SignedDuration> = None;
    for pod in facts.pods.iter().filter(|pod| !pod.deleting) {
        let Some(left) = time_left(facts, pod) else { continue };
        if left <= SignedDuration::ZERO {
            let grace_seconds = ending::grace_seconds(facts, pod);
            delete.push(PodDeletion { name: pod.name.clone(), uid: pod.uid.clone(), grace_seconds });
        } else {
            requeue_after = earlier(requeue_after, Some(left));
        }
    }
    (delete, requeue_after)
}

/// Returns how long a pod may stay; none if it stays until another event.
fn time_left(facts: &Facts, pod: &WorkerPod) -> Option<SignedDuration> {
    let since = |time| facts.now.duration_since(time);
    match &pod.state {
        PodState::Ended { .. } if is_needed(facts, pod) => None,
        // It would hold its requests and its place in a quota.
        PodState::Ended { .. } if pod.outlives_worker => Some(SignedDuration::ZERO),
        PodState::Ended { .. } => pod.end_time().map(|ended| facts.retention - since(ended)),
        PodState::Alive(_) if facts.status.is_terminal() => {
            match facts.status.outcome.as_ref().map(|outcome| outcome.code) {
                // Created while the Job was ending, and never recorded: it has nothing to report.
                Some(OutcomeCode::Cancelled | OutcomeCode::SkillDeleted) if !facts.is_recorded(pod) => {
                    Some(SignedDuration::ZERO)
                }
                _ => facts.status.completion_time.as_ref().map(|ended| LAST_REPORT_TIMEOUT - since(ended.0)),
            }
        }
        PodState::Alive(_) => ending::time_left(facts, pod),
    }
}

/// Returns whether the operator still needs this ended pod, because only the pod shows how its attempt ended.
fn is_needed(facts: &Facts, pod: &WorkerPod) -> bool {
    let recorded = facts.status.attempt.as_ref();
    let is_settled = facts.status.is_terminal() || facts.status.is_waiting();
    !is_settled && recorded.is_none_or(|recorded| pod.attempt >= recorded.number)
}
