//! The steps about a lost call.

use super::answer::{LostCallAnswer, question};
use crate::conversation::Conversation;
use crate::event::{Event, QuestionSubject};
use crate::people;
use crate::progress::Stall;
use crate::stages::calls::Call;
use crate::stages::ending;
use crate::stages::questions;
use crate::step::Step;
use bloomery_crds::outcome::OutcomeCode;

/// Returns the step that asks people about a lost call. The Job ends instead if nobody can be asked, a person has stopped it, or
/// its workers crash.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let shared = &conversation.shared;
    let call = shared.calls.all().iter().find(|call| call.is_lost())?;
    let is_crashing = shared.progress.stall() == Some(Stall::Crashes);
    if !shared.run.people || conversation.lost_call.stopped_by.is_some() || is_crashing {
        return Some(Step::Record(end(call, conversation)));
    }
    let about = QuestionSubject::LostCall(call.id.clone());
    if shared.questions.is_open(&about) {
        return Some(Step::AskPeople(people::open_requests(shared)));
    }
    let new_question = (about, question(call), LostCallAnswer::choices());
    Some(Step::Record(questions::ask(&shared.questions, vec![new_question])))
}

fn end(call: &Call, conversation: &Conversation) -> Vec<Event> {
    let mut events = ending::skip_unsettled_calls(&conversation.shared, call);
    let stopped_by = conversation.lost_call.stopped_by.as_deref();
    let stop_note = stopped_by.map(|by| format!(" The Job was ended here by {by}.")).unwrap_or_default();
    let message = format!(
        "The call {} of {} was sent, and its answer was lost: {}. Find out whether it happened before anything is \
         done again; it was not repeated.{stop_note}",
        call.id, call.tool, call.result
    );
    events.push(ending::finished(conversation, OutcomeCode::ToolIndeterminate, &message));
    events
}
