//! The plan for a Job: the actions of a reconcile, and the progress of a new attempt through its steps.

use super::ending::EndCause;
use super::pods::PodProblem;
use crate::approval::evaluate::{ApprovalUpdate, PendingDecision};
use bloomery_crds::conditions::Reason;
use bloomery_crds::outcome::Outcome;
use bloomery_crds::report::TerminationMessage;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The plan for a Job.
///
/// `A` is the attempt to start: first its number, then its fetched inputs, then the validated attempt, then the built
/// pod. Each step of a reconcile takes the plan of the step before it, and only a plan with a built pod can be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A = u32> {
    /// The action for the Job itself.
    pub act: Act<A>,
    /// The pods to delete.
    pub delete: Vec<PodDeletion>,
    /// The time until the next reconcile, even if nothing changes before.
    pub requeue_after: Option<SignedDuration>,
}

/// The action for the Job itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Act<A = u32> {
    /// Nothing: the Job has ended.
    Idle,
    /// Delete the Job: its time to live after its end is over.
    Delete,
    /// The pod is alive: record the problem that keeps it from running, if any.
    Observe(Option<PodProblem>),
    /// Nothing: the pause after a lost attempt is not over.
    KeepPausing,
    /// Wait for people.
    WaitForPeople(PeopleWait),
    /// Wait for the end of a child.
    WaitForChildren,
    /// Update these Approvals before anything else.
    UpdateApprovals(Vec<ApprovalUpdate>),
    /// Record that an attempt was lost, and pause.
    Pause(LostAttempt),
    /// Start an attempt.
    Start {
        /// The attempt, as far as the steps have come with it.
        attempt: A,
        /// The previous attempt, if it ended without an outcome and did not park.
        after: Option<LostAttempt>,
    },
    /// Create the Skill of the Job from its template. Holds the previous attempt, if it was lost.
    CreateSkill(Option<LostAttempt>),
    /// Start no attempt while the namespace is suspended. Holds the previous attempt, if it was lost.
    Suspend(Option<LostAttempt>),
    /// Start no attempt while something that its pod needs is missing. Holds the previous attempt, if it was lost.
    Wait(Wait, Option<LostAttempt>),
    /// The Job is ending and one of its pods is alive: wait for the pod, and record the problem that keeps it, if any.
    AwaitPodEnd(EndCause, Option<PodProblem>),
    /// Record that the worker parked for a person. Only its termination message shows this.
    RecordParking(Box<TerminationMessage>),
    /// End the Job.
    End(JobEnd),
}

/// What a Job that waits for people waits for. It has no pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeopleWait {
    /// The people that its status names already.
    AsRecorded,
    /// The approvers who have not decided on the held call.
    Approvers(Vec<PendingDecision>),
    /// The admission policy: without it, approvers are not asked. Holds the reason why it is not in force.
    PolicyMissing(String),
}

/// An attempt that ended without an outcome and did not park.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostAttempt {
    /// The time at which it ended.
    pub ended: Timestamp,
    /// The number of attempts whose worker ended by itself, without a report or a termination message, since the last
    /// report.
    pub silent: u32,
    /// The number of consecutive attempts, up to this one, that were disrupted without progress in the log. Zero if the
    /// worker ended by itself.
    pub disrupted: u32,
    /// The reason why its worker could not write to the memory, and the remedy, if that ended it.
    pub memory_fault: Option<String>,
    /// The description of its end, for people.
    pub message: String,
}

/// The pause after an attempt whose worker could not write to the memory. Only a new pod can find out whether that has changed.
pub const MEMORY_FAULT_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// The end of a Job for which no report has arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// The termination message of the last worker, if it has progress or an outcome that no report has delivered.
    pub read_from: Option<Box<TerminationMessage>>,
}

impl JobEnd {
    /// An end that the operator decides, without a message of the worker.
    pub fn decided(outcome: Outcome) -> Self {
        Self { outcome, read_from: None }
    }
}

/// A pod to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDeletion {
    /// Its name.
    pub name: String,
    /// Its UID. Another pod of that name is not deleted.
    pub uid: String,
    /// The grace period in seconds, if it is shorter than the pod's own.
    pub grace_seconds: Option<u32>,
}

/// The wait of a Job for an input that its pod needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The reason for the conditions of the Job.
    pub reason: Reason,
    /// The missing input and the remedy, for people.
    pub message: String,
    /// The time until a retry; none if the change of a watched object ends the wait.
    pub retry: Option<SignedDuration>,
}

impl Wait {
    /// A wait that ends with the change of a watched object.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry: None }
    }

    /// Adds a retry interval, for a wait that depends on objects which are not watched.
    #[must_use]
    pub fn retry_after(self, retry: SignedDuration) -> Self {
        Self { retry: Some(retry), ..self }
    }
}

