//! What follows an attempt that ended without an outcome (`engine.md`, section 1).

use super::{Act, End, Facts, Life, Lost, WorkerPod, is_parked};
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{End as PodEnd, TerminationMessage};
use bloomery_crds::v1alpha1::Attempt;
use k8s_openapi::jiff::SignedDuration;

/// How many attempts in a row may end without a word.
const SILENT: u32 = 3;

/// A pause so short that writing it down would only double the work.
const BRIEF: SignedDuration = SignedDuration::from_secs(1);

/// The pause after the attempt of this number.
pub(super) fn pause(attempt: u32) -> SignedDuration {
    SignedDuration::from_secs(match attempt {
        0 | 1 => 1,
        2 => 5,
        _ => 25,
    })
}

/// What follows an attempt whose pod ended, or is gone.
pub(super) fn after(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> (Act, Option<SignedDuration>) {
    let next = recorded.number.saturating_add(1);
    if facts.pods.iter().any(|pod| pod.attempt == next) {
        // Made before a crash of ours, and not recorded yet.
        return (Act::Start { attempt: next, after: lost_once(facts, recorded, pod) }, None);
    }
    let Some(lost) = lost_once(facts, recorded, pod) else {
        return (Act::Start { attempt: next, after: None }, None);
    };
    if lost.silent >= SILENT {
        return (Act::End(crash_loop(&lost)), None);
    }
    let pause = pause(recorded.number);
    let left = pause - facts.now.duration_since(lost.ended);
    if left <= SignedDuration::ZERO {
        return (Act::Start { attempt: next, after: Some(lost) }, None);
    }
    // The pod keeps the time itself, unless the clock of its node runs ahead of ours.
    let is_told = pod.and_then(WorkerPod::ended).is_some_and(|ended| ended <= facts.now);
    let is_known = recorded.ended.is_some() || (pause <= BRIEF && is_told);
    let act = if is_known { Act::KeepPausing } else { Act::Pause(lost) };
    (act, Some(left))
}

/// How the attempt was lost; none where it parked.
pub(super) fn lost_once(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> Option<Lost> {
    let message = pod.and_then(|pod| pod.message.as_ref());
    if is_parked(facts.status, recorded) || message.is_some_and(has_parked) {
        return None;
    }
    let how = match pod.map(|pod| &pod.life) {
        Some(Life::Ended { how, .. }) => format!("ended without an outcome: {how}"),
        Some(Life::Alive(_)) | None => "vanished without an outcome".to_owned(),
    };
    let counted = recorded.silent.unwrap_or(0);
    let (ended, silent) = match &recorded.ended {
        Some(ended) => (ended.0, counted),
        None => (
            pod.and_then(WorkerPod::ended).map_or(facts.now, |ended| ended.min(facts.now)),
            if message.is_some() || has_reported(facts) { 0 } else { counted.saturating_add(1) },
        ),
    };
    let message = format!("the pod {} of attempt {} {how}", recorded.pod, recorded.number);
    Some(Lost { ended, silent, message })
}

/// Whether the attempt that is recorded was heard of: its first report is always written down.
fn has_reported(facts: &Facts) -> bool {
    matches!(facts.status.phase, Some(Phase::Running | Phase::Finalizing))
}

fn has_parked(message: &TerminationMessage) -> bool {
    matches!(message.end, PodEnd::Parked(_))
}

fn crash_loop(lost: &Lost) -> End {
    let message = format!(
        "{} attempts in a row ended without a report or a message; {}: kubectl logs and kubectl describe of that pod say more",
        lost.silent, lost.message
    );
    End { outcome: Outcome::new(OutcomeCode::CrashLoop, message), read_from: None }
}
