//! What is to be done for a Job: a decision over values, with the clock as one of them.

mod attempt;
mod awaiting;
mod cleanup;
mod ending;
mod expiry;

use super::ending::Ending;
use super::pods::{Life, Problem, WorkerPod};
use super::replies::Answers;
use crate::approval::standing::{Asked, Mark, PendingDecision};
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::report::{End as PodEnd, ParkReason, TerminationMessage};
use bloomery_crds::v1alpha1::{Attempt, JobStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// All that a decision is made of.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The name of the Job, and its UID.
    pub job: (&'a str, &'a str),
    /// What stands in the Job's status.
    pub status: &'a JobStatus,
    /// The Job's pods.
    pub pods: &'a [WorkerPod],
    /// The call that people decide on, where it is known.
    pub asked: Option<&'a Asked>,
    /// What is to be done to Approvals that a Job that has ended has left open.
    pub left_open: &'a [Mark],
    /// Whether the Job is to end whatever it does, and since when that is known.
    pub ending: Option<(Ending, Timestamp)>,
    /// Whether the namespace is suspended.
    pub suspended: bool,
    /// How many seconds after its end the Job is to stay, where that has an end.
    pub ttl: Option<i64>,
    /// What has come of the questions that are open.
    pub answers: Answers,
    /// How long the Job may wait for a reply; none where its Skill cannot be read.
    pub reply_expiry: Option<SignedDuration>,
    /// Whether a Job that continues this one has not begun: it could not without it.
    pub continued: bool,
    /// How long finished pods are kept.
    pub retention: SignedDuration,
    /// The present.
    pub now: Timestamp,
}

/// What is to be done for a Job.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The Job itself.
    pub act: Act,
    /// Pods that are to be deleted.
    pub delete: Vec<PodDeletion>,
    /// When to look again, whatever happens until then.
    pub again: Option<SignedDuration>,
}

/// What is to be done for the Job itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// The Job has ended.
    Idle,
    /// The Job has ended, and has stayed as long as it was to: it is deleted.
    Delete,
    /// Its pod lives: say what keeps it from its work, if anything does.
    Observe(Option<Problem>),
    /// The pause after a lost attempt lasts on. Nothing is to be said.
    KeepPausing,
    /// People are waited for.
    WaitForPeople(PeopleWait),
    /// These Approvals are to be settled, before anything else.
    Settle(Vec<Mark>),
    /// An attempt was lost: say so, and wait.
    Pause(Lost),
    /// Start the pod of this attempt, if everything that it needs is there.
    Start {
        /// The number of the attempt.
        attempt: u32,
        /// Present where the attempt before ended without an outcome, and did not park.
        after: Option<Lost>,
    },
    /// An attempt would start, and the namespace is suspended.
    Suspend(Option<Lost>),
    /// The Job is given up, and its pod still lives: say so, and what keeps the pod, if anything does.
    AwaitPodEnd(Ending, Option<Problem>),
    /// The worker parked because a call or a question waits for a person, and only its pod says so.
    RecordParking(Box<TerminationMessage>),
    /// The Job is over.
    End(End),
}

/// Which people are waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeopleWait {
    /// Those that the status tells.
    AsRecorded,
    /// Those who have still to decide on the call.
    Approvers(Vec<PendingDecision>),
    /// Nobody is asked, and why.
    NobodyAsked(String),
}

/// An attempt that ended without an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// When.
    pub ended: Timestamp,
    /// How many attempts in a row, up to that one, said nothing at all.
    pub silent: u32,
    /// How it ended, for people.
    pub message: String,
}

/// The end of a Job that no report told.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// The outcome.
    pub outcome: Outcome,
    /// The message that it was read from, where the report did not arrive.
    pub read_from: Option<Box<TerminationMessage>>,
}

/// A pod that is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDeletion {
    /// Its name.
    pub name: String,
    /// Its UID: another pod of the name is left alone.
    pub uid: String,
    /// How many seconds it has to end by itself, where they are fewer than its own.
    pub grace: Option<u32>,
}

/// How often a pod is looked at whose changes nothing tells: somebody removed its labels.
const UNWATCHED: SignedDuration = SignedDuration::from_secs(60);

/// Decides what is to be done for a Job.
pub fn decide(facts: &Facts) -> Decision {
    let (delete, next_deletion) = cleanup::plan(facts);
    let (act, next_look) = act(facts);
    let act = if facts.suspended { suspended(act, facts) } else { act };
    let again = [next_deletion, next_look].into_iter().flatten().min();
    Decision { act, delete, again }
}

