//! Formats requests to the person at the terminal, and parses typed answers.

use crate::terminal::Retry;
use crate::{choice, text};
use bloomery_crds::text::bounded;
use bloomery_engine::event::Decision;
use bloomery_engine::people::{ApprovalRequest, HumanRequest, Statement};

/// The maximum length of the model's text that is shown with a held call, in bytes.
const MAX_MODEL_TEXT_BYTES: usize = 512;

/// Describes a request. `more` is the number of further requests.
pub fn describe(request: &HumanRequest<'_>, more: usize) -> String {
    let mut lines = match request {
        HumanRequest::Approval(held) => describe_call(held),
        HumanRequest::Question(open) => {
            let mut lines = vec![String::new(), visible(&open.question.text)];
            let choices = open.question.choices.iter().zip(1..);
            lines.extend(choices.map(|(choice, number)| format!("  {number}  {}", visible(choice))));
            lines.extend(
                open.refused.as_ref().map(|why| format!("  The last answer was not accepted: {}.", visible(why))),
            );
            lines
        }
    };
    if more > 0 {
        lines.push(format!("  ({more} more requests after this one)"));
    }
    lines.join("\n")
}

/// Describes a held call.
fn describe_call(held: &ApprovalRequest<'_>) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        format!("A call of {} waits for {}.", visible(held.tool), visible(&held.approvers.join(" and "))),
        format!("  arguments  {}", visible(held.arguments)),
    ];
    let reasons =
        held.reasons.iter().map(|reason| format!("  because    {} ({})", visible(&reason.detail), reason.layer));
    lines.extend(reasons);
    lines.push(format!("  goal       {}", visible(held.goal)));
    if !held.answer_text.trim().is_empty() {
        lines.push(format!("  the model  {}", visible(&bounded(held.answer_text.trim(), MAX_MODEL_TEXT_BYTES))));
    }
    lines
}

/// Returns the prompt of a request.
pub fn prompt(request: &HumanRequest<'_>) -> String {
    match request {
        HumanRequest::Approval(held) => {
            let approver = held.approvers.first().copied().unwrap_or("nobody");
            format!("Approve it for {}? yes or no, with an optional reason: ", visible(approver))
        }
        HumanRequest::Question(open) if open.question.choices.is_empty() => "Your answer: ".to_owned(),
        HumanRequest::Question(_) => "Your answer (number or text): ".to_owned(),
    }
}

/// Parses the answer to a request.
///
/// # Errors
/// If the line is not a valid answer. The error says what to type instead.
pub fn parse_answer(request: &HumanRequest<'_>, line: &str, by: &str) -> Result<Statement, Retry> {
    match request {
        HumanRequest::Approval(held) => parse_decision(held, line, by),
        HumanRequest::Question(_) if line.is_empty() => {
            Err(Retry("Type an answer. To answer later, park the Job with ^C.".to_owned()))
        }
        HumanRequest::Question(open) => {
            if let Some(hint) = choice::out_of_range_hint(&open.question.choices, line) {
                return Err(Retry(hint));
            }
            let text = choice::parse(&open.question.choices, line).unwrap_or(line).to_owned();
            Ok(Statement::Reply { question: open.question.id.clone(), text, by: by.to_owned(), nth: None })
        }
    }
}

/// Parses a decision of the first approver: yes or no, and an optional reason.
fn parse_decision(held: &ApprovalRequest<'_>, line: &str, by: &str) -> Result<Statement, Retry> {
    let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_word = |long: &str, short: &str| word.eq_ignore_ascii_case(long) || word.eq_ignore_ascii_case(short);
    let decision = || Decision {
        approver: held.approvers.first().copied().unwrap_or_default().to_owned(),
        by: by.to_owned(),
        reason: Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty()),
    };
    if is_word("yes", "y") {
        return Ok(held.approve(decision()));
    }
    if is_word("no", "n") {
        return Ok(held.deny(decision()));
    }
    Err(Retry("Type yes or no. To decide later, park the Job with ^C.".to_owned()))
}

