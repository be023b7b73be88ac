//! The attachment of a Job to the log of its run key. The log may be that of an earlier Job with the same key.

use crate::conversation::Conversation;
use crate::event::Event;
use crate::shared::Shared;
use crate::step::Step;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::text::bounded;

/// The longest goal in a message, in bytes.
const MAX_GOAL_BYTES: usize = 256;

/// Returns the step that attaches the Job, or nothing if it is attached.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let shared = &conversation.shared;
    let job = shared.run.job.clone().filter(|_| !is_attached(shared))?;
    Some(Step::Record(vec![Event::JobAttached { job }]))
}

/// Returns whether the latest Job that uses the log is this one.
pub(crate) fn is_attached(shared: &Shared) -> bool {
    shared.run.job.is_none() || shared.run.job == shared.job
}

/// Returns the outcome of the Job, if the log has another goal than the Job.
pub(crate) fn other_goal(shared: &Shared) -> Option<Outcome> {
    shared.other_goal.as_deref().map(goal_refusal)
}

/// Returns the outcome of a Job whose run key belongs to a run with the given goal, which is not that of the Job.
pub fn goal_refusal(goal: &str) -> Outcome {
    let goal = bounded(goal, MAX_GOAL_BYTES);
    let message = format!(
        "The run key of the Job belongs to a run with another goal, so nothing was done: {goal:?}. Create the Job again with another \
         runKey, or with that goal."
    );
    Outcome::new(OutcomeCode::UserNeeded, message)
}
