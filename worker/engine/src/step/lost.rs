//! A call with effect whose answer was lost: a person says what became of it (`engine.md`, section 1).

use super::{Step, calls, ending};
use crate::conversation::{Call, CallState, Conversation, Settlement, Stall};
use crate::event::{About, Event};
use crate::people;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::text::bounded;

const HAPPENED: &str = "happened";
const DID_NOT: &str = "did not happen";
const STOP: &str = "stop";

/// How much of the arguments stands in the question, in bytes.
const MAX_SHOWN: usize = 256;

/// What a person found out about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It happened.
    Happened,
    /// It did not happen.
    DidNot,
    /// Nobody can tell, or the Job is not to go on: it ends.
    Stop,
}

impl Finding {
    /// Reads an answer: one of the choices, however it is spelt in capitals.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let is = |choice: &str| text.trim().eq_ignore_ascii_case(choice);
        if is(HAPPENED) {
            return Ok(Self::Happened);
        }
        if is(DID_NOT) {
            return Ok(Self::DidNot);
        }
        if is(STOP) {
            return Ok(Self::Stop);
        }
        Err(format!("{:?} is none of: {HAPPENED}, {DID_NOT}, {STOP}", bounded(text, 64)))
    }
}

/// What the model reads of a call that happened.
pub(crate) fn happened(by: &str) -> String {
    format!(
        "The call was sent and its answer was lost. {by} confirmed that it happened. Its answer is not known."
    )
}

/// What the model reads of a call that did not happen.
pub(crate) fn did_not(by: &str) -> String {
    format!("The call was sent and its answer was lost. {by} confirmed that it did not happen.")
}

/// The next step where nobody knows what a call did: it comes before everything else, ends included.
pub(super) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let lost = CallState::Settled(Settlement::Indeterminate);
    let call = conversation.calls().iter().find(|call| call.state == lost)?;
    let crashes = conversation.stall() == Some(Stall::Crashes);
    if !conversation.run().people || conversation.stopped_by().is_some() || crashes {
        return Some(Step::Record(end(call, conversation)));
    }
    let about = About::Lost(call.id.clone());
    if conversation.questions().is_open(&about) {
        return Some(Step::AskPeople(people::asks(conversation)));
    }
    let choices = [HAPPENED, DID_NOT, STOP].map(str::to_owned).to_vec();
    Some(Step::Record(people::questions(conversation, vec![(about, question(call), choices)])))
}

fn question(call: &Call) -> String {
    let arguments = call.read_arguments().map(ToString::to_string).unwrap_or_default();
    format!(
        "The call {} of {} was sent with {}, and its answer was lost: {}. Find out whether it happened. It is not sent \
         again, whatever the answer.",
        call.id,
        call.tool,
        bounded(&arguments, MAX_SHOWN),
        bounded(&call.result, MAX_SHOWN)
    )
}

fn end(call: &Call, conversation: &Conversation) -> Vec<Event> {
    let mut events = calls::skip_rest(conversation, call);
    let stopped = conversation.stopped_by().map(|by| format!(" The Job was ended here by {by}.")).unwrap_or_default();
    let message = format!(
        "The call {} of {} was sent, and its answer was lost: {}. Find out whether it happened before anything is \
         done again; it was not repeated.{stopped}",
        call.id, call.tool, call.result
    );
    events.push(ending::finished(conversation, OutcomeCode::ToolIndeterminate, &message));
    events
}

#[cfg(test)]
mod tests {
    use super::Finding;
    use rstest::rstest;

    #[rstest]
    #[case::happened(" Happened\n", Some(Finding::Happened))]
    #[case::did_not("did not happen", Some(Finding::DidNot))]
    #[case::stop("STOP", Some(Finding::Stop))]
    #[case::not_whole("did", None)]
    #[case::more("it happened", None)]
    #[case::nothing("", None)]
    fn only_a_choice_is_an_answer(#[case] text: &str, #[case] finding: Option<Finding>) {
        assert_eq!(Finding::read(text).ok(), finding);
    }
}
