//! Decides for a Job that waits for people or for its children. It has no pod, and continues in its next attempt.

use super::attempt::pause_after;
use super::facts::Facts;
use super::observe::observe_alive;
use crate::approval::evaluate::{ApprovalState, ApprovalUpdate, CallApprovals, evaluate};
use crate::job::plan::{Act, JobEnd, PeopleWait};
use crate::job::pods::WorkerPod;
use crate::job::replies::AnswerState;
use crate::job::status::{log_location, quoted};
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{AskedQuestion, Attempt, Reply};
use k8s_openapi::jiff::SignedDuration;

/// The maximum number of consecutive attempts that park for a person without a report of the call or question.
const MAX_UNREPORTED_PARKINGS: u32 = 3;

/// The remedy for a question that stays open.
const NEW_JOB_REMEDY: &str = "create another Job, and answer the question in its goal";

/// Decides for a Job whose worker parked because a call is held.
pub(super) fn act_for_held_call(
    facts: &Facts,
    recorded: &Attempt,
    pod: Option<&WorkerPod>,
) -> (Act, Option<SignedDuration>) {
    let next = start_next(recorded);
    let (name, uid) = facts.job;
    let state = match facts.call_approvals {
        Some(call_approvals) => evaluate(name, uid, call_approvals, facts.now),
        // No report has described the call.
        None => ApprovalState::Missing,
    };
    // Questions may be open in addition to the call.
    let is_answered = facts.answers == AnswerState::Available && !facts.questions().is_empty();
    match state {
        ApprovalState::NeedsUpdate(updates) => (Act::UpdateApprovals(updates), None),
        ApprovalState::Decided | ApprovalState::Missing if let Some(observed) = observe_alive(facts, pod) => observed,
        ApprovalState::Decided => (next, None),
        _ if is_answered && observe_alive(facts, pod).is_none() => (next, None),
        ApprovalState::PolicyMissing(why) => (Act::WaitForPeople(PeopleWait::PolicyMissing(why)), None),
        ApprovalState::Pending(until, pending) => {
            (Act::WaitForPeople(PeopleWait::Approvers(pending)), Some(until.duration_since(facts.now)))
        }
        ApprovalState::NoApprover => (Act::WaitForPeople(PeopleWait::AsRecorded), None),
        ApprovalState::Missing => report_again(facts, recorded, pod),
    }
}

/// Decides for a Job whose worker parked because a question is open. A reply to an unknown question does not wake the
/// Job; the next worker receives it.
pub(super) fn act_for_open_questions(
    facts: &Facts,
    recorded: &Attempt,
    pod: Option<&WorkerPod>,
) -> (Act, Option<SignedDuration>) {
    let questions = facts.questions();
    if facts.answers == AnswerState::Available || questions.is_empty() {
        return match observe_alive(facts, pod) {
            Some(observed) => observed,
            // No report has described the question.
            None if questions.is_empty() => report_again(facts, recorded, pod),
            None => (start_next(recorded), None),
        };
    }
    if facts.answers == AnswerState::Impossible {
        return (Act::End(unanswerable(questions)), None);
    }
    match reply_time_left(facts) {
        Some((limit, left)) if left <= SignedDuration::ZERO => (Act::End(expired(questions, limit)), None),
        left => (Act::WaitForPeople(PeopleWait::AsRecorded), left.map(|(_, left)| left)),
    }
}

/// Decides for a Job whose worker parked because a child has not ended.
pub(super) fn act_for_open_children(
    facts: &Facts,
    recorded: &Attempt,
    pod: Option<&WorkerPod>,
) -> (Act, Option<SignedDuration>) {
    match observe_alive(facts, pod) {
        Some(observed) => observed,
        None if facts.has_child_news => (start_next(recorded), None),
        None => (Act::WaitForChildren, None),
    }
}

