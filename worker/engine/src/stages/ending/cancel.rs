//! The end of a conversation that a person has cancelled, or whose Skill a person has deleted.

use super::finish::{finished, skip_unsettled_calls};
use crate::conversation::Conversation;
use crate::event::Event;
use crate::shared::Shared;
use crate::stages::calls::{Call, CallState, Child};
use bloomery_crds::outcome::OutcomeCode;

/// Returns the events that end the conversation. No call is started or repeated. The outcome names the calls whose outcome is
/// unknown, and people are not asked about them.
pub(super) fn end(conversation: &Conversation, code: OutcomeCode) -> Vec<Event> {
    let shared = &conversation.shared;
    let unknown_calls: Vec<&Call> =
        shared.calls.all().iter().filter(|call| has_unknown_outcome(call, shared)).collect();
    let started = unknown_calls.iter().filter(|call| matches!(call.state, CallState::Started { .. }));
    let lost_events = started.map(|call| Event::ToolIndeterminate { call: call.id.clone(), text: lost_text(code) });
    let mut events: Vec<Event> = lost_events.collect();
    if let Some(first_unknown) = unknown_calls.first() {
        events.extend(skip_unsettled_calls(shared, first_unknown));
    }
    events.push(finished(conversation, code, &message(code, &unknown_calls)));
    events
}

/// Returns whether a call with effect was sent and has no known outcome.
fn has_unknown_outcome(call: &Call, shared: &Shared) -> bool {
    call.is_lost() || shared.is_effect_under_way(call)
}

fn lost_text(code: OutcomeCode) -> String {
    let why = if code == OutcomeCode::SkillDeleted { "the Skill was deleted" } else { "the Job was cancelled" };
    format!("the worker was lost while the call was under way, and {why}")
}

fn message(code: OutcomeCode, unknown_calls: &[&Call]) -> String {
    let unknown_note = |call: &&Call| match &call.child {
        Some(Child::Open { job, skill, .. }) => format!(" The Job {job} of the Skill {skill} had not ended."),
        _ => format!(
            " The call {} of {} was sent and its answer is not known: find out whether it happened.",
            call.id, call.tool
        ),
    };
    let is_deleted = code == OutcomeCode::SkillDeleted;
    let why = if is_deleted { "The Job ended because the Skill was deleted." } else { "The Job was cancelled." };
    let remedy = is_deleted.then(|| " Create the Skill again, then another Job.".to_owned());
    std::iter::once(why.to_owned()).chain(unknown_calls.iter().map(unknown_note)).chain(remedy).collect()
}
