//! The messages of a Job's conditions.

use crate::listing::{MAX_LIST_BYTES, join_sentences};
use crate::status::reason_of;
use bloomery_crds::conditions::{self, ConditionType, Health, Observation, Reason};
use bloomery_crds::names;
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{AskedQuestion, ChildJob, HeldCall, JobStatus};
use std::collections::BTreeSet;

/// The maximum size of a quoted question or reply in a message, in bytes. The status and the spec have the full texts.
const MAX_QUOTE_BYTES: usize = 256;

/// The health of a Job that has a pod, or whose last pod parked.
pub fn phase_health(status: &JobStatus) -> Health {
    let (number, pod) = status.attempt.as_ref().map_or((1, ""), |attempt| (attempt.number, attempt.pod.as_str()));
    let (reason, message) = match status.phase {
        Some(Phase::Running) => {
            (Reason::Running, format!("attempt {number} is running: kubectl logs {pod} shows the conversation"))
        }
        Some(Phase::Finalizing) => {
            (Reason::Finalizing, format!("attempt {number} has an answer, which the finalization gate is checking"))
        }
        Some(Phase::AwaitingApproval) => return approval_health(status, &approvers(status)),
        Some(Phase::AwaitingReply) => (Reason::AwaitingReply, question_message(status)),
        Some(Phase::AwaitingJob) => (Reason::AwaitingJob, children_message(status)),
        Some(Phase::Queued) => (
            Reason::Parked,
            format!("attempt {number} parked with its log written, and the Job continues in a new pod"),
        ),
        _ => (Reason::Starting, format!("the pod {pod} was created, and its worker has not reported yet")),
    };
    Health::Reconciling(reason, message)
}

/// The health of a Job whose call waits for these approvers.
pub(super) fn approval_health(status: &JobStatus, approvers: &[&str]) -> Health {
    Health::Reconciling(Reason::AwaitingApproval, held_call_message(status, approvers))
}

/// All approvers of the held call of a Job.
fn approvers(status: &JobStatus) -> Vec<&str> {
    let call = status.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref());
    call.map(|call| call.approvers.iter().map(String::as_str).collect()).unwrap_or_default()
}

/// The condition `AwaitingPeople`: present for a Job that waits for people, or has waited. `is_asked` is false if the
/// admission policy is missing, so that approvers are not asked.
pub(super) fn awaiting_people_condition(status: &JobStatus, is_asked: bool) -> Option<Observation> {
    if let Some(waiting) = status.phase.filter(|_| is_asked).and_then(waiting_condition) {
        return Some(waiting);
    }
    let current = conditions::find(&status.conditions, ConditionType::AwaitingPeople)?;
    // A Job that resumed was not waiting when it ended.
    let had_resumed = current.status == "False"
        && reason_of(&status.conditions, ConditionType::AwaitingPeople) == Some(Reason::Resumed);
    let (reason, message) = if !is_asked {
        (Reason::ApprovalPolicyMissing, "approvers are not asked, because the admission policy is missing")
    } else if had_resumed || !status.is_terminal() {
        (Reason::Resumed, "the Job has continued, and waits for nobody")
    } else {
        (Reason::Ended, "the Job has ended, and waits for nobody")
    };
    Some(Observation::fails(ConditionType::AwaitingPeople, reason, message))
}

/// The condition of a Job that waits for a person, for `kubectl wait --for=condition=AwaitingPeople`. The message of
/// `Ready` describes the call or question.
fn waiting_condition(phase: Phase) -> Option<Observation> {
    let (reason, message) = match phase {
        Phase::AwaitingApproval => (Reason::AwaitingApproval, "a person has to decide"),
        Phase::AwaitingReply => (Reason::AwaitingReply, "a person has to answer"),
        _ => return None,
    };
    Some(Observation::holds(ConditionType::AwaitingPeople, reason, message))
}

/// The health of a Job that has ended.
pub fn outcome_health(outcome: &Outcome) -> Health {
    let message = format!("{}: {}", outcome.code, outcome.message);
    match outcome.phase() {
        Phase::Succeeded => Health::Ready(Reason::Succeeded, outcome.message.clone()),
        // A person requested this end.
        Phase::Cancelled => Health::Ready(Reason::Cancelled, outcome.message.clone()),
        Phase::Escalated => Health::Stalled(Reason::Escalated, message),
        Phase::Refused => Health::Stalled(Reason::OutOfDomain, outcome.message.clone()),
        Phase::Failed
        | Phase::Pending
        | Phase::Queued
        | Phase::Starting
        | Phase::Running
        | Phase::AwaitingApproval
        | Phase::AwaitingReply
        | Phase::AwaitingJob
        | Phase::Finalizing => Health::Stalled(Reason::Failed, message),
    }
}

/// The message of a held call: the tool, the approvers, and the rules that hold it.
fn held_call_message(status: &JobStatus, approvers: &[&str]) -> String {
    let call = status.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref());
    let Some(HeldCall { id, tool, approvers: _, reason, digest: _ }) = call else {
        return unreported_message("call", status);
    };
    let approvals = status.waiting_for.as_ref().map(|waiting| waiting.approvals.join(" and ")).unwrap_or_default();
    let (approvers, how) = match approvers {
        [] => (
            "an approver".to_owned(),
            format!("no rule names one: cancel the Job with kubectl bloomery cancel {}", job_name(status)),
        ),
        approvers => (approvers.join(" and "), format!("they decide in spec.decision of the Approval {approvals}")),
    };
    format!("the call {id} of {tool} waits for {approvers}: {how}; it is held because {reason}")
}

