//! Decides what to do for a Job: a pure function over values, with the clock as an input.

mod attempt;
mod awaiting;
mod cleanup;
mod ending;
mod facts;
mod observe;

pub use facts::Facts;

use super::plan::{Act, Plan, earlier};
use super::pods::WorkerPod;
use bloomery_crds::outcome::Phase;
use k8s_openapi::jiff::SignedDuration;

/// Decides what to do for a Job.
pub fn decide(facts: &Facts) -> Plan {
    let (delete, next_deletion) = cleanup::pods_to_delete(facts);
    let (act, next_check) = choose_act(facts);
    let act = if facts.suspended { suspend_start(act, facts) } else { act };
    if let (true, Some(wait)) = (is_start_of_new_pod(&act, facts), facts.start_after) {
        return Plan { act: Act::KeepPausing, delete, requeue_after: earlier(next_deletion, Some(wait)) };
    }
    Plan { act, delete, requeue_after: earlier(next_deletion, next_check) }
}

fn choose_act(facts: &Facts) -> (Act, Option<SignedDuration>) {
    let status = facts.status;
    if status.is_terminal() {
        return act_after_end(facts);
    }
    let Some(recorded) = &status.attempt else {
        if let Some((cause, _)) = facts.ending {
            return ending::act_for_ending_job(facts, cause, None, None);
        }
        // If the pod exists already, the apply step finds it under its name and records it.
        return (Act::Start { attempt: 1, after: None }, None);
    };
    // A pod of this attempt with another UID was created again from the same manifest, and may be running.
    let is_recorded = |pod: &&WorkerPod| recorded.pod_uid.as_deref() == Some(&pod.uid);
    let of_attempt = || facts.pods.iter().find(|pod| pod.attempt == recorded.number);
    let pod = facts.pods.iter().find(is_recorded).or_else(of_attempt);
    if let Some(end) = pod.and_then(observe::end_in_message) {
        return (Act::End(end), None);
    }
    if let Some((cause, _)) = facts.ending {
        return ending::act_for_ending_job(facts, cause, Some(recorded), pod);
    }
    if status.phase == Some(Phase::AwaitingApproval) {
        return awaiting::act_for_held_call(facts, recorded, pod);
    }
    if status.phase == Some(Phase::AwaitingReply) {
        return awaiting::act_for_open_questions(facts, recorded, pod);
    }
    if status.phase == Some(Phase::AwaitingJob) {
        return awaiting::act_for_open_children(facts, recorded, pod);
    }
    if let Some(updates) =
        facts.call_approvals.and_then(|call_approvals| awaiting::approval_updates(facts, call_approvals))
    {
        return (Act::UpdateApprovals(updates), None);
    }
    // A queued Job no longer waits for people, although the termination message is still there.
    if let Some(message) = pod.and_then(observe::parked_for_people).filter(|_| status.phase != Some(Phase::Queued)) {
        return (Act::RecordParking(Box::new(message.clone())), None);
    }
    observe::observe_alive(facts, pod).unwrap_or_else(|| attempt::next_act(facts, recorded, pod))
}

/// Decides for a Job that has ended.
fn act_after_end(facts: &Facts) -> (Act, Option<SignedDuration>) {
    // A Job may be kept beyond its time to live for a follow-up. The start of the follow-up wakes the kept Job.
    let left = remaining_time_to_live(facts);
    let is_over = left.is_some_and(|left| left <= SignedDuration::ZERO);
    if is_over && !facts.has_pending_follow_up {
        return (Act::Delete, None);
    }
    let act = if facts.open_approval_updates.is_empty() {
        Act::Idle
    } else {
        Act::UpdateApprovals(facts.open_approval_updates.to_vec())
    };
    (act, left.filter(|_| !is_over))
}

/// Returns the remaining time to live of an ended Job (`spec.ttlSecondsAfterFinished`); none without a limit.
fn remaining_time_to_live(facts: &Facts) -> Option<SignedDuration> {
    let ended = facts.status.completion_time.as_ref().filter(|_| facts.status.is_terminal())?;
    let ttl = SignedDuration::from_secs(facts.ttl_seconds?);
    Some(ttl - facts.now.duration_since(ended.0))
}

/// Replaces the start of an attempt by a wait, because the namespace is suspended. If the pod of the attempt exists
/// already, the start is kept, so that the pod is recorded.
fn suspend_start(act: Act, facts: &Facts) -> Act {
    match &act {
        Act::Start { after, .. } if is_start_of_new_pod(&act, facts) => Act::Suspend(after.clone()),
        _ => act,
    }
}

/// Returns whether an act starts an attempt whose pod does not exist yet.
fn is_start_of_new_pod(act: &Act, facts: &Facts) -> bool {
    matches!(act, Act::Start { attempt, .. } if !facts.pods.iter().any(|pod| pod.attempt == *attempt))
}

#[cfg(test)]
mod tests;
