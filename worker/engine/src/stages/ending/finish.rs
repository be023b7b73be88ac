//! The last events of a conversation.

use crate::conversation::Conversation;
use crate::event::{Event, FullResult, PolishOutcome};
use crate::shared::Shared;
use crate::stages::calls::Call;
use crate::stages::finalization::result;
use bloomery_crds::outcome::{Outcome, OutcomeCode};

/// Returns the event that ends the conversation, with the answer that passed or the latest draft.
pub(crate) fn finished(conversation: &Conversation, code: OutcomeCode, message: &str) -> Event {
    Event::Finished {
        outcome: Outcome::new(code, message),
        result: latest_result(conversation, code == OutcomeCode::Succeeded),
    }
}

fn latest_result(conversation: &Conversation, verified: bool) -> Option<FullResult> {
    let contract = conversation.shared.run.skill.output_contract.as_ref();
    let result = result(conversation.finalization.draft()?, contract, verified);
    Some(match conversation.polishing.outcome() {
        Some(PolishOutcome::Polished(text)) if verified => FullResult { text: text.clone(), polished: true, ..result },
        Some(PolishOutcome::Polished(_) | PolishOutcome::Kept(_)) | None => result,
    })
}

/// Returns the events that skip all calls without a result, so that each call has one. The events name the call
/// `because` as their reason. A call with effect that was sent is not skipped.
pub(crate) fn skip_unsettled_calls(shared: &Shared, because: &Call) -> Vec<Event> {
    let rest = shared.calls.all().iter().filter(|call| !call.is_settled() && !shared.is_effect_under_way(call));
    rest.map(|call| Event::ToolSkipped { call: call.id.clone(), because: because.id.clone() }).collect()
}
