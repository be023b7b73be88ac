//! The end of a conversation that a person has cancelled, or whose Skill somebody has deleted.

use super::{calls, ending};
use crate::conversation::{Call, CallState, Conversation, Settlement};
use crate::event::Event;
use bloomery_crds::outcome::OutcomeCode;

/// Ends the conversation. Nothing more is begun, no call is repeated, and nobody is asked what became of one: it is named.
pub(super) fn end(conversation: &Conversation, code: OutcomeCode) -> Vec<Event> {
    let unknown: Vec<&Call> = conversation.calls().iter().filter(|call| is_unknown(call, conversation)).collect();
    let started = unknown.iter().filter(|call| matches!(call.state, CallState::Started { .. }));
    let lost = started.map(|call| Event::ToolIndeterminate { call: call.id.clone(), text: lost(code) });
    let mut events: Vec<Event> = lost.collect();
    if let Some(first) = unknown.first() {
        events.extend(calls::skip_rest(conversation, first));
    }
    events.push(ending::finished(conversation, code, &sentence(code, &unknown)));
    events
}

/// Whether a call with effect was sent, and nobody knows what came of it.
fn is_unknown(call: &Call, conversation: &Conversation) -> bool {
    call.state == CallState::Settled(Settlement::Indeterminate) || call.is_under_way(conversation)
}

/// What is known of a call that was under way when its worker was lost.
fn lost(code: OutcomeCode) -> String {
    let why = if code == OutcomeCode::SkillDeleted { "the Skill was deleted" } else { "the Job was cancelled" };
    format!("the worker was lost while the call was under way, and {why}")
}

fn sentence(code: OutcomeCode, unknown: &[&Call]) -> String {
    let of_call = |call: &&Call| {
        format!(
            " The call {} of {} was sent and its answer is not known: find out whether it happened.",
            call.id, call.tool
        )
    };
    let is_deleted = code == OutcomeCode::SkillDeleted;
    let why = if is_deleted { "The Job ended because the Skill was deleted." } else { "The Job was cancelled." };
    let remedy = is_deleted.then(|| " Make the Skill again, and then another Job.".to_owned());
    std::iter::once(why.to_owned()).chain(unknown.iter().map(of_call)).chain(remedy).collect()
}
