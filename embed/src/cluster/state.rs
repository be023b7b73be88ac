//! The state of a Job, and the actions of people that it allows.

use crate::text::sanitized_lines;
use bloomery_crds::conditions::{self, ConditionType, Reason};
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, AskedQuestion, Job, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Returns the phase of a Job; `Pending` before it has a status.
pub fn phase(job: &Job) -> Phase {
    job.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
}

/// Returns whether the Job waits for people. It no longer waits when one of its open questions has an answer in the spec, even if
/// the Job has not received the answer yet. A message that answers no question does not end the wait.
pub fn waits_for_people(job: &Job) -> bool {
    let Some(status) = job.status.as_ref().filter(|status| status.awaits_people()) else { return false };
    !job.spec.has_pending_answer(status)
}

/// Returns whether the Job has ended.
pub fn has_ended(job: &Job) -> bool {
    job.status.as_ref().is_some_and(JobStatus::is_terminal)
}

/// Returns the open questions in the status.
pub fn questions(job: &Job) -> &[AskedQuestion] {
    let waiting = job.status.as_ref().and_then(|status| status.waiting_for.as_ref());
    waiting.map(|waiting| waiting.questions.as_slice()).unwrap_or_default()
}

/// Returns why no decision is requested on the Job's held call. Returns `None` if one is requested, or no call is held.
pub fn not_requested_reason(job: &Job) -> Option<&str> {
    let is_not_requested = has_reason(job, Reason::ApprovalPolicyMissing) || has_reason(job, Reason::NobodyAsked);
    not_ready(job).filter(|_| is_not_requested && !has_ended(job)).map(|ready| ready.message.as_str())
}

/// Returns the names of the Approvals in the status. These Approvals may not exist.
pub fn approvals(job: &Job) -> &[String] {
    let waiting = job.status.as_ref().and_then(|status| status.waiting_for.as_ref());
    waiting.map(|waiting| waiting.approvals.as_slice()).unwrap_or_default()
}

/// Returns the verdict of an Approval. The verdict that the operator has counted takes precedence over the decision, which may
/// have come too late.
pub fn verdict(approval: &Approval) -> Option<ApprovalVerdict> {
    let counted = approval.status.as_ref().and_then(|status| status.counted.as_ref()).map(|counted| counted.verdict);
    counted.or_else(|| approval.spec.decision.as_ref().map(|decision| decision.verdict))
}

/// Summarizes the phase and the outcome.
pub fn summary(job: &Job) -> String {
    let outcome = job.status.as_ref().and_then(|status| status.outcome.as_ref());
    sanitized_lines(&phase_and_outcome(phase(job), outcome))
}

/// Returns whether the Job ends because its Skill was deleted.
pub fn is_without_skill(job: &Job) -> bool {
    has_reason(job, Reason::SkillDeleted) && !has_ended(job)
}

/// Returns whether the condition `Ready` is not true, with this reason.
pub fn has_reason(job: &Job, reason: Reason) -> bool {
    not_ready(job).is_some_and(|ready| ready.reason == <&str>::from(&reason))
}

/// Returns the condition `Ready` if it is not true.
pub fn not_ready(job: &Job) -> Option<&Condition> {
    let conditions = job.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions::find(conditions, ConditionType::Ready).filter(|ready| ready.status != "True")
}

/// Formats a phase and the outcome. Omits the code of the outcome if it is the same word as the phase.
pub fn phase_and_outcome(phase: Phase, outcome: Option<&Outcome>) -> String {
    let phase = phase.to_string();
    let Some(Outcome { code, message, .. }) = outcome else { return phase };
    let code = code.to_string();
    if code == phase { format!("{phase}: {message}") } else { format!("{phase}, {code}: {message}") }
}
