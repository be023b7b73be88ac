//! Turns the input of a person into a statement, if it changes anything.

use crate::error::{Error, ErrorKind};
use crate::input::{Input, Ruling};
use crate::requests::OpenRequests;
use bloomery_crds::Digest;
use bloomery_engine::event::{CallId, Decision};
use bloomery_engine::people::Statement;

/// The input of a person, for a Job that has not ended.
#[derive(Debug, PartialEq)]
pub(super) enum Delivery {
    /// A statement for the inbox.
    Statement(Statement),
    /// The cancellation.
    Cancel,
}

/// Checks input against the open requests of a Job.
///
/// # Errors
/// If it is empty, or changes nothing.
pub(super) fn delivery(input: Input, by: &str, open: &OpenRequests) -> Result<Delivery, Error> {
    let by = by.to_owned();
    Ok(Delivery::Statement(match input {
        Input::Cancel => return Ok(Delivery::Cancel),
        Input::Message { text } => Statement::Message { text: not_blank(text, "the message")?, by, nth: None },
        Input::Reply { question, text } => {
            if !open.questions.iter().any(|asked| asked.question.id == question) {
                return Err(conflict(format!(
                    "the question {question} is not open: read the open requests of the Job again"
                )));
            }
            Statement::Reply { question, text: not_blank(text, "the reply")?, by, nth: None }
        }
        Input::Decision { call, digest, approver, ruling, reason } => {
            check_held(&call, &digest, &approver, open)?;
            let decision = Decision { approver, by, reason };
            match ruling {
                Ruling::Approve => Statement::Approval { call, digest, decision },
                Ruling::Deny => Statement::Denial { call, decision },
            }
        }
    }))
}

/// Checks that a call is held with these arguments, and waits for the decision of this approver.
fn check_held(call: &CallId, digest: &Digest, approver: &str, open: &OpenRequests) -> Result<(), Error> {
    let Some(held) = open.approvals.iter().find(|held| held.call == *call) else {
        return Err(conflict(format!(
            "the call {call} does not wait for a decision: read the open requests of the Job again"
        )));
    };
    if held.digest != *digest {
        return Err(conflict(format!("the call {call} has other arguments now: read them, and decide again")));
    }
    if !held.approvers.iter().any(|awaited| awaited == approver) {
        let awaited = held.approvers.join(", ");
        return Err(conflict(format!("the call {call} does not wait for {approver}. It waits for {awaited}")));
    }
    Ok(())
}

fn conflict(message: String) -> Error {
    Error::new(ErrorKind::Conflict, message)
}

fn not_blank(text: String, what: &str) -> Result<String, Error> {
    if text.trim().is_empty() { Err(Error::invalid(format!("{what} is empty"))) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{HeldCall, Question};
    use bloomery_engine::event::{QuestionId, UserQuestion};
    use rstest::rstest;

    fn digest(text: &str) -> Digest {
        Digest::of_bytes(text.as_bytes())
    }

    fn open() -> OpenRequests {
        let held = HeldCall {
            call: CallId::new(7, 0),
            tool: "refund".into(),
            arguments: "{}".into(),
            digest: digest("{}"),
            reasons: Vec::new(),
            approvers: vec!["finance".into()],
        };
        let question = UserQuestion { id: QuestionId::new(1), text: "Which?".into(), choices: Vec::new() };
        let questions = vec![Question { question, refused: None }];
        OpenRequests { approvals: vec![held], questions, ..OpenRequests::default() }
    }

    fn decision(call: CallId, arguments: &str, approver: &str, ruling: Ruling) -> Input {
        Input::Decision { call, digest: digest(arguments), approver: approver.into(), ruling, reason: None }
    }

    #[test]
    fn input_becomes_a_statement_of_the_caller() {
        let by_ada = || Decision { approver: "finance".into(), by: "ada".into(), reason: None };
        let approve = decision(CallId::new(7, 0), "{}", "finance", Ruling::Approve);
        let approval = Statement::Approval { call: CallId::new(7, 0), digest: digest("{}"), decision: by_ada() };
        assert_eq!(delivery(approve, "ada", &open()), Ok(Delivery::Statement(approval)));
        let deny = decision(CallId::new(7, 0), "{}", "finance", Ruling::Deny);
        let denial = Statement::Denial { call: CallId::new(7, 0), decision: by_ada() };
        assert_eq!(delivery(deny, "ada", &open()), Ok(Delivery::Statement(denial)));
        let reply = Input::Reply { question: QuestionId::new(1), text: "this".into() };
        let replied =
            Statement::Reply { question: QuestionId::new(1), text: "this".into(), by: "ada".into(), nth: None };
        assert_eq!(delivery(reply, "ada", &open()), Ok(Delivery::Statement(replied)));
        assert_eq!(delivery(Input::Cancel, "ada", &OpenRequests::default()), Ok(Delivery::Cancel));
    }

    #[rstest]
    #[case::no_such_question(Input::Reply { question: QuestionId::new(2), text: "x".into() }, ErrorKind::Conflict)]
    #[case::empty_reply(Input::Reply { question: QuestionId::new(1), text: " ".into() }, ErrorKind::Invalid)]
    #[case::empty_message(Input::Message { text: "\n".into() }, ErrorKind::Invalid)]
    #[case::other_call(decision(CallId::new(8, 0), "{}", "finance", Ruling::Approve), ErrorKind::Conflict)]
    #[case::other_arguments(decision(CallId::new(7, 0), "{1}", "finance", Ruling::Approve), ErrorKind::Conflict)]
    #[case::other_approver(decision(CallId::new(7, 0), "{}", "legal", Ruling::Deny), ErrorKind::Conflict)]
    fn input_that_changes_nothing_is_refused(#[case] input: Input, #[case] kind: ErrorKind) {
        assert_eq!(delivery(input, "ada", &open()).unwrap_err().kind, kind);
    }
}
