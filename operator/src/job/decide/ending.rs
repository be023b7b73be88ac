//! What is done for a Job that a person has cancelled, or whose Skill was deleted: it ends as soon as no worker of it can be
//! at work any more.

use super::attempt::lost_once;
use super::awaiting::{listed, questions};
use super::cleanup::is_recorded;
use super::{Act, End, Ending, Facts, Life, Lost, WorkerPod, next_look, told_end};
use crate::job::status::log_of;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{End as PodEnd, ParkReason, TerminationMessage};
use bloomery_crds::v1alpha1::Attempt;
use k8s_openapi::jiff::SignedDuration;

/// How long a worker may take to hear of it, to give a call with effect its grace, and to end by itself.
const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// How many seconds the pod of a worker that has not reported has to end. It is less than a pod's own, within which a call
/// of a tool may go on: such a worker may never hear that its Job is given up. One that does has 5 s for a call.
const GRACE_UNHEARD: u32 = 8;

/// What is to be done, where the recorded attempt has told no outcome.
pub(super) fn act(
    facts: &Facts,
    why: Ending,
    recorded: Option<&Attempt>,
    pod: Option<&WorkerPod>,
) -> (Act, Option<SignedDuration>) {
    // Also one that was made and is not recorded yet.
    for pod in facts.pods {
        if let Life::Alive(problem) = &pod.life {
            return (Act::AwaitPodEnd(why, problem.clone()), next_look(pod, facts.now));
        }
    }
    let told = facts.pods.iter().rev().find_map(told_end);
    (Act::End(told.unwrap_or_else(|| end(facts, why, recorded, pod))), None)
}

/// How long a live pod of a Job that is given up may stay. One whose worker has not reported is nobody's work yet.
pub(super) fn left(facts: &Facts, pod: &WorkerPod) -> Option<SignedDuration> {
    let (_, since) = facts.ending?;
    if is_unheard(facts, pod) {
        return Some(SignedDuration::ZERO);
    }
    Some(GRACE - facts.now.duration_since(since))
}

/// How many seconds a live pod of such a Job has to end once it is deleted; none where it has as long as its spec says.
pub(super) fn grace(facts: &Facts, pod: &WorkerPod) -> Option<u32> {
    let is_given_up = match &facts.status.outcome {
        Some(outcome) => matches!(outcome.code, OutcomeCode::Cancelled | OutcomeCode::SkillDeleted),
        None => facts.ending.is_some(),
    };
    (is_given_up && is_unheard(facts, pod)).then_some(GRACE_UNHEARD)
}

/// Whether the worker of a pod has not reported, as far as the status knows. Whatever it does is in its log: it may be
/// killed, and nothing is done twice.
fn is_unheard(facts: &Facts, pod: &WorkerPod) -> bool {
    !is_recorded(facts, pod) || facts.status.phase == Some(Phase::Starting)
}

/// The end of a Job without a worker.
fn end(facts: &Facts, why: Ending, recorded: Option<&Attempt>, pod: Option<&WorkerPod>) -> End {
    let parked = untold_parking(facts, pod);
    let open = parked.map_or_else(|| questions(facts), |message| &message.questions);
    let what = match why {
        Ending::Cancelled => "The Job was cancelled",
        Ending::SkillDeleted => "The Job ended because the Skill was deleted",
    };
    let rest = cut_short(facts, recorded, pod)
        // One may be whether a call has happened.
        .or_else(|| (!open.is_empty()).then(|| format!(", with an open question: {}", listed(open))))
        .or_else(|| {
            parked
                .filter(|message| asks(message))
                .map(|_| format!(", with a question open that {} tells", log_of(facts.status)))
        });
    let remedy = match why {
        Ending::Cancelled => "",
        Ending::SkillDeleted => " Make the Skill again, and then another Job.",
    };
    let message = match (rest, remedy) {
        (None, remedy) => format!("{what}.{remedy}"),
        (Some(rest), "") => format!("{what}{rest}"),
        (Some(rest), remedy) => format!("{what}{rest}.{remedy}"),
    };
    End { outcome: Outcome::new(why.code(), message), read_from: parked.cloned().map(Box::new) }
}

/// What is said of an attempt that ended without an outcome and did not park; none where there was none.
fn cut_short(facts: &Facts, recorded: Option<&Attempt>, pod: Option<&WorkerPod>) -> Option<String> {
    let status = facts.status;
    // A worker that rests has told that it parked.
    let recorded = recorded.filter(|_| !status.awaits_people())?;
    let Lost { message: how, .. } = lost_once(facts, recorded, pod)?;
    let Attempt { number, pod, .. } = recorded;
    Some(if status.phase == Some(Phase::Starting) {
        // Most have not even begun: the pod was waiting for a node, or for its image.
        format!(
            " before the worker of attempt {number} had reported; where its pod {pod} ran at all, {} says what it did",
            log_of(status)
        )
    } else {
        format!("; {how}: a call of a tool may have been under way, and {} says which", log_of(status))
    })
}

/// What a worker left behind that parked, where no report has told that.
fn untold_parking<'a>(facts: &Facts, pod: Option<&'a WorkerPod>) -> Option<&'a TerminationMessage> {
    let is_told = facts.status.awaits_people() || facts.status.phase == Some(Phase::Queued);
    let message = pod?.message.as_ref().filter(|_| !is_told)?;
    matches!(message.end, PodEnd::Parked(_)).then_some(message)
}

/// Whether a worker parked because a question is open.
fn asks(message: &TerminationMessage) -> bool {
    matches!(message.end, PodEnd::Parked(ParkReason::Reply))
}
