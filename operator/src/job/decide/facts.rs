//! Everything that a decision depends on.

use crate::approval::evaluate::{ApprovalUpdate, CallApprovals};
use crate::job::ending::Ending;
use crate::job::pods::WorkerPod;
use crate::job::replies::AnswerState;
use bloomery_crds::v1alpha1::{AskedQuestion, JobStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Everything that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The name of the Job, and its UID.
    pub job: (&'a str, &'a str),
    /// The Job's status.
    pub status: &'a JobStatus,
    /// The Job's pods.
    pub pods: &'a [WorkerPod],
    /// The held call that people decide on, where it is known.
    pub call_approvals: Option<&'a CallApprovals>,
    /// What to do to the Approvals that an ended Job has left open.
    pub left_open: &'a [ApprovalUpdate],
    /// Why the Job is ending, and since when this process knows it.
    pub ending: Option<(Ending, Timestamp)>,
    /// Whether the namespace is suspended.
    pub suspended: bool,
    /// For how many seconds the Job stays after its end; without limit where absent.
    pub ttl: Option<i64>,
    /// Whether the open questions are answered.
    pub answers: AnswerState,
    /// How long the Job may wait for a reply; absent where its Skill cannot be read.
    pub reply_expiry: Option<SignedDuration>,
    /// Whether a Job that continues this one has not begun, and needs it.
    pub continued: bool,
    /// How long finished pods are kept.
    pub retention: SignedDuration,
    /// The present.
    pub now: Timestamp,
}

impl<'a> Facts<'a> {
    /// Whether a pod belongs to the recorded attempt.
    pub fn is_recorded(&self, pod: &WorkerPod) -> bool {
        self.status.attempt.as_ref().is_some_and(|recorded| recorded.number == pod.attempt)
    }

    /// The open questions, as far as the status has room for them.
    pub fn questions(&self) -> &'a [AskedQuestion] {
        self.status.waiting_for.as_ref().map_or(&[], |waiting| &waiting.questions)
    }
}