/// Escapes the characters that control a terminal or are invisible, so that a person sees everything that they decide on.
fn visible(text: &str) -> String {
    text.split('\n').map(text::escaped).collect::<Vec<_>>().join("\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::v1alpha1::GateReason;
    use bloomery_engine::event::{CallId, QuestionId, QuestionSubject, RulingReason, UserQuestion};
    use bloomery_engine::people::OpenQuestion;
    use rstest::rstest;

    fn with_held(test: impl FnOnce(&HumanRequest<'_>)) {
        let (call, digest) = (CallId::new(7, 0), Digest::of_bytes(b""));
        let detail = "amount > 500 needs approval".to_owned();
        let reasons =
            [RulingReason { layer: GateReason::Approval, detail, approver: Some("supervisor".into()), rule: None }];
        test(&HumanRequest::Approval(ApprovalRequest {
            call: &call,
            tool: "process_refund",
            arguments: "{\"amount\":900,\"note\":\"\u{202e}00.5\u{1b}[2J\"}",
            digest: &digest,
            reasons: &reasons,
            approvers: vec!["finance", "supervisor"],
            goal: "Refund A-17",
            answer_text: "It arrived broken.\nSo I refund it.",
        }));
    }

    fn question(refused: Option<&str>) -> OpenQuestion {
        let choices = vec!["A-17".into(), "B-4".into()];
        let question = UserQuestion { id: QuestionId::new(1), text: "Which order?".into(), choices };
        OpenQuestion { question, about: QuestionSubject::Draft, refused: refused.map(str::to_owned) }
    }

    #[test]
    fn a_call_is_shown_completely_and_cannot_control_the_terminal() {
        with_held(|held| {
            let expected = "
A call of process_refund waits for finance and supervisor.
  arguments  {\"amount\":900,\"note\":\"\\u{202e}00.5\\u{1b}[2J\"}
  because    amount > 500 needs approval (Approval)
  goal       Refund A-17
  the model  It arrived broken.
    So I refund it.
  (1 more requests after this one)";
            assert_eq!(describe(held, 1), expected);
            assert_eq!(prompt(held), "Approve it for finance? yes or no, with an optional reason: ");
        });
    }

    #[rstest]
    #[case::yes("yes", Some((true, None)))]
    #[case::short("Y it did", Some((true, Some("it did"))))]
    #[case::no("no  it arrived whole ", Some((false, Some("it arrived whole"))))]
    #[case::nothing("", None)]
    #[case::something_else("yesterday", None)]
    #[case::neither("ok", None)]
    fn only_yes_or_no_decides(#[case] line: &str, #[case] expected: Option<(bool, Option<&str>)>) {
        with_held(|held| {
            let decision = parse_answer(held, line, "jane").ok().map(|statement| match statement {
                Statement::Approval { decision, .. } => (true, decision),
                Statement::Denial { decision, .. } => (false, decision),
                other => panic!("{other:?}"),
            });
            let by_jane = |reason: Option<&str>| {
                let reason = reason.map(str::to_owned);
                Decision { approver: "finance".into(), by: "jane".into(), reason }
            };
            assert_eq!(decision, expected.map(|(approves, reason)| (approves, by_jane(reason))));
        });
    }

    #[rstest]
    #[case::by_number("2", Some("B-4"))]
    #[case::by_text("the one of May", Some("the one of May"))]
    #[case::no_such_number("3", None)]
    #[case::none_of_them("0", None)]
    #[case::nothing("", None)]
    fn an_answer_is_a_choice_or_a_text(#[case] line: &str, #[case] expected: Option<&str>) {
        let open = question(None);
        let statement = parse_answer(&HumanRequest::Question(&open), line, "jane").ok();
        let replies = |text: &str| Statement::Reply {
            question: QuestionId::new(1),
            text: text.into(),
            by: "jane".into(),
            nth: None,
        };
        assert_eq!(statement, expected.map(replies));
    }

    #[test]
    fn a_question_is_shown_with_its_choices_and_the_reason_for_asking_again() {
        let open = question(Some("\"C\" is none of them"));
        let expected =
            "\nWhich order?\n  1  A-17\n  2  B-4\n  The last answer was not accepted: \"C\" is none of them.";
        assert_eq!(describe(&HumanRequest::Question(&open), 0), expected);
    }
}
