//! What is done while people are waited for: the Job has no pod, and goes on in its next attempt.

use super::attempt::pause;
use super::{Act, Answers, End, Facts, Life, PeopleWait, WorkerPod, next_look};
use crate::approval::standing::{Asked, Mark, Standing, standing};
use crate::job::status::{log_of, quoted};
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{AskedQuestion, Attempt, Reply};
use k8s_openapi::jiff::SignedDuration;

/// How many attempts in a row may park for a person without anybody hearing what for.
const UNTOLD: u32 = 3;

/// What to do about a question that stays open.
const REMEDY: &str = "make another Job, and say in its goal what is asked";

/// What is to be done for a Job whose worker parked because a call is held.
pub(super) fn approval(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> (Act, Option<SignedDuration>) {
    let next = next(recorded);
    let (name, uid) = facts.job;
    let standing = match facts.asked {
        Some(asked) => standing(name, uid, asked, facts.now),
        // No report has told which call it is.
        None => Standing::Missing,
    };
    // Beside the call, questions may be open.
    let is_answered = facts.answers == Answers::Here && !questions(facts).is_empty();
    match standing {
        Standing::Settle(marks) => (Act::Settle(marks), None),
        Standing::Decided | Standing::Missing if let Some(observed) = alive(facts, pod) => observed,
        Standing::Decided => (next, None),
        _ if is_answered && alive(facts, pod).is_none() => (next, None),
        Standing::Unguarded(why) => (Act::WaitForPeople(PeopleWait::NobodyAsked(why)), None),
        Standing::Open(until, awaited) => {
            (Act::WaitForPeople(PeopleWait::Approvers(awaited)), Some(until.duration_since(facts.now)))
        }
        Standing::Nobody => (Act::WaitForPeople(PeopleWait::AsRecorded), None),
        Standing::Missing => told_again(facts, recorded, pod),
    }
}

/// What is to be done for a Job whose worker parked because a question is open. Messages alone are no answer: they are
/// heard when it goes on.
pub(super) fn reply(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> (Act, Option<SignedDuration>) {
    let questions = questions(facts);
    if facts.answers == Answers::Here || questions.is_empty() {
        return match alive(facts, pod) {
            Some(observed) => observed,
            // No report has told which question it is, nor what was heard.
            None if questions.is_empty() => told_again(facts, recorded, pod),
            None => (next(recorded), None),
        };
    }
    if facts.answers == Answers::Impossible {
        return (Act::End(unanswerable(questions)), None);
    }
    match left(facts) {
        Some((limit, left)) if left <= SignedDuration::ZERO => (Act::End(expired(questions, limit)), None),
        left => (Act::WaitForPeople(PeopleWait::AsRecorded), left.map(|(_, left)| left)),
    }
}

/// The Approvals that are to be settled of a Job that goes on with its call still held: it has heard an answer. What is
/// decided meanwhile counts from now, not from when it rests again.
pub(super) fn to_settle(facts: &Facts, asked: &Asked) -> Option<Vec<Mark>> {
    let (name, uid) = facts.job;
    match standing(name, uid, asked, facts.now) {
        Standing::Settle(marks) => Some(marks),
        Standing::Decided | Standing::Unguarded(_) | Standing::Missing | Standing::Open(..) | Standing::Nobody => None,
    }
}

fn next(recorded: &Attempt) -> Act {
    Act::Start { attempt: recorded.number.saturating_add(1), after: None }
}

/// The questions that are open, as far as the status tells them.
pub(super) fn questions<'a>(facts: &Facts<'a>) -> &'a [AskedQuestion] {
    facts.status.waiting_for.as_ref().map_or(&[], |waiting| &waiting.questions)
}

/// What is done while the pod of the attempt that rests still lives: no twin of it is started.
fn alive(facts: &Facts, pod: Option<&WorkerPod>) -> Option<(Act, Option<SignedDuration>)> {
    let pod = pod?;
    match &pod.life {
        Life::Alive(problem) => Some((Act::Observe(problem.clone()), next_look(pod, facts.now))),
        Life::Ended { .. } => None,
    }
}

/// How long the Job may wait for a reply in all, and from now on.
fn left(facts: &Facts) -> Option<(SignedDuration, SignedDuration)> {
    let since = facts.status.waiting_for.as_ref()?.since.as_ref()?;
    let limit = facts.reply_expiry?;
    Some((limit, limit - facts.now.duration_since(since.0)))
}

/// The end of a Job whose question nobody has answered in time.
fn expired(questions: &[AskedQuestion], limit: SignedDuration) -> End {
    let asked = listed(questions);
    user_needed(&format!(
        "nobody has answered {asked} within {limit:#}, which is how long a Job waits for a reply (engine.replyExpiry of the Skill): {REMEDY}"
    ))
}

/// The end of a Job whose question nobody can answer any more.
fn unanswerable(questions: &[AskedQuestion]) -> End {
    let asked = listed(questions);
    let most = Reply::MAX_REPLIES;
    user_needed(&format!("nobody can answer {asked}: a Job takes {most} replies, and has them: {REMEDY}"))
}

/// Questions, as a sentence names them.
pub(super) fn listed(questions: &[AskedQuestion]) -> String {
    let asked = |asked: &AskedQuestion| format!("{} ({})", asked.id, quoted(&asked.text));
    questions.iter().map(asked).collect::<Vec<_>>().join(", ")
}

fn user_needed(message: &str) -> End {
    End { outcome: Outcome::new(OutcomeCode::UserNeeded, message), read_from: None }
}

/// Starts a worker that tells anew what is waited for, after a pause. Where it was told in vain again and again, nobody can be
/// asked, and the Job ends.
fn told_again(facts: &Facts, recorded: &Attempt, pod: Option<&WorkerPod>) -> (Act, Option<SignedDuration>) {
    let untold = recorded.untold.unwrap_or(0);
    if untold >= UNTOLD {
        return (Act::End(untellable(facts, recorded, untold)), None);
    }
    let since = facts.status.waiting_for.as_ref().and_then(|waiting| waiting.since.as_ref());
    // The clock of a node may run ahead of ours; ours may have been set back, and then nothing is waited for.
    let passed = pod.and_then(WorkerPod::ended).map(|ended| {
        let ended = since.map_or(ended, |since| ended.min(since.0));
        facts.now.duration_since(ended)
    });
    let pause = pause(recorded.number);
    match passed {
        Some(passed) if !passed.is_negative() && passed < pause => {
            (Act::WaitForPeople(PeopleWait::AsRecorded), Some(pause - passed))
        }
        Some(_) | None => (next(recorded), None),
    }
}

/// The end of a Job that waits for a person, and whose workers cannot say what for.
fn untellable(facts: &Facts, recorded: &Attempt, untold: u32) -> End {
    let is_call = facts.status.phase == Some(Phase::AwaitingApproval);
    let what = if is_call { "a call waits for an approval" } else { "a question waits for an answer" };
    let (log, pod) = (log_of(facts.status), &recorded.pod);
    user_needed(&format!(
        "{what}, and nobody can be asked: the last reports of {untold} attempts in a row did not arrive at the operator. {log} says \
         what is asked, and kubectl logs {pod} why the report did not arrive; the call was not made. Once workers can report, make \
         another Job, which may continue this one"
    ))
}
