//! Whether a Job rests, and what people can do then.

use super::cluster_command::ClusterCommand;
use crate::exit::Exit;
use crate::text::{sanitized_lines, shell_quoted};
use bloomery_crds::conditions::{self, ConditionType, Reason};
use bloomery_crds::names;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{Approval, ApprovalVerdict, AskedQuestion, Job, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

/// The stage of a Job; one of which nobody has said anything is pending.
pub fn phase(job: &Job) -> Phase {
    job.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
}

/// Whether it waits for people. One with an answer that it has not heard yet goes on in a moment; a reply to a question that
/// is not open is no answer.
pub fn waits_for_people(job: &Job) -> bool {
    let Some(status) = job.status.as_ref().filter(|status| status.awaits_people()) else { return false };
    !job.spec.has_pending_answer(status)
}

/// Whether it has ended.
pub fn has_ended(job: &Job) -> bool {
    job.status.as_ref().is_some_and(JobStatus::is_terminal)
}

/// Its questions that are shown.
pub fn questions(job: &Job) -> &[AskedQuestion] {
    let waiting = job.status.as_ref().and_then(|status| status.waiting_for.as_ref());
    waiting.map(|waiting| waiting.questions.as_slice()).unwrap_or_default()
}

/// How it stands with the decision on the call that a Job waits with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionState {
    /// It waits with none.
    NoCall,
    /// Nobody is asked, and why.
    NotAsked(String),
    /// On these Approvals people have still to decide.
    Open(Vec<String>),
    /// Everybody has who had to, or one has denied it: the Job goes on in a moment.
    Decided,
    /// The time to decide is over on one of them: the Job goes on in a moment.
    Expired,
}

impl DecisionState {
    /// The Approvals that can be decided.
    pub fn open(&self) -> &[String] {
        match self {
            Self::Open(open) => open,
            Self::NoCall | Self::NotAsked(_) | Self::Decided | Self::Expired => &[],
        }
    }

    /// What is to be known where nobody can decide.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::NoCall | Self::Open(_) => None,
            Self::NotAsked(why) => Some(format!("Nobody is asked to decide: {}", sanitized_lines(why))),
            Self::Decided => Some("It is decided, and the Job has not heard it yet".to_owned()),
            Self::Expired => Some("The time to decide is over, and the Job has not heard it yet".to_owned()),
        }
    }
}

/// Why nobody is asked to decide on its call, where that is so.
pub fn not_asked_reason(job: &Job) -> Option<&str> {
    let is_so = has_reason(job, Reason::ApprovalPolicyMissing) || has_reason(job, Reason::NobodyAsked);
    ready(job).filter(|_| is_so && !has_ended(job)).map(|ready| ready.message.as_str())
}

/// The Approvals of its call that its status names: nobody need have made them.
pub fn approvals(job: &Job) -> &[String] {
    let waiting = job.status.as_ref().and_then(|status| status.waiting_for.as_ref());
    waiting.map(|waiting| waiting.approvals.as_slice()).unwrap_or_default()
}

/// Who has still to decide on its call; all who have to, as long as nobody says which.
pub fn approvers(job: &Job) -> Vec<&str> {
    let waiting = job.status.as_ref().and_then(|status| status.waiting_for.as_ref());
    let Some(call) = waiting.and_then(|waiting| waiting.call.as_ref()) else { return Vec::new() };
    let (name, uid) = (job.name_any(), job.uid().unwrap_or_default());
    let open = approvals(job);
    let decides = |approver: &&String| open.contains(&names::approval(&name, &uid, &call.id, approver));
    let awaited: Vec<&str> = call.approvers.iter().filter(decides).map(String::as_str).collect();
    if awaited.is_empty() { call.approvers.iter().map(String::as_str).collect() } else { awaited }
}

/// What has become of an Approval: what counts, where that is known, for a decision may have come too late.
pub fn verdict(approval: &Approval) -> Option<ApprovalVerdict> {
    let counted = approval.status.as_ref().and_then(|status| status.counted.as_ref()).map(|counted| counted.verdict);
    counted.or_else(|| approval.spec.decision.as_ref().map(|decision| decision.verdict))
}

/// What people can do about what it waits for, or why they cannot, one a line.
pub fn hints(job: &Job, deciding: &DecisionState, command: &ClusterCommand<'_>) -> Vec<String> {
    let approvals = deciding.open().iter().map(|name| command.line(&format!("approve {}", shell_quoted(name))));
    let questions = questions(job).iter().map(|question| answer_command(job, question, command));
    let commands = approvals.chain(questions).map(|command| format!("Answer with: {command}"));
    deciding.note().into_iter().chain(commands).collect()
}

/// The command that answers a question.
pub fn answer_command(job: &Job, question: &AskedQuestion, command: &ClusterCommand<'_>) -> String {
    let text = if question.choices.is_empty() { "'YOUR ANSWER'" } else { "NUMBER" };
    command.line(&format!("reply {} --question {} {text}", job.name_any(), shell_quoted(&question.id)))
}

/// How it rests, or goes on, in a line.
pub fn summary(job: &Job) -> String {
    let outcome = job.status.as_ref().and_then(|status| status.outcome.as_ref());
    sanitized_lines(&crate::page::phase(phase(job), outcome))
}

/// Whether it is kept by its namespace, which is suspended: until that is over nothing comes of it.
pub fn is_suspended(job: &Job) -> bool {
    has_reason(job, Reason::Suspended) && !has_ended(job)
}

/// Whether it is to end because its Skill was deleted.
pub fn is_without_skill(job: &Job) -> bool {
    has_reason(job, Reason::SkillDeleted) && !has_ended(job)
}

fn has_reason(job: &Job, reason: Reason) -> bool {
    ready(job).is_some_and(|ready| ready.reason == <&str>::from(&reason))
}

fn ready(job: &Job) -> Option<&Condition> {
    let conditions = job.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions::find(conditions, ConditionType::Ready).filter(|ready| ready.status != "True")
}

/// How it goes, with what keeps it, in a line.
pub fn summary_with_reason(job: &Job) -> String {
    let why = ready(job).map(|ready| ready.message.as_str()).filter(|message| !message.is_empty() && !has_ended(job));
    sanitized_lines(&[Some(summary(job).as_str()), why].into_iter().flatten().collect::<Vec<_>>().join(": "))
}

/// The exit code of a Job that rests.
pub fn exit_code(job: &Job) -> Exit {
    Exit::of_phase(phase(job))
}
