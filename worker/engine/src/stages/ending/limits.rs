//! The limits of a Job.

use crate::event::Event;
use crate::shared::Shared;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::GateReason;

/// Returns [`Event::LimitHit`] if the limit of steps forbids another request of the main loop.
pub(crate) fn steps_spent(shared: &Shared) -> Option<Event> {
    let limit = shared.run.limits.steps;
    let of_children = shared.budget.delegated().steps;
    (shared.budget.steps() >= limit).then(|| Event::LimitHit {
        code: OutcomeCode::StepLimit,
        message: match of_children {
            0 => format!("the model has answered {limit} times, which is all that limits.steps allows"),
            of_children => format!(
                "the model has answered {} times and the models of children {of_children} times: limits.steps allows {limit} together",
                shared.budget.answers()
            ),
        },
    })
}

/// Returns [`Event::LimitHit`] if the limit of tokens forbids a request that reserves `reserve` tokens.
pub(crate) fn tokens_spent(shared: &Shared, reserve: u64) -> Option<Event> {
    let limit = shared.run.limits.tokens;
    let spent = shared.budget.tokens();
    (spent.saturating_add(reserve) > limit).then(|| Event::LimitHit {
        code: OutcomeCode::TokenLimit,
        message: format!(
            "{spent} tokens are spent and the next request needs about {reserve}: together more than the {limit} of \
             limits.tokens"
        ),
    })
}

/// Returns [`Event::LimitHit`] if the duration or the tool calls are spent.
pub(super) fn duration_or_calls_spent(shared: &Shared) -> Option<Event> {
    let limits = &shared.run.limits;
    if shared.budget.spent_ms() >= limits.duration_seconds.saturating_mul(1000) {
        let message =
            format!("{} s of work are over, which is all that limits.duration allows", limits.duration_seconds);
        return Some(Event::LimitHit { code: OutcomeCode::DurationLimit, message });
    }
    let latest = shared.calls.rulings().last.last();
    let limit_denied_latest = latest.is_some_and(|ruling| ruling.rule == Some(GateReason::Limit));
    // The other calls of the answer get their results first.
    (shared.calls.is_empty() && limit_denied_latest).then(|| Event::LimitHit {
        code: OutcomeCode::ToolCallLimit,
        message: format!("{} tool calls were made, which is all that limits.toolCalls allows", limits.tool_calls),
    })
}
