//! When a conversation ends, and what people are told.

use super::finalizing::wants_polish;
use crate::conversation::{CLARIFY, Conversation, MAX_BARREN, MAX_UNREADABLE, Stall};
use crate::event::{Event, ModelFailure, Polish, WholeResult};
use crate::gate::{feedback, finalization};
use crate::offload;
use bloomery_crds::outcome::{Outcome, OutcomeCode};

/// What to do about a conversation that the model does not take.
const TOO_LONG: &str = "No result of a tool is left that could be put aside. Name a Model with a larger window in the \
    Skill, or ask for less in one Job.";

/// The limit of steps, where it forbids another request of the main loop.
pub(super) fn steps_spent(conversation: &Conversation) -> Option<Event> {
    let limit = conversation.run().limits.steps;
    (conversation.budget().answers() >= limit).then(|| Event::LimitHit {
        code: OutcomeCode::StepLimit,
        message: format!("the model has answered {limit} times, which is all that limits.steps allows"),
    })
}

/// The limit of tokens, where it forbids a request that sets aside `reserve`.
pub(super) fn tokens_spent(conversation: &Conversation, reserve: u64) -> Option<Event> {
    let limit = conversation.run().limits.tokens;
    let spent = conversation.budget().tokens();
    (spent.saturating_add(reserve) > limit).then(|| Event::LimitHit {
        code: OutcomeCode::TokenLimit,
        message: format!(
            "{spent} tokens are spent and the next request needs about {reserve}: together more than the {limit} of \
             limits.tokens"
        ),
    })
}

/// The event that ends a conversation, where it has come to its end.
pub(super) fn due(conversation: &Conversation) -> Option<Event> {
    // An effect that was sent is resolved first: what became of it matters more than anything else.
    if conversation.calls().iter().any(|call| call.is_under_way(conversation)) {
        return None;
    }
    // Whoever parks a Job that waits for a person may do so as often as they like.
    if let Some(stall) = conversation.stall().filter(|stall| *stall == Stall::Crashes || !waits(conversation)) {
        return Some(finished(conversation, OutcomeCode::CrashLoop, &stall_sentence(stall)));
    }
    if let Some((code, message)) = conversation.limit() {
        let message = format!("A budget is spent: {message}. Raise it in the Skill, or ask for less in one Job.");
        return Some(finished(conversation, code, &message));
    }
    if let Some((kind, message)) = conversation.model_failure() {
        return Some(finished(conversation, OutcomeCode::ModelUnavailable, &model_sentence(kind, message)));
    }
    if let Some(message) = conversation.too_long()
        && offload::due(conversation).is_empty()
    {
        let message = format!("{message} {TOO_LONG}");
        return Some(finished(conversation, OutcomeCode::ModelUnavailable, &message));
    }
    if let Some(tool) = conversation.stuck_on() {
        let message =
            format!("The model repeated one call of {tool} that kept failing. The log has what the tool answered.");
        return Some(finished(conversation, OutcomeCode::Stuck, &message));
    }
    finalized(conversation).or_else(|| over_limit(conversation))
}

fn finalized(conversation: &Conversation) -> Option<Event> {
    let finalizing = conversation.finalization();
    if finalizing.passed() {
        return (!wants_polish(conversation))
            .then(|| finished(conversation, OutcomeCode::Succeeded, "The answer passed every gate."));
    }
    let nobody_clarifies = finalizing.is_clarifying() && !conversation.run().people;
    let (code, why) = finalizing.given_up().or(nobody_clarifies.then_some((OutcomeCode::UserNeeded, CLARIFY)))?;
    let faults = finalizing.attempts().last().map(feedback::told).unwrap_or_default();
    let message = format!(
        "No answer passed the finalization gate: {why}. The latest faults: {faults}. The draft is in result, unverified."
    );
    Some(finished(conversation, code, &message))
}

fn over_limit(conversation: &Conversation) -> Option<Event> {
    let limits = &conversation.run().limits;
    if conversation.budget().worked_ms() >= limits.duration_seconds.saturating_mul(1000) {
        let message =
            format!("{} s of work are over, which is all that limits.duration allows", limits.duration_seconds);
        return Some(Event::LimitHit { code: OutcomeCode::DurationLimit, message });
    }
    let settled = conversation.calls().is_empty();
    let denied = conversation
        .pre_tool()
        .last
        .last()
        .is_some_and(|ruling| ruling.rule == Some(bloomery_crds::v1alpha1::GateReason::Limit));
    (settled && denied).then(|| Event::LimitHit {
        code: OutcomeCode::ToolCallLimit,
        message: format!("{} tool calls were made, which is all that limits.toolCalls allows", limits.tool_calls),
    })
}

/// Whether a person has to say something before it can go on.
fn waits(conversation: &Conversation) -> bool {
    conversation.held().is_some() || !conversation.questions().open().is_empty()
}

fn stall_sentence(stall: Stall) -> String {
    match stall {
        Stall::Crashes => {
            "Workers of this Job started again and again without getting any further. Their pods' logs say why."
                .to_owned()
        }
        Stall::Drains => format!(
            "{MAX_BARREN} pods of this Job in a row were drained or lost before they had got any further. Their logs \
             say what they waited for. Mend that, or what drains them, and make the Job anew."
        ),
    }
}

/// The client's message says itself which Model, and what it did.
fn model_sentence(kind: ModelFailure, message: &str) -> String {
    if kind == ModelFailure::Unreadable {
        format!("{message} It did so {MAX_UNREADABLE} times in a row.")
    } else {
        message.to_owned()
    }
}

pub(super) fn finished(conversation: &Conversation, code: OutcomeCode, message: &str) -> Event {
    Event::Finished {
        outcome: Outcome::new(code, message),
        result: draft(conversation, code == OutcomeCode::Succeeded),
    }
}

fn draft(conversation: &Conversation, verified: bool) -> Option<WholeResult> {
    let finalizing = conversation.finalization();
    let result = finalization::result(finalizing.draft()?, conversation, verified);
    Some(match finalizing.polish() {
        Some(Polish::Polished(text)) if verified => WholeResult { text: text.clone(), polished: true, ..result },
        Some(Polish::Polished(_) | Polish::Kept(_)) | None => result,
    })
}