/// The message of open questions: the oldest one, and how to answer it.
fn question_message(status: &JobStatus) -> String {
    let questions = status.waiting_for.as_ref().map_or(&[][..], |waiting| &waiting.questions);
    let [first, others @ ..] = questions else {
        return unreported_message("question", status);
    };
    let AskedQuestion { id, text, choices, refused } = first;
    let job = job_name(status);
    let others: Vec<&str> = others.iter().map(|other| other.id.as_str()).collect();
    // The action comes first, because Events truncate long messages.
    let parts = [
        Some(format!(
            "{id} asks {}: answer with kubectl bloomery reply {job} --question {id} TEXT, or add it to spec.replies of the Job",
            quoted(text)
        )),
        refused.as_ref().map(|refused| format!("the last reply was not accepted: {refused}")),
        (!others.is_empty()).then(|| format!("also open: {}", others.join(", "))),
        (!choices.is_empty()).then(|| {
            format!("the choices are: {}", choices.iter().map(|choice| quoted(choice)).collect::<Vec<_>>().join(", "))
        }),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The message of open children: each with what it waits for.
fn children_message(status: &JobStatus) -> String {
    let open = status.children.iter().filter(|child| !child.settled && child.refused.is_none());
    let sentences: Vec<String> = open.map(child_message).collect();
    if sentences.is_empty() {
        return format!("a Job that this one invoked has not ended; {} shows which", log_location(status));
    }
    join_sentences(&sentences, MAX_LIST_BYTES)
}

fn child_message(child: &ChildJob) -> String {
    let ChildJob { skill, name, phase, .. } = child;
    let Some(name) = name else { return format!("A Job of the Skill {skill} is not created yet.") };
    let waits = match phase {
        Some(Phase::AwaitingApproval) => "waits for the approval of a call",
        Some(Phase::AwaitingReply) => "waits for the answer to a question",
        Some(Phase::AwaitingJob) => "waits for a Job that it invoked",
        Some(phase) if phase.is_terminal() => "has ended",
        Some(_) | None => "has not ended",
    };
    format!("The Job {name} of the Skill {skill} {waits}: kubectl bloomery get {name} shows it.")
}

/// The name of a Job, derived from the name of its pod; the placeholder `JOB` if it has none.
fn job_name(status: &JobStatus) -> &str {
    status.attempt.as_ref().and_then(|attempt| names::job_of_worker_pod(&attempt.pod, attempt.number)).unwrap_or("JOB")
}

/// The message of a call or question that waits for a person, before a report has described it.
fn unreported_message(what: &str, status: &JobStatus) -> String {
    format!("a {what} waits for a person; {} shows which, and a new pod reports it again", log_location(status))
}

/// Returns the message of a wait. For reasons whose messages contain changing numbers, such as those of the scheduler about nodes, the
/// current message stays if only its numbers and the order of its parts would change.
pub(super) fn stable_message(current: &JobStatus, reason: Reason, message: &str) -> String {
    let has_numbers = matches!(reason, Reason::Unschedulable | Reason::QuotaExceeded | Reason::Queued);
    let known = conditions::find(&current.conditions, ConditionType::Reconciling);
    let same = known
        .filter(|known| has_numbers && known.reason == reason.to_string() && parts(&known.message) == parts(message));
    same.map_or_else(|| message.to_owned(), |known| known.message.clone())
}

/// The parts of a message, without numbers.
fn parts(message: &str) -> BTreeSet<String> {
    let without_digits = |part: &str| part.trim().replace(|c: char| c.is_ascii_digit(), "");
    message.split([',', '.', ':', ';']).map(without_digits).collect()
}

/// Returns the location of the log of a Job, for people.
pub fn log_location(status: &JobStatus) -> &str {
    status.log.as_ref().map_or("the log in the Skill's memory", |log| &log.path)
}

/// Quotes a question or a reply within a sentence, shortened.
pub fn quoted(text: &str) -> String {
    format!("{:?}", bounded(text, MAX_QUOTE_BYTES))
}

/// The condition that lists replies to unknown questions; none if there are none.
pub fn stray_replies_condition(strays: &[String]) -> Option<Observation> {
    // The worker's sentences have no full stop.
    let strays: Vec<String> = strays.iter().map(|stray| format!("{stray}.")).collect();
    let message = join_sentences(&strays, MAX_LIST_BYTES);
    (!strays.is_empty()).then(|| Observation::fails(ConditionType::RepliesTaken, Reason::UnknownQuestion, message))
}

/// The condition with a worker's remarks on the Skill; none if there are none.
pub fn remarks_condition(remarks: &[String], tools_changed: bool) -> Option<Observation> {
    let message = join_sentences(remarks, MAX_LIST_BYTES);
    let reason = if tools_changed { Reason::ToolsChanged } else { Reason::Differs };
    (!remarks.is_empty()).then(|| Observation::fails(ConditionType::SkillAsWritten, reason, message))
}

/// The condition of a Job with limits above its Skill's; none if there are none.
pub(super) fn lowered_limits_condition(lowered: &[String]) -> Option<Observation> {
    let message = join_sentences(lowered, MAX_LIST_BYTES);
    (!lowered.is_empty()).then(|| Observation::fails(ConditionType::LimitsAsWritten, Reason::AboveSkill, message))
}
