//! The question to a person about a lost call, and the person's answer.

use crate::stages::calls::Call;
use crate::stages::questions::RefusedReply;
use bloomery_crds::text::bounded;

const HAPPENED: &str = "happened";
const DID_NOT_HAPPEN: &str = "did not happen";
const STOP: &str = "stop";

/// The most bytes of the arguments, and of the reason of the loss, that the question shows.
const MAX_SHOWN_BYTES: usize = 256;

/// A person's answer to the question about a lost call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LostCallAnswer {
    /// The call happened.
    Happened,
    /// The call did not happen.
    DidNotHappen,
    /// The Job ends: the person does not know, or does not want the Job to continue.
    EndJob,
}

impl LostCallAnswer {
    /// Reads an answer: one of the choices, in upper or lower case.
    pub(super) fn read(text: &str) -> Result<Self, RefusedReply> {
        let is = |choice: &str| text.trim().eq_ignore_ascii_case(choice);
        if is(HAPPENED) {
            return Ok(Self::Happened);
        }
        if is(DID_NOT_HAPPEN) {
            return Ok(Self::DidNotHappen);
        }
        if is(STOP) {
            return Ok(Self::EndJob);
        }
        Err(RefusedReply::new(format!("{:?} is none of: {HAPPENED}, {DID_NOT_HAPPEN}, {STOP}", bounded(text, 64))))
    }

    /// The answers to choose from.
    pub(super) fn choices() -> Vec<String> {
        [HAPPENED, DID_NOT_HAPPEN, STOP].map(str::to_owned).to_vec()
    }
}

/// Returns the question about a lost call.
pub(super) fn question(call: &Call) -> String {
    let arguments = call.read_arguments().map(ToString::to_string).unwrap_or_default();
    format!(
        "The call {} of {} was sent with {}, and its answer was lost: {}. Find out whether it happened. It is not sent \
         again, whatever the answer.",
        call.id,
        call.tool,
        bounded(&arguments, MAX_SHOWN_BYTES),
        bounded(&call.result, MAX_SHOWN_BYTES)
    )
}

/// Returns the result of a call that happened, for the model.
pub(super) fn happened_text(by: &str) -> String {
    format!("The call was sent and its answer was lost. It happened, as {by} confirmed. Its answer is not known.")
}

/// Returns the result of a call that did not happen, for the model.
pub(super) fn did_not_happen_text(by: &str) -> String {
    format!("The call was sent and its answer was lost. It did not happen, as {by} confirmed.")
}

#[cfg(test)]
mod tests {
    use super::LostCallAnswer;
    use rstest::rstest;

    #[rstest]
    #[case::happened(" Happened\n", Some(LostCallAnswer::Happened))]
    #[case::did_not("did not happen", Some(LostCallAnswer::DidNotHappen))]
    #[case::stop("STOP", Some(LostCallAnswer::EndJob))]
    #[case::a_part_of_a_choice("did", None)]
    #[case::more_than_a_choice("it happened", None)]
    #[case::nothing("", None)]
    fn only_a_choice_is_an_answer(#[case] text: &str, #[case] expected: Option<LostCallAnswer>) {
        assert_eq!(LostCallAnswer::read(text).ok(), expected);
    }
}
