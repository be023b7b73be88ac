//! The state of a Job, and the actions of people that it allows.

use super::cluster_command::ClusterCommand;
use crate::exit::Exit;
use crate::text::{sanitized_lines, shell_quoted};
use bloomery_crds::conditions::{self, ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, AskedQuestion, Job, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

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

/// The state of the decision on a Job's held call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionState {
    /// There is no held call.
    NoCall,
    /// No decision is requested, for this reason.
    NotRequested(String),
    /// These Approvals are open.
    Open(Vec<String>),
    /// All approvers have approved, or one has denied. The Job continues soon.
    Decided,
    /// One of the Approvals has expired. The Job continues soon.
    Expired,
}

impl DecisionState {
    /// Returns the names of the open Approvals.
    pub fn open(&self) -> &[String] {
        match self {
            Self::Open(open) => open,
            Self::NoCall | Self::NotRequested(_) | Self::Decided | Self::Expired => &[],
        }
    }

    /// Returns a note that says why nobody can decide. Returns `None` if a decision is possible, or no call is held.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::NoCall | Self::Open(_) => None,
            Self::NotRequested(reason) => Some(format!("No decision is requested: {}", sanitized_lines(reason))),
            Self::Decided => Some("Decided, but the Job has not received it yet".to_owned()),
            Self::Expired => Some("Expired, but the Job has not received it yet".to_owned()),
        }
    }
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

/// Returns the approvers whose decision is missing. If the open Approvals are unknown, returns all approvers.
pub fn approvers(job: &Job) -> Vec<&str> {
    let waiting = job.status.as_ref().and_then(|status| status.waiting_for.as_ref());
    let Some(call) = waiting.and_then(|waiting| waiting.call.as_ref()) else { return Vec::new() };
    let (name, uid) = (job.name_any(), job.uid().unwrap_or_default());
    let open = approvals(job);
    let is_open = |approver: &&String| open.contains(&names::approval(&name, &uid, &call.id, approver));
    let missing: Vec<&str> = call.approvers.iter().filter(is_open).map(String::as_str).collect();
    if missing.is_empty() { call.approvers.iter().map(String::as_str).collect() } else { missing }
}

/// Returns the verdict of an Approval. The verdict that the operator has counted takes precedence over the decision, which may
/// have come too late.
pub fn verdict(approval: &Approval) -> Option<ApprovalVerdict> {
    let counted = approval.status.as_ref().and_then(|status| status.counted.as_ref()).map(|counted| counted.verdict);
    counted.or_else(|| approval.spec.decision.as_ref().map(|decision| decision.verdict))
}

/// Returns the commands that answer what the Job waits for, or why nobody can decide. Each hint is one line.
pub fn hints(job: &Job, decision: &DecisionState, command: &ClusterCommand<'_>) -> Vec<String> {
    let approvals = decision.open().iter().map(|name| command.line(&format!("approve {}", shell_quoted(name))));
    let questions = questions(job).iter().map(|question| answer_command(job, question, command));
    let commands = approvals.chain(questions).map(|command| format!("Answer with: {command}"));
    decision.note().into_iter().chain(commands).collect()
}

/// Returns the command that answers a question.
pub fn answer_command(job: &Job, question: &AskedQuestion, command: &ClusterCommand<'_>) -> String {
    let text = if question.choices.is_empty() { "'YOUR ANSWER'" } else { "NUMBER" };
    command.line(&format!("reply {} --question {} {text}", job.name_any(), shell_quoted(&question.id)))
}

/// Summarizes the phase and the outcome.
pub fn summary(job: &Job) -> String {
    let outcome = job.status.as_ref().and_then(|status| status.outcome.as_ref());
    sanitized_lines(&crate::page::phase(phase(job), outcome))
}

/// Returns whether the Job waits because its namespace is suspended.
pub fn is_suspended(job: &Job) -> bool {
    has_reason(job, Reason::Suspended) && !has_ended(job)
}

/// Returns whether the Job ends because its Skill was deleted.
pub fn is_without_skill(job: &Job) -> bool {
    has_reason(job, Reason::SkillDeleted) && !has_ended(job)
}

/// Returns whether the condition `Ready` is not true, with this reason.
fn has_reason(job: &Job, reason: Reason) -> bool {
    not_ready(job).is_some_and(|ready| ready.reason == <&str>::from(&reason))
}

/// Returns the condition `Ready` if it is not true.
fn not_ready(job: &Job) -> Option<&Condition> {
    let conditions = job.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions::find(conditions, ConditionType::Ready).filter(|ready| ready.status != "True")
}

/// Summarizes the phase and the outcome, and says why the Job is not ready.
pub fn summary_with_reason(job: &Job) -> String {
    let why =
        not_ready(job).map(|ready| ready.message.as_str()).filter(|message| !message.is_empty() && !has_ended(job));
    sanitized_lines(&[Some(summary(job).as_str()), why].into_iter().flatten().collect::<Vec<_>>().join(": "))
}

/// Returns the exit code for a Job that has ended or waits.
pub fn exit_code(job: &Job) -> Exit {
    Exit::of_phase(phase(job))
}
