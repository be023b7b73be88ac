//! What is done while a call waits for people: the Job has no pod, and goes on in its next attempt.

use super::attempt::pause;
use super::{Act, Facts, Life, WorkerPod, next_look};
use crate::approval::standing::{Standing, standing};
use bloomery_crds::v1alpha1::Attempt;
use k8s_openapi::jiff::SignedDuration;

/// What is to be done for a Job whose worker parked because a call is held.
pub(super) fn act(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> (Act, Option<SignedDuration>) {
    let next = Act::Start { attempt: recorded.number.saturating_add(1), after: None };
    let (name, uid) = facts.job;
    let standing = match facts.asked {
        Some(asked) => standing(name, uid, asked, facts.now),
        // No report has told which call it is.
        None => Standing::Missing,
    };
    match standing {
        Standing::Settle(marks) => (Act::Settle(marks), None),
        Standing::Unguarded(why) => (Act::Await(Some(why)), None),
        Standing::Open(until) => (Act::Await(None), Some(until.duration_since(facts.now))),
        Standing::Nobody => (Act::Await(None), None),
        Standing::Decided | Standing::Missing if let Some(pod) = pod.filter(|pod| is_alive(pod)) => {
            (Act::Await(None), next_look(pod, facts.now))
        }
        Standing::Decided => (next, None),
        Standing::Missing => match told_again_in(facts, recorded, pod) {
            left if left > SignedDuration::ZERO => (Act::Await(None), Some(left)),
            _ => (next, None),
        },
    }
}

fn is_alive(pod: &WorkerPod) -> bool {
    matches!(pod.life, Life::Alive(_))
}

/// How long until a worker is started to tell the call again: it may be told in vain, again and again.
fn told_again_in(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> SignedDuration {
    let ended = pod.and_then(WorkerPod::ended);
    ended.map_or(SignedDuration::ZERO, |ended| pause(recorded.number) - facts.now.duration_since(ended))
}
