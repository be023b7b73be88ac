//! The result of the apply step: the only thing that the status of a Job is computed from.

use super::ending::Ending;
use super::plan::{JobEnd, LostAttempt, PeopleWait, Wait};
use super::pods::PodProblem;
use bloomery_crds::report::TerminationMessage;
use bloomery_crds::v1alpha1::{HeldCall, RevisionRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What was done for a Job.
#[derive(Debug, Clone, PartialEq)]
pub enum AppliedPlan {
    /// Nothing that the status would say.
    Nothing,
    /// The pod is alive, and this keeps it from its work, if anything does.
    Observed(Option<PodProblem>),
    /// An attempt was lost.
    Paused(LostAttempt),
    /// No attempt was started, because something that its pod needs is missing.
    Waiting(Wait, Option<LostAttempt>),
    /// A pod was created, or found where it had been created before.
    Started(StartedPod, Option<LostAttempt>),
    /// The Job waits for people.
    WaitsForPeople(PeopleWait),
    /// The Job is ending and its pod is still alive; this keeps the pod, if anything does.
    AwaitsPodEnd(Ending, Option<PodProblem>),
    /// The Job was deleted.
    Deleted,
    /// The worker parked for a person, and only its termination message says so.
    Parked(Box<TerminationMessage>),
    /// The Job ended; with the held call that no worker has started, where that is known.
    Ended(JobEnd, Option<HeldCall>),
}

/// A pod as the API server stored it: a started attempt is recorded from nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedPod {
    /// Its name.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// The number of its attempt.
    pub attempt: u32,
    /// The revision that it was created with.
    pub revision: RevisionRef,
    /// The UID of the Job that the Job continues.
    pub continued: Option<String>,
    /// When it was created.
    pub created: Option<Time>,
}
