//! The result of the apply step: the only input of the status of a Job.

use super::ending::EndCause;
use super::plan::{JobEnd, LostAttempt, PeopleWait, Wait};
use super::pods::PodProblem;
use super::validate::Continued;
use bloomery_crds::report::TerminationMessage;
use bloomery_crds::v1alpha1::{ApprovedCall, HeldCall, RevisionRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The action that was applied for a Job.
#[expect(clippy::large_enum_variant, reason = "each reconcile has one value")]
#[derive(Debug, Clone, PartialEq)]
pub enum AppliedPlan {
    /// Nothing that changes the status.
    Nothing,
    /// The pod is alive. Holds the problem that keeps it from running, if any.
    Observed(Option<PodProblem>),
    /// An attempt was lost.
    Paused(LostAttempt),
    /// No attempt was started, because something that its pod needs is missing. Holds the previous attempt, if it was
    /// lost.
    Waiting(Wait, Option<LostAttempt>),
    /// A pod was created, or a pod that an earlier reconcile created was adopted. Holds the previous attempt, if it was
    /// lost.
    Started(StartedPod, Option<LostAttempt>),
    /// A pod that the operator did not create has the name of the attempt's pod, so the next attempt continues the Job.
    /// Holds the previous attempt, if it was lost.
    NameTaken(TakenName, Option<LostAttempt>),
    /// The Job waits for people.
    WaitsForPeople(PeopleWait),
    /// The Job is ending and its pod is still alive. Holds the problem that keeps the pod alive, if any.
    AwaitsPodEnd(EndCause, Option<PodProblem>),
    /// The Job was deleted.
    Deleted,
    /// The worker parked for a person. Only its termination message shows this.
    Parked(Box<TerminationMessage>),
    /// The Job ended. Holds the held call that no worker started, if that is known.
    Ended(JobEnd, Option<HeldCall>),
}

/// The name of an attempt's pod, if another pod has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenName {
    /// The name.
    pub pod: String,
    /// The number of the attempt.
    pub attempt: u32,
}

/// The started pod of an attempt, as stored by the API server. A started attempt is recorded only from this value.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedPod {
    /// The name of the pod.
    pub pod: String,
    /// The UID of the pod.
    pub uid: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The revision that the pod was created with.
    pub revision: RevisionRef,
    /// The Job that the pod's Job continues, if any.
    pub continued: Option<Continued>,
    /// The latest call whose approvals are passed to a worker.
    pub approved_call: Option<ApprovedCall>,
    /// A sentence for each limit of the Job that is above that of its Skill, so that the Skill's limit applies.
    pub lowered_limits: Vec<String>,
    /// The creation time.
    pub created: Option<Time>,
}
