//! What is done for a Job that a person has cancelled: it ends as soon as no worker of it can be at work any more.

use super::attempt::lost_once;
use super::awaiting::{listed, questions};
use super::cleanup::is_recorded;
use super::{Act, End, Facts, Life, Lost, WorkerPod, next_look, told_end};
use crate::job::status::log_of;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::v1alpha1::Attempt;
use k8s_openapi::jiff::SignedDuration;

/// How long a worker may take to hear of it, to give a call with effect its grace, and to end by itself.
const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// How many seconds the pod of a worker that has not reported has to end. It is less than a pod's own, within which a call
/// of a tool may go on: such a worker may never hear that its Job is cancelled. One that does has 5 s for a call.
const GRACE_UNHEARD: u32 = 8;

/// What is to be done, where the recorded attempt has told no outcome.
pub(super) fn act(facts: &Facts, recorded: Option<&Attempt>, pod: Option<&WorkerPod>) -> (Act, Option<SignedDuration>) {
    // Also one that was made and is not recorded yet.
    for pod in facts.pods {
        if let Life::Alive(problem) = &pod.life {
            return (Act::Cancel(problem.clone()), next_look(pod, facts.now));
        }
    }
    let told = facts.pods.iter().rev().find_map(told_end);
    (Act::End(told.unwrap_or_else(|| end(facts, recorded, pod))), None)
}

/// How long a live pod of a cancelled Job may stay. One whose worker has not reported is nobody's work yet.
pub(super) fn left(facts: &Facts, pod: &WorkerPod) -> Option<SignedDuration> {
    let since = facts.cancelled_since?;
    if is_unheard(facts, pod) {
        return Some(SignedDuration::ZERO);
    }
    Some(GRACE - facts.now.duration_since(since))
}

/// How many seconds a live pod of a cancelled Job has to end once it is deleted; none where it has as long as its spec says.
pub(super) fn grace(facts: &Facts, pod: &WorkerPod) -> Option<u32> {
    let is_cancelled = match &facts.status.outcome {
        Some(outcome) => outcome.code == OutcomeCode::Cancelled,
        None => facts.cancelled_since.is_some(),
    };
    (is_cancelled && is_unheard(facts, pod)).then_some(GRACE_UNHEARD)
}

/// Whether the worker of a pod has not reported, as far as the status knows. Whatever it does is in its log: it may be
/// killed, and nothing is done twice.
fn is_unheard(facts: &Facts, pod: &WorkerPod) -> bool {
    !is_recorded(facts, pod) || facts.status.phase == Some(Phase::Starting)
}

/// The end of a Job without a worker.
fn end(facts: &Facts, recorded: Option<&Attempt>, pod: Option<&WorkerPod>) -> End {
    let status = facts.status;
    let open = questions(facts);
    // A worker that rests has told that it parked.
    let cut_short = recorded.filter(|_| !status.awaits_people());
    let message = match cut_short.and_then(|recorded| Some((recorded, lost_once(facts, recorded, pod)?))) {
        None if open.is_empty() => "The Job was cancelled.".to_owned(),
        // One may be whether a call has happened.
        None => format!("The Job was cancelled, with a question that nobody has answered: {}", listed(open)),
        // Most have not even begun: the pod was waiting for a node, or for its image.
        Some((Attempt { number, pod, .. }, _)) if status.phase == Some(Phase::Starting) => format!(
            "The Job was cancelled before the worker of attempt {number} had reported; where its pod {pod} ran at all, {} says \
             what it did",
            log_of(status)
        ),
        Some((_, Lost { message: how, .. })) => format!(
            "The Job was cancelled; {how}: a call of a tool may have been under way, and {} says which",
            log_of(status)
        ),
    };
    End { outcome: Outcome::new(OutcomeCode::Cancelled, message), read_from: None }
}
