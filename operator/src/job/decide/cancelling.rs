//! What is done for a Job that a person has cancelled: it ends as soon as no worker of it can be at work any more.

use super::attempt::lost_once;
use super::cleanup::is_recorded;
use super::{Act, End, Facts, Life, WorkerPod, next_look, told_end};
use crate::job::status::log_of;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::v1alpha1::Attempt;
use k8s_openapi::jiff::SignedDuration;

/// How long a worker may take to hear of it, to give a call with effect its grace, and to end by itself.
const GRACE: SignedDuration = SignedDuration::from_secs(30);

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
    if !is_recorded(facts, pod) || facts.status.phase == Some(Phase::Starting) {
        return Some(SignedDuration::ZERO);
    }
    Some(GRACE - facts.now.duration_since(since))
}

/// The end of a Job without a worker.
fn end(facts: &Facts, recorded: Option<&Attempt>, pod: Option<&WorkerPod>) -> End {
    let lost = recorded.filter(|_| !rests(facts)).and_then(|recorded| lost_once(facts, recorded, pod));
    let message = match lost {
        None => "The Job was cancelled.".to_owned(),
        Some(lost) => {
            let (how, log) = (lost.message, log_of(facts.status));
            format!("The Job was cancelled; {how}: a call of a tool may have been under way, and {log} says which")
        }
    };
    End { outcome: Outcome::new(OutcomeCode::Cancelled, message), read_from: None }
}

/// Whether the worker has told that it parked, because of people.
fn rests(facts: &Facts) -> bool {
    matches!(facts.status.phase, Some(Phase::AwaitingApproval | Phase::AwaitingReply))
}
