//! The end of a conversation that a person has cancelled.

use super::{calls, ending};
use crate::conversation::{Call, CallState, Conversation, Settlement};
use crate::event::Event;
use bloomery_crds::outcome::OutcomeCode;

/// What is known of a call that was under way when its worker was lost.
const LOST: &str = "the worker was lost while the call was under way, and the Job was cancelled";

/// Ends the conversation. Nothing more is begun, no call is repeated, and nobody is asked what became of one: it is named.
pub(super) fn end(conversation: &Conversation) -> Vec<Event> {
    let unknown: Vec<&Call> = conversation.calls().iter().filter(|call| is_unknown(call, conversation)).collect();
    let started = unknown.iter().filter(|call| matches!(call.state, CallState::Started { .. }));
    let lost = started.map(|call| Event::ToolIndeterminate { call: call.id.clone(), text: LOST.to_owned() });
    let mut events: Vec<Event> = lost.collect();
    if let Some(first) = unknown.first() {
        events.extend(calls::skip_rest(conversation, first));
    }
    events.push(ending::finished(conversation, OutcomeCode::Cancelled, &sentence(&unknown)));
    events
}

/// Whether a call with effect was sent, and nobody knows what came of it.
fn is_unknown(call: &Call, conversation: &Conversation) -> bool {
    call.state == CallState::Settled(Settlement::Indeterminate) || call.is_under_way(conversation)
}

fn sentence(unknown: &[&Call]) -> String {
    let of_call = |call: &&Call| {
        format!(
            " The call {} of {} was sent and its answer is not known: find out whether it happened.",
            call.id, call.tool
        )
    };
    std::iter::once("The Job was cancelled.".to_owned()).chain(unknown.iter().map(of_call)).collect()
}
