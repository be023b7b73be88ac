//! Decides what follows an attempt that ended without an outcome (`docs/explanation/engine.md`, section 1).

use super::facts::Facts;
use crate::job::plan::{Act, JobEnd, LostAttempt, MEMORY_FAULT_PAUSE};
use crate::job::pods::{PodState, WorkerPod};
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{PodEnd, TerminationMessage};
use bloomery_crds::v1alpha1::{Attempt, JobStatus};
use k8s_openapi::jiff::SignedDuration;

/// The maximum number of attempts whose workers end by themselves without a report or a termination message.
const MAX_SILENT_ATTEMPTS: u32 = 3;

/// The maximum number of consecutive attempts that are disrupted before the log makes progress. It is high, because a
/// disruption is no fault of the Job. The pauses before the last of them add up to a quarter of an hour.
const MAX_DISRUPTIONS: u32 = 20;

/// The longest pause after a disruption. The first one is 1 s, and each is twice as long as the one before.
const MAX_DISRUPTION_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// The longest pause that is not written to the status.
const MAX_UNRECORDED_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// The pause after the attempt with this number.
pub(super) fn pause_after(attempt: u32) -> SignedDuration {
    SignedDuration::from_secs(match attempt {
        0 | 1 => 1,
        2 => 5,
        _ => 25,
    })
}

/// The pause after a lost attempt.
fn pause_after_loss(lost: &LostAttempt, attempt: u32) -> SignedDuration {
    if lost.memory_fault.is_some() {
        return MEMORY_FAULT_PAUSE;
    }
    match lost.disrupted {
        0 => pause_after(attempt),
        disrupted => MAX_DISRUPTION_PAUSE.min(SignedDuration::from_secs(1 << (disrupted - 1).min(6))),
    }
}

/// Decides what follows an attempt whose pod ended or does not exist any more.
pub(super) fn next_act(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> (Act, Option<SignedDuration>) {
    let next = recorded.number.saturating_add(1);
    if facts.pods.iter().any(|pod| pod.attempt == next) {
        // The operator created this pod, and crashed before it recorded it.
        return (Act::Start { attempt: next, after: lost_attempt(facts, recorded, pod) }, None);
    }
    let Some(lost) = lost_attempt(facts, recorded, pod) else {
        return (Act::Start { attempt: next, after: None }, None);
    };
    if let Some(end) = crash_loop(&lost) {
        return (Act::End(end), None);
    }
    let pause = pause_after_loss(&lost, recorded.number);
    let left = pause - facts.now.duration_since(lost.ended);
    if left <= SignedDuration::ZERO {
        return (Act::Start { attempt: next, after: Some(lost) }, None);
    }
    // The next reconcile must know when the attempt ended, so that time is written to the status. For a brief pause no
    // write is needed if the pod has an end time, and the clock of its node is not ahead of the operator's.
    let pod_has_end_time = pod.and_then(WorkerPod::end_time).is_some_and(|ended| ended <= facts.now);
    let is_end_known = recorded.ended.is_some() || (pause <= MAX_UNRECORDED_PAUSE && pod_has_end_time);
    let act = if is_end_known { Act::KeepPausing } else { Act::Pause(lost) };
    (act, Some(left))
}

/// Returns how the attempt was lost; none if it parked.
pub(super) fn lost_attempt(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> Option<LostAttempt> {
    let message = pod.and_then(|pod| pod.message.as_ref());
    if is_parked(facts.status, recorded) || message.is_some_and(has_parked) {
        return None;
    }
    let (how, is_disrupted) = match pod.map(|pod| &pod.state) {
        Some(PodState::Ended { how, disrupted, .. }) => (format!("ended without an outcome: {how}"), *disrupted),
        None if recorded.pod_uid.is_none() => ("was not created by the operator".to_owned(), true),
        Some(PodState::Alive(_)) | None => ("vanished without an outcome".to_owned(), true),
    };
    let message_text = format!("the pod {} of attempt {} {how}", recorded.pod, recorded.number);
    let (silent, disrupted) = (recorded.silent.unwrap_or(0), recorded.disrupted.unwrap_or(0));
    if let Some(ended) = &recorded.ended {
        let memory_fault = recorded.memory_fault.clone();
        return Some(LostAttempt { ended: ended.0, silent, disrupted, memory_fault, message: message_text });
    }
    let memory_fault = pod.and_then(|pod| pod.memory_fault.clone());
    let (silent, disrupted) = match (is_disrupted, message.is_some() || has_reported(facts)) {
        // The worker cannot run, and says why.
        _ if memory_fault.is_some() => (silent, 0),
        (true, _) => (silent, disrupted.saturating_add(1)),
        (false, true) => (0, 0),
        (false, false) => (silent.saturating_add(1), 0),
    };
    let ended = pod.and_then(WorkerPod::end_time).map_or(facts.now, |ended| ended.min(facts.now));
    Some(LostAttempt { ended, silent, disrupted, memory_fault, message: message_text })
}

/// Returns whether the worker of the recorded attempt has reported: its first report replaces the phase
/// `Starting`.
fn has_reported(facts: &Facts) -> bool {
    matches!(facts.status.phase, Some(Phase::Running | Phase::Finalizing))
}

/// Returns whether the worker of the recorded attempt reported that it parked: the Job continues in a new pod at once.
fn is_parked(status: &JobStatus, attempt: &Attempt) -> bool {
    status.phase == Some(Phase::Queued) && attempt.ended.is_none()
}

fn has_parked(message: &TerminationMessage) -> bool {
    matches!(message.end, PodEnd::Parked(_))
}

/// Returns the end of a Job that has lost too many attempts; none if it may start another one.
fn crash_loop(lost: &LostAttempt) -> Option<JobEnd> {
    let LostAttempt { silent, disrupted, message, .. } = lost;
    let text = if *silent >= MAX_SILENT_ATTEMPTS {
        format!(
            "{silent} attempts ended without a report or a message; {message}: kubectl logs and kubectl describe of that \
             pod say more"
        )
    } else if *disrupted >= MAX_DISRUPTIONS {
        format!(
            "{disrupted} attempts in a row were disrupted before the log made progress, because their pods were deleted, \
             evicted or lost with their nodes, or their names were taken; {message}. Find out what removes the pods (kubectl \
             get events shows evictions), then create the Job again"
        )
    } else {
        return None;
    };
    Some(JobEnd::decided(Outcome::new(OutcomeCode::CrashLoop, text)))
}
