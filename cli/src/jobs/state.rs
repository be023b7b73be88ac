//! The state of a Job, and the actions of people that it allows.

pub use bloomery_embed::cluster::state::{
    approvals, has_ended, not_requested_reason, phase, questions, summary, verdict, waits_for_people,
};

use super::cluster_command::ClusterCommand;
use crate::exit::Exit;
use crate::text::{sanitized_lines, shell_quoted};
use bloomery_crds::conditions::Reason;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{AskedQuestion, Job};
use bloomery_embed::cluster::state::{has_reason, not_ready};
use kube::ResourceExt;

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

/// Returns whether the Job waits because its namespace is suspended.
pub fn is_suspended(job: &Job) -> bool {
    has_reason(job, Reason::Suspended) && !has_ended(job)
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
