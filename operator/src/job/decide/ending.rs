//! Decides for a Job that is ending, because a person cancelled it or its Skill was deleted. It ends as soon as none of
//! its workers can be running.

use super::attempt::lost_attempt;
use super::awaiting::quoted_questions;
use super::facts::Facts;
use super::observe::{end_in_message, next_check};
use crate::job::ending::EndCause;
use crate::job::plan::{Act, JobEnd, LostAttempt};
use crate::job::pods::{PodState, WorkerPod};
use crate::job::status::log_location;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{ParkReason, PodEnd, TerminationMessage};
use bloomery_crds::v1alpha1::Attempt;
use k8s_openapi::jiff::SignedDuration;

/// The time that a worker may take to receive the directive that the Job ends, to finish a call with effect, and to
/// stop.
const WORKER_END_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// The grace period, in seconds, of a pod whose worker has not reported. Such a worker may never receive the directive
/// that the Job ends. Therefore the period is shorter than the pod's own, during which a tool call may continue. It is
/// long enough for a worker that does receive the directive: this worker gives a call in progress 5 s.
const UNREPORTED_GRACE_SECONDS: u32 = 8;

/// Decides for an ending Job whose recorded attempt left no outcome.
pub(super) fn act_for_ending_job(
    facts: &Facts,
    cause: EndCause,
    recorded: Option<&Attempt>,
    pod: Option<&WorkerPod>,
) -> (Act, Option<SignedDuration>) {
    // The pods include one that was created and is not recorded yet.
    for pod in facts.pods {
        if let PodState::Alive(problem) = &pod.state {
            return (Act::AwaitPodEnd(cause, problem.clone()), next_check(pod, facts.now));
        }
    }
    let end_by_worker = facts.pods.iter().rev().find_map(end_in_message);
    (Act::End(end_by_worker.unwrap_or_else(|| job_end(facts, cause, recorded, pod))), None)
}

/// Returns how long a live pod of an ending Job may stay; none if the Job is not ending. The operator does not wait for
/// a worker that has not reported.
pub(super) fn time_left(facts: &Facts, pod: &WorkerPod) -> Option<SignedDuration> {
    let (_, since) = facts.ending?;
    if is_unreported(facts, pod) {
        return Some(SignedDuration::ZERO);
    }
    Some(WORKER_END_TIMEOUT - facts.now.duration_since(since))
}

/// Returns the grace period in seconds of a live pod of an ending Job; none if the pod's own applies.
pub(super) fn grace_seconds(facts: &Facts, pod: &WorkerPod) -> Option<u32> {
    let is_ending = match &facts.status.outcome {
        Some(outcome) => matches!(outcome.code, OutcomeCode::Cancelled | OutcomeCode::SkillDeleted),
        None => facts.ending.is_some(),
    };
    (is_ending && is_unreported(facts, pod)).then_some(UNREPORTED_GRACE_SECONDS)
}

/// Returns whether the worker of a pod has not reported, according to the status. This worker may be killed: the log
/// holds its actions, and the next worker repeats none of them.
fn is_unreported(facts: &Facts, pod: &WorkerPod) -> bool {
    !facts.is_recorded(pod) || facts.status.phase == Some(Phase::Starting)
}

/// The end of a Job without a worker.
fn job_end(facts: &Facts, cause: EndCause, recorded: Option<&Attempt>, pod: Option<&WorkerPod>) -> JobEnd {
    let parked = unreported_parking(facts, pod);
    let open = parked.map_or_else(|| facts.questions(), |message| &message.questions);
    let what = match cause {
        EndCause::Cancelled => "The Job was cancelled",
        EndCause::SkillDeleted => "The Job ended because the Skill was deleted",
    };
    let rest = describe_lost_attempt(facts, recorded, pod)
        // The question may be whether a call happened, so the message names it.
        .or_else(|| (!open.is_empty()).then(|| format!(", with an open question: {}", quoted_questions(open))))
        .or_else(|| {
            parked
                .filter(|message| is_parked_for_reply(message))
                .map(|_| format!(", with an open question, which {} shows", log_location(facts.status)))
        });
    let remedy = match cause {
        EndCause::Cancelled => "",
        EndCause::SkillDeleted => " Create the Skill again, and then another Job.",
    };
    let message = match (rest, remedy) {
        (None, remedy) => format!("{what}.{remedy}"),
        (Some(rest), "") => format!("{what}{rest}"),
        (Some(rest), remedy) => format!("{what}{rest}.{remedy}"),
    };
    JobEnd { outcome: Outcome::new(cause.code(), message), read_from: parked.cloned().map(Box::new) }
}

/// Describes how the attempt ended without an outcome; none if it parked, or if there was no attempt.
fn describe_lost_attempt(facts: &Facts, recorded: Option<&Attempt>, pod: Option<&WorkerPod>) -> Option<String> {
    let status = facts.status;
    // The worker of a Job that waits has parked.
    let recorded = recorded.filter(|_| !status.is_waiting())?;
    let LostAttempt { message: how, .. } = lost_attempt(facts, recorded, pod)?;
    let Attempt { number, pod, .. } = recorded;
    Some(if status.phase == Some(Phase::Starting) {
        // Most of these workers never started: the pod was waiting for a node or an image.
        format!(
            " before the worker of attempt {number} reported; if its pod {pod} ran at all, {} shows what it did",
            log_location(status)
        )
    } else {
        format!("; {how}: a tool call may have been in progress, and {} shows which", log_location(status))
    })
}

/// The termination message of a worker that parked and did not report that it parked.
fn unreported_parking<'a>(facts: &Facts, pod: Option<&'a WorkerPod>) -> Option<&'a TerminationMessage> {
    let is_reported = facts.status.is_waiting() || facts.status.phase == Some(Phase::Queued);
    let message = pod?.message.as_ref().filter(|_| !is_reported)?;
    matches!(message.end, PodEnd::Parked(_)).then_some(message)
}

/// Returns whether a worker parked because a question is open.
fn is_parked_for_reply(message: &TerminationMessage) -> bool {
    matches!(message.end, PodEnd::Parked(ParkReason::Reply))
}
