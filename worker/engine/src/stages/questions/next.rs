//! The steps of `ask_user`: a person answers the call.

use super::state::ask;
use crate::core_tools::ASK_USER;
use crate::event::{Event, QuestionSubject};
use crate::people;
use crate::shared::Shared;
use crate::stages::calls::rule::ruled;
use crate::stages::calls::{Call, CallState, InvalidArguments};
use crate::step::Step;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    text: String,
    #[serde(default)]
    choices: Vec<String>,
}

/// Returns the next step of the questions at the beginning of `calls`. They are asked at once, and answered in any order.
pub(crate) fn next<'a>(calls: &'a [Call], shared: &'a Shared) -> Step<'a> {
    let open = || calls.iter().take_while(|call| call.tool == ASK_USER).filter(|call| !call.is_settled());
    // One ruling at a time: the limit of tool calls counts the calls that were allowed before.
    if let Some(call) = open().find(|call| call.state == CallState::Requested) {
        return Step::Record(ruled(call, shared));
    }
    let allowed = open().filter(|call| call.state == CallState::Ruled);
    let events = if shared.run.people { ask_people(allowed, shared) } else { allowed.map(nobody_there).collect() };
    if events.is_empty() { Step::AskPeople(people::open_requests(shared)) } else { Step::Record(events) }
}

fn ask_people<'a>(calls: impl Iterator<Item = &'a Call>, shared: &Shared) -> Vec<Event> {
    let (mut events, mut about) = (Vec::new(), Vec::new());
    for call in calls {
        match read(call) {
            Ok(Question { text, choices }) => about.push((QuestionSubject::Call(call.id.clone()), text, choices)),
            Err(error) => events.push(Event::ToolFailed { call: call.id.clone(), text: error.to_string() }),
        }
    }
    events.extend(ask(&shared.questions, about));
    events
}

fn read(call: &Call) -> Result<Question, InvalidArguments> {
    Question::deserialize(call.read_arguments()?).map_err(InvalidArguments::new)
}

/// Fails a question. The catalogue may have been fixed where people were asked, and this attempt runs where they are not.
fn nobody_there(call: &Call) -> Event {
    let text = "no person can be asked any more: go on with what you know, or say what is missing".to_owned();
    Event::ToolFailed { call: call.id.clone(), text }
}
