//! The steps of `ask_user`, whose calls people answer.

use super::state::ask;
use crate::event::{Event, QuestionSubject};
use crate::shared::Shared;
use crate::stages::calls::{Call, CallState, InvalidArguments};
use crate::step::Step;
use serde::Deserialize;

/// The arguments of `ask_user`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskUserArguments {
    text: String,
    #[serde(default)]
    choices: Vec<String>,
}

/// Returns the step that asks people the questions of allowed calls, or nothing if every question waits for its answer.
pub(crate) fn next<'a>(calls: &[&'a Call], shared: &'a Shared) -> Option<Step<'a>> {
    let allowed = calls.iter().copied().filter(|call| call.state == CallState::Allowed);
    let events =
        if shared.run.people { ask_people(allowed, shared) } else { allowed.map(fail_without_people).collect() };
    (!events.is_empty()).then_some(Step::Record(events))
}

fn ask_people<'a>(calls: impl Iterator<Item = &'a Call>, shared: &Shared) -> Vec<Event> {
    let (mut events, mut new_questions) = (Vec::new(), Vec::new());
    for call in calls {
        match read_arguments(call) {
            Ok(AskUserArguments { text, choices }) => {
                new_questions.push((QuestionSubject::Call(call.id.clone()), text, choices));
            }
            Err(error) => events.push(Event::ToolFailed { call: call.id.clone(), text: error.to_string() }),
        }
    }
    events.extend(ask(&shared.questions, new_questions));
    events
}

fn read_arguments(call: &Call) -> Result<AskUserArguments, InvalidArguments> {
    AskUserArguments::deserialize(call.read_arguments()?).map_err(InvalidArguments::new)
}

/// Fails a call of `ask_user` in an attempt without people. The tools were fixed in an earlier attempt with people.
fn fail_without_people(call: &Call) -> Event {
    let text = "no person can be asked any more: go on with what you know, or say what is missing".to_owned();
    Event::ToolFailed { call: call.id.clone(), text }
}
