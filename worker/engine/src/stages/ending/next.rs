//! The steps of the ending.

use super::cancel;
use super::finish::finished;
use super::limits;
use crate::conversation::Conversation;
use crate::event::{Event, ModelFailure, RAISE_LIMIT};
use crate::offload;
use crate::progress::{MAX_EPOCHS_WITHOUT_PROGRESS, Stall};
use crate::shared::MAX_UNREADABLE_ANSWERS;
use crate::stages::calls::Child;
use crate::stages::finalization::{NEEDS_PERSON, faults};
use crate::stages::polish::wants_polish;
use crate::step::Step;
use bloomery_crds::outcome::OutcomeCode;

/// The remedy for a conversation that is too long for its model.
const TOO_LONG: &str = "No result of a tool is left that could be put aside. Name a Model with a larger window in the \
    Skill, or ask for less in one Job.";

/// Returns the step of a conversation that has ended, or that a directive ends.
pub(crate) fn ended(conversation: &Conversation) -> Option<Step<'_>> {
    if let Some((outcome, _)) = &conversation.ending.finished {
        return Some(Step::Done(outcome));
    }
    let code = conversation.ending.demanded?;
    Some(Step::Record(cancel::end(conversation, code)))
}

/// Returns the step that ends a conversation which cannot continue, or whose answer is complete.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    end_event(conversation).map(|end| Step::Record(vec![end]))
}

fn end_event(conversation: &Conversation) -> Option<Event> {
    let shared = &conversation.shared;
    let stall = shared.progress.stall();
    let mut under_way = shared.calls.all().iter().filter(|call| shared.is_effect_under_way(call)).peekable();
    if under_way.peek().is_some() {
        // A call with effect that was sent must get its outcome first. A call with an open child may get none from workers that crash.
        let waits_for_child = under_way.all(|call| matches!(call.child, Some(Child::Open { .. })));
        let is_crash_loop = waits_for_child && stall == Some(Stall::Crashes);
        return is_crash_loop.then(|| finished(conversation, OutcomeCode::CrashLoop, &stall_message(Stall::Crashes)));
    }
    // A Job that waits for people does not end because its pods are drained. It ends only if they crash.
    if let Some(stall) = stall.filter(|stall| *stall == Stall::Crashes || !waits_for_people(conversation)) {
        return Some(finished(conversation, OutcomeCode::CrashLoop, &stall_message(stall)));
    }
    if let Some((code, message)) = &conversation.ending.limit {
        let message = format!("A limit is reached: {message}. {RAISE_LIMIT}, or ask for less in one Job.");
        return Some(finished(conversation, *code, &message));
    }
    end_by_model(conversation).or_else(|| end_by_gate(conversation)).or_else(|| limits::duration_or_calls_spent(shared))
}

/// Returns the event that ends a conversation whose model has failed, or repeats a failing call.
fn end_by_model(conversation: &Conversation) -> Option<Event> {
    let shared = &conversation.shared;
    if let Some((kind, message)) = &shared.model.failure {
        return Some(finished(conversation, OutcomeCode::ModelUnavailable, &failure_message(*kind, message)));
    }
    if let Some(message) = &shared.model.too_long
        && offload::due(shared).is_empty()
    {
        let message = format!("{message} {TOO_LONG}");
        return Some(finished(conversation, OutcomeCode::ModelUnavailable, &message));
    }
    let tool = shared.calls.stuck_on()?;
    let message =
        format!("The model repeated one call of {tool} that kept failing. The log has what the tool answered.");
    Some(finished(conversation, OutcomeCode::Stuck, &message))
}

/// Returns the event that ends a conversation whose answer is complete, or whose finalization gate has given up.
fn end_by_gate(conversation: &Conversation) -> Option<Event> {
    let (shared, finalization) = (&conversation.shared, &conversation.finalization);
    if finalization.passed() {
        let is_done = !wants_polish(&conversation.polishing, finalization, &shared.run.skill);
        return is_done.then(|| finished(conversation, OutcomeCode::Succeeded, "The answer passed every gate."));
    }
    let nobody_clarifies = finalization.is_clarifying() && !shared.run.people;
    let (code, why) = finalization.given_up().or(nobody_clarifies.then_some((OutcomeCode::UserNeeded, NEEDS_PERSON)))?;
    let faults = finalization.attempts().last().map(faults).unwrap_or_default();
    let message = format!(
        "No answer passed the finalization gate: {why}. The latest faults: {faults}. The draft is in result, unverified."
    );
    Some(finished(conversation, code, &message))
}

fn waits_for_people(conversation: &Conversation) -> bool {
    conversation.shared.calls.held().is_some() || !conversation.shared.questions.open().is_empty()
}

fn stall_message(stall: Stall) -> String {
    match stall {
        Stall::Crashes => {
            "Several workers of this Job in a row were lost before they made progress. The logs of their pods say why."
                .to_owned()
        }
        Stall::Drains => format!(
            "{MAX_EPOCHS_WITHOUT_PROGRESS} pods of this Job in a row were drained or lost before they made progress. \
             Their logs say what they waited for. Correct the cause, then start the Job again."
        ),
    }
}

/// Returns the message about a failed model. `message` is the client's, which names the Model and the failure.
fn failure_message(kind: ModelFailure, message: &str) -> String {
    if kind == ModelFailure::Unreadable {
        format!("{message} It did so {MAX_UNREADABLE_ANSWERS} times in a row.")
    } else {
        message.to_owned()
    }
}