/// Returns the updates of the Approvals of a Job that continues while its call is still held, because another question
/// was answered. A decision made in this time counts now, not only when the Job parks again.
pub(super) fn approval_updates(facts: &Facts, call_approvals: &CallApprovals) -> Option<Vec<ApprovalUpdate>> {
    let (name, uid) = facts.job;
    match evaluate(name, uid, call_approvals, facts.now) {
        ApprovalState::NeedsUpdate(updates) => Some(updates),
        ApprovalState::Decided
        | ApprovalState::PolicyMissing(_)
        | ApprovalState::Missing
        | ApprovalState::Pending(..)
        | ApprovalState::NoApprover => None,
    }
}

fn start_next(recorded: &Attempt) -> Act {
    Act::Start { attempt: recorded.number.saturating_add(1), after: None }
}

/// Returns the total time that the Job may wait for a reply, and the time that is left; none if either is unknown.
fn reply_time_left(facts: &Facts) -> Option<(SignedDuration, SignedDuration)> {
    let since = facts.status.waiting_for.as_ref()?.since.as_ref()?;
    let limit = facts.reply_expiry?;
    Some((limit, limit - facts.now.duration_since(since.0)))
}

/// The end of a Job whose question was not answered in time.
fn expired(questions: &[AskedQuestion], limit: SignedDuration) -> JobEnd {
    let asked = quoted_questions(questions);
    user_needed(&format!(
        "nobody answered {asked} within {limit:#} (engine.replyExpiry of the Skill): {NEW_JOB_REMEDY}"
    ))
}

/// The end of a Job whose question can no longer be answered.
fn unanswerable(questions: &[AskedQuestion]) -> JobEnd {
    let asked = quoted_questions(questions);
    let max_replies = Reply::MAX_REPLIES;
    user_needed(&format!(
        "nobody can answer {asked}: the Job has {max_replies} replies, which is the maximum: {NEW_JOB_REMEDY}"
    ))
}

/// Lists questions within a sentence.
pub(super) fn quoted_questions(questions: &[AskedQuestion]) -> String {
    let quote = |question: &AskedQuestion| format!("{} ({})", question.id, quoted(&question.text));
    questions.iter().map(quote).collect::<Vec<_>>().join(", ")
}

fn user_needed(message: &str) -> JobEnd {
    JobEnd::decided(Outcome::new(OutcomeCode::UserNeeded, message))
}

/// Starts a worker after a pause, so that it reports the call or question again. After several such attempts without a
/// report the Job ends, because nobody can be asked.
fn report_again(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> (Act, Option<SignedDuration>) {
    let unreported = recorded.untold.unwrap_or(0);
    if unreported >= MAX_UNREPORTED_PARKINGS {
        return (Act::End(unreportable(facts, recorded, unreported)), None);
    }
    let since = facts.status.waiting_for.as_ref().and_then(|waiting| waiting.since.as_ref());
    // The clock of a node may be ahead of the operator's. If the operator's clock was set back, there is no pause.
    let passed = pod.and_then(WorkerPod::end_time).map(|ended| {
        let ended = since.map_or(ended, |since| ended.min(since.0));
        facts.now.duration_since(ended)
    });
    let pause = pause_after(recorded.number);
    match passed {
        Some(passed) if !passed.is_negative() && passed < pause => {
            (Act::WaitForPeople(PeopleWait::AsRecorded), Some(pause - passed))
        }
        Some(_) | None => (start_next(recorded), None),
    }
}

/// The end of a Job that waits for a person, and whose workers cannot report the call or question.
fn unreportable(facts: &Facts, recorded: &Attempt, unreported: u32) -> JobEnd {
    let is_call = facts.status.phase == Some(Phase::AwaitingApproval);
    let what = if is_call { "a call waits for an approval" } else { "a question waits for an answer" };
    let (log, pod) = (log_location(facts.status), &recorded.pod);
    user_needed(&format!(
        "{what}, and nobody can be asked: the final reports of {unreported} consecutive attempts did not arrive at the operator. {log} shows \
         what is asked, and kubectl logs {pod} shows why the report did not arrive; the call was not made. Once workers can report, create \
         another Job, which may continue this one"
    ))
}
