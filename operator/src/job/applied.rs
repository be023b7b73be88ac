//! What came of a decision: what a status is made of.

use super::decide::{End, Lost, PeopleWait};
use super::ending::Ending;
use super::pods::Problem;
use bloomery_crds::conditions::Reason;
use bloomery_crds::report::TerminationMessage;
use bloomery_crds::v1alpha1::{HeldCall, RevisionRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What came of a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// Nothing that a status would say.
    Nothing,
    /// The pod lives.
    Observed(Option<Problem>),
    /// An attempt was lost.
    Paused(Lost),
    /// A pod is wanted, and something that it needs is not there.
    Waiting(Wait, Option<Lost>),
    /// A pod was made, or found where it had been made before.
    Started(StartedPod, Option<Lost>),
    /// People are waited for.
    WaitsForPeople(PeopleWait),
    /// The Job is given up, and its pod still lives; what keeps the pod, if anything does.
    AwaitsPodEnd(Ending, Option<Problem>),
    /// The Job was deleted.
    Deleted,
    /// A call or a question waits for a person, and only the pod that ended says so.
    Parked(Box<TerminationMessage>),
    /// The Job is over; where that is known, with the call that people were asked about and that was not begun.
    Ended(End, Option<HeldCall>),
}

/// What a Job waits for before it gets a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The kind of it.
    pub reason: Reason,
    /// What is missing, and what to do.
    pub message: String,
}

impl Wait {
    /// Makes one.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// A pod as the API server made it: only of this can a started attempt be told.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedPod {
    /// Its name.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// Which attempt it is.
    pub attempt: u32,
    /// The revision that it was made with.
    pub revision: RevisionRef,
    /// The UID of the Job that the Job continues.
    pub continued: Option<String>,
    /// When it was made.
    pub created: Option<Time>,
}