/// The reason why an attempt does not start.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocked {
    /// Something that its pod needs is missing.
    Wait(Wait),
    /// The Skill does not exist, and the Job asks for it to be created from its template.
    NoSkill,
    /// The attempt can never start, and the Job ends.
    Never(JobEnd),
}

impl From<Wait> for Blocked {
    fn from(wait: Wait) -> Self {
        Self::Wait(wait)
    }
}

impl<A> Plan<A> {
    /// Passes the attempt to the next step, which may block it.
    #[must_use]
    pub fn and_then<T>(self, step: impl FnOnce(A) -> Result<T, Blocked>) -> Plan<T> {
        let Self { act, delete, mut requeue_after } = self;
        let act = match act.separate_start() {
            StartOrOther::Start { attempt, after } => match step(attempt) {
                Ok(attempt) => Act::Start { attempt, after },
                Err(Blocked::Wait(wait)) => {
                    requeue_after = earlier(requeue_after, wait.retry);
                    Act::Wait(wait, after)
                }
                Err(Blocked::NoSkill) => Act::CreateSkill(after),
                Err(Blocked::Never(end)) => Act::End(end),
            },
            StartOrOther::Other(act) => act,
        };
        Plan { act, delete, requeue_after }
    }
}

/// An act, separated by whether it starts an attempt.
pub enum StartOrOther<A, T> {
    /// The start of an attempt ([`Act::Start`]).
    Start {
        /// The attempt.
        attempt: A,
        /// The previous attempt, if it was lost.
        after: Option<LostAttempt>,
    },
    /// Any other act.
    Other(Act<T>),
}

impl<A> Act<A> {
    /// Separates the start of an attempt from every other act.
    pub fn separate_start<T>(self) -> StartOrOther<A, T> {
        StartOrOther::Other(match self {
            Self::Start { attempt, after } => return StartOrOther::Start { attempt, after },
            Self::Idle => Act::Idle,
            Self::Delete => Act::Delete,
            Self::Observe(problem) => Act::Observe(problem),
            Self::KeepPausing => Act::KeepPausing,
            Self::WaitForPeople(wait) => Act::WaitForPeople(wait),
            Self::WaitForChildren => Act::WaitForChildren,
            Self::UpdateApprovals(updates) => Act::UpdateApprovals(updates),
            Self::Pause(lost) => Act::Pause(lost),
            Self::CreateSkill(after) => Act::CreateSkill(after),
            Self::Suspend(after) => Act::Suspend(after),
            Self::Wait(wait, after) => Act::Wait(wait, after),
            Self::AwaitPodEnd(cause, problem) => Act::AwaitPodEnd(cause, problem),
            Self::RecordParking(message) => Act::RecordParking(message),
            Self::End(end) => Act::End(end),
        })
    }
}

/// Returns the shorter of two times until the next reconcile, or the only one; none if there is neither.
pub fn earlier(one: Option<SignedDuration>, other: Option<SignedDuration>) -> Option<SignedDuration> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::outcome::OutcomeCode;

    fn plan(act: Act) -> Plan {
        let delete = vec![PodDeletion { name: "refund-1".into(), uid: "uid-1".into(), grace_seconds: None }];
        Plan { act, delete, requeue_after: Some(SignedDuration::from_secs(90)) }
    }

    #[test]
    fn a_step_passes_the_attempt_on_or_blocks_it_with_a_reason() {
        let starts = || plan(Act::Start { attempt: 2, after: None });
        let passed = starts().and_then(|attempt| Ok(format!("pod {attempt}")));
        assert_eq!(passed.act, Act::Start { attempt: "pod 2".to_owned(), after: None });

        let wait = Wait::new(Reason::ModelNotFound, "no Model").retry_after(SignedDuration::from_secs(5));
        let waits: Plan<String> = starts().and_then(|_| Err(wait.clone().into()));
        assert_eq!((waits.act, waits.requeue_after), (Act::Wait(wait, None), Some(SignedDuration::from_secs(5))));
        assert_eq!(waits.delete, starts().delete, "the planned deletions stay");

        let end = JobEnd::decided(Outcome::new(OutcomeCode::UserNeeded, "it does not fit"));
        let ends: Plan<String> = starts().and_then(|_| Err(Blocked::Never(end.clone())));
        assert_eq!((ends.act, ends.requeue_after), (Act::End(end), starts().requeue_after));

        let creates: Plan<String> = starts().and_then(|_| Err(Blocked::NoSkill));
        assert_eq!((creates.act, creates.requeue_after), (Act::CreateSkill(None), starts().requeue_after));
    }

    #[test]
    fn a_plan_without_an_attempt_skips_the_step() {
        let observes: Plan<String> = plan(Act::Observe(None)).and_then(|_| panic!("there is no attempt"));
        assert_eq!((observes.act, observes.requeue_after), (Act::Observe(None), Some(SignedDuration::from_secs(90))));
    }
}
