//! The next step of a conversation, which the driver performs.

use crate::conversation::Conversation;
use crate::offload;
use crate::stages::{attachment, calls, ending, finalization, intent, lost_call, opening, polish, request, selection};
use crate::step::Step;

/// Returns the next step of a conversation. Replaying its log leads to the same step.
pub fn next(conversation: &Conversation) -> Step<'_> {
    before_stages(conversation)
        .or_else(|| opening::next(conversation))
        .or_else(|| intent::next(conversation))
        .or_else(|| selection::next(conversation))
        .or_else(|| calls::next(conversation))
        .or_else(|| finalization::next(conversation))
        .or_else(|| polish::next(conversation))
        .or_else(|| sweep(conversation))
        .unwrap_or_else(|| request::for_main_loop(conversation))
}

/// Returns the step that comes before every stage: the end of the conversation, the attachment of the Job to its log, or
/// the question about a lost call. If a directive ends the Job, the question is not asked.
fn before_stages(conversation: &Conversation) -> Option<Step<'_>> {
    ending::ended(conversation)
        .or_else(|| attachment::next(conversation))
        .or_else(|| lost_call::next(conversation))
        .or_else(|| ending::next(conversation))
}

/// Returns the step that offloads older results, if the model's window is nearly full.
fn sweep(conversation: &Conversation) -> Option<Step<'_>> {
    let results = offload::due(&conversation.shared);
    (!results.is_empty()).then_some(Step::Offload(results))
}