fn act(facts: &Facts) -> (Act, Option<SignedDuration>) {
    let status = facts.status;
    if status.is_terminal() {
        return ended(facts);
    }
    let Some(recorded) = &status.attempt else {
        if let Some((why, _)) = facts.ending {
            return ending::act(facts, why, None, None);
        }
        // The pod may be there already: then it is found under its name, and recorded.
        return (Act::Start { attempt: 1, after: None }, None);
    };
    // A pod of this attempt that somebody made again of the same text counts as well: it may be at work.
    let is_recorded = |pod: &&WorkerPod| recorded.pod_uid.as_deref() == Some(&pod.uid);
    let of_attempt = || facts.pods.iter().find(|pod| pod.attempt == recorded.number);
    let pod = facts.pods.iter().find(is_recorded).or_else(of_attempt);
    if let Some(end) = pod.and_then(told_end) {
        return (Act::End(end), None);
    }
    if let Some((why, _)) = facts.ending {
        return ending::act(facts, why, Some(recorded), pod);
    }
    if status.phase == Some(Phase::AwaitingApproval) {
        return awaiting::approval(facts, recorded, pod);
    }
    if status.phase == Some(Phase::AwaitingReply) {
        return awaiting::reply(facts, recorded, pod);
    }
    if let Some(marks) = facts.asked.and_then(|asked| awaiting::to_settle(facts, asked)) {
        return (Act::Settle(marks), None);
    }
    // A Job that is queued has rested, and goes on as soon as it can.
    if let Some(message) = pod.and_then(told_rest).filter(|_| status.phase != Some(Phase::Queued)) {
        return (Act::RecordParking(Box::new(message.clone())), None);
    }
    match pod {
        Some(pod) if let Life::Alive(problem) = &pod.life => (Act::Observe(problem.clone()), next_look(pod, facts.now)),
        pod => attempt::after(facts, recorded, pod),
    }
}

/// What is done for a Job that has ended.
fn ended(facts: &Facts) -> (Act, Option<SignedDuration>) {
    // What lets a Job go that is over its time, is told by the Job that continues it.
    match expiry::left(facts) {
        Some(left) if left <= SignedDuration::ZERO && !facts.continued => (Act::Delete, None),
        left if facts.left_open.is_empty() => (Act::Idle, left),
        left => (Act::Settle(facts.left_open.to_vec()), left),
    }
}

/// No pod is made in a suspended namespace; one that is there already is taken over.
fn suspended(act: Act, facts: &Facts) -> Act {
    match act {
        Act::Start { attempt, after } if !facts.pods.iter().any(|pod| pod.attempt == attempt) => Act::Suspend(after),
        other => other,
    }
}

/// The outcome that a pod left behind. It is final: no pod is started only to report it.
fn told_end(pod: &WorkerPod) -> Option<End> {
    let message = pod.message.as_ref()?;
    let outcome = message.outcome.clone()?;
    Some(End { outcome, read_from: Some(Box::new(message.clone())) })
}

/// The message of a worker that parked because a call or a question waits for a person: no pod is started for it.
fn told_rest(pod: &WorkerPod) -> Option<&TerminationMessage> {
    pod.message.as_ref().filter(|message| match message.end {
        PodEnd::Parked(ParkReason::Approval | ParkReason::Reply) => true,
        PodEnd::Parked(ParkReason::Drain | ParkReason::Suspension) | PodEnd::Finished | PodEnd::Superseded => false,
    })
}

/// Some problems show only with time.
fn next_look(pod: &WorkerPod, now: Timestamp) -> Option<SignedDuration> {
    if pod.deleting {
        return Some(SignedDuration::from_secs(30));
    }
    let shows = pod.created.and_then(|created| {
        let age = now.duration_since(created);
        let moments = [5, 60].map(SignedDuration::from_secs);
        moments.into_iter().find(|moment| age < *moment).map(|moment| moment - age)
    });
    let untold = (!pod.watched).then_some(UNWATCHED);
    [shows, untold].into_iter().flatten().min()
}

/// Whether the worker of the recorded attempt parked: its Job goes on in a new pod, at once.
pub(crate) fn is_parked(status: &JobStatus, attempt: &Attempt) -> bool {
    status.phase == Some(Phase::Queued) && attempt.ended.is_none()
}

#[cfg(test)]
mod tests;
