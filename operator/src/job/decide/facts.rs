//! The inputs of a decision.

use crate::approval::evaluate::{ApprovalUpdate, CallApprovals};
use crate::job::ending::EndCause;
use crate::job::pods::WorkerPod;
use crate::job::replies::AnswerState;
use bloomery_crds::v1alpha1::{AskedQuestion, JobStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The inputs of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The name and the UID of the Job.
    pub job: (&'a str, &'a str),
    /// The Job's status.
    pub status: &'a JobStatus,
    /// The Job's pods.
    pub pods: &'a [WorkerPod],
    /// The held call that people decide on, and its Approvals, if the call is known.
    pub call_approvals: Option<&'a CallApprovals>,
    /// The updates that the Approvals of an ended Job still need.
    pub open_approval_updates: &'a [ApprovalUpdate],
    /// The reason why the Job is ending, and the time at which this process first saw the Job ending.
    pub ending: Option<(EndCause, Timestamp)>,
    /// True if the namespace is suspended.
    pub suspended: bool,
    /// The time before which no attempt starts, because the attempts before it made no progress.
    pub start_after: Option<SignedDuration>,
    /// The time to live: the number of seconds that the Job is kept after its end. No limit if absent.
    pub ttl_seconds: Option<i64>,
    /// The state of the answers to the open questions.
    pub answers: AnswerState,
    /// True if an open child has ended, was refused or was deleted, or if no child is open.
    pub has_child_news: bool,
    /// The time that the Job may wait for a reply; absent if its Skill cannot be read.
    pub reply_expiry: Option<SignedDuration>,
    /// True if another Job continues this one and has not started: it still needs this Job.
    pub has_pending_follow_up: bool,
    /// The time that finished pods are kept.
    pub retention: SignedDuration,
    /// The current time.
    pub now: Timestamp,
}

impl<'a> Facts<'a> {
    /// Returns whether a pod belongs to the recorded attempt.
    pub fn is_recorded(&self, pod: &WorkerPod) -> bool {
        self.status.attempt.as_ref().is_some_and(|recorded| recorded.number == pod.attempt)
    }

    /// Returns the open questions that the status lists. More may be open, because the list is bounded.
    pub fn questions(&self) -> &'a [AskedQuestion] {
        self.status.waiting_for.as_ref().map_or(&[], |waiting| &waiting.questions)
    }
}
