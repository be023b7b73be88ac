//! `ask_user`: a person answers it.

use super::ruled;
use crate::conversation::{Call, CallState, Conversation};
use crate::event::{About, Event};
use crate::gate::core_tools::ASK_USER;
use crate::people;
use crate::step::Step;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    text: String,
    #[serde(default)]
    choices: Vec<String>,
}

/// The next step of the questions that the calls begin with: they are put at once, and answered in any order.
pub(super) fn next<'a>(from: &'a [Call], conversation: &'a Conversation) -> Step<'a> {
    let open = || from.iter().take_while(|call| call.tool == ASK_USER).filter(|call| !call.is_settled());
    // One at a time: the limit of tool calls counts what was allowed before.
    if let Some(call) = open().find(|call| call.state == CallState::Asked) {
        return Step::Record(ruled(call, conversation));
    }
    let put = open().filter(|call| call.state == CallState::Ruled);
    if !conversation.run().people {
        let failed: Vec<Event> = put.map(nobody_there).collect();
        return if failed.is_empty() { Step::AskPeople(people::asks(conversation)) } else { Step::Record(failed) };
    }
    let (mut failed, mut about) = (Vec::new(), Vec::new());
    for call in put {
        match asked(call) {
            Ok(Asked { text, choices }) => about.push((About::Call(call.id.clone()), text, choices)),
            Err(text) => failed.push(Event::ToolFailed { call: call.id.clone(), text }),
        }
    }
    let events: Vec<Event> = failed.into_iter().chain(people::questions(conversation, about)).collect();
    if events.is_empty() { Step::AskPeople(people::asks(conversation)) } else { Step::Record(events) }
}

fn asked(call: &Call) -> Result<Asked, String> {
    Asked::deserialize(call.read_arguments()?).map_err(|error| error.to_string())
}

/// A catalogue that was fixed where people could be asked may be gone on with where they cannot.
fn nobody_there(call: &Call) -> Event {
    let text = "no person can be asked any more: go on with what you know, or say what is missing".to_owned();
    Event::ToolFailed { call: call.id.clone(), text }
}
