use super::*;
use crate::error::ErrorKind;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_testkit::objects::jobs::{changed, ended, job, with_held_call, with_questions};
use rstest::rstest;

fn reply(question: Option<&str>, text: &str) -> Reply {
    Reply { question: question.map(str::to_owned), text: text.to_owned() }
}

/// Removes all questions except one.
fn with_only_question(job: Job, id: &str) -> Job {
    changed(job, |status| {
        if let Some(waiting) = &mut status.waiting_for {
            waiting.questions.retain(|question| question.id == id);
        }
    })
}

/// Returns the id of the question that a reply would answer; `None` for a message.
fn target_id(job: &Job, question: Option<&str>, message: bool) -> Result<Option<String>, Error> {
    target(job, question, message).map(|target| match target {
        ReplyTarget::Message => None,
        ReplyTarget::Question(question) => Some(question.id),
        ReplyTarget::Ambiguous(several) => panic!("one of {several:?}"),
    })
}

#[test]
fn the_only_open_question_is_answered() {
    assert_eq!(target_id(&with_only_question(with_questions(), "q-2"), None, false), Ok(Some("q-2".into())));
    assert_eq!(target_id(&with_questions(), Some("q-2"), false), Ok(Some("q-2".into())));
    assert_eq!(target_id(&with_questions(), None, true), Ok(None), "the reply is a message");
    assert_eq!(target_id(&job("new"), None, false), Ok(None));
    assert_eq!(target_id(&with_held_call(), None, false), Ok(None), "a held call is not a question");
}

#[test]
fn one_of_several_questions_has_to_be_selected() {
    let Ok(ReplyTarget::Ambiguous(open)) = target(&with_questions(), None, false) else {
        panic!("the target is not ambiguous")
    };
    assert_eq!(
        list_questions(&open),
        "\n  q-1  Which order is meant?\n  q-2  Did it happen? (happened, did not happen, stop)"
    );
}

#[test]
fn a_question_with_a_pending_answer_is_not_answered_again() {
    let mut job = with_questions();
    job.spec.replies.push(reply(Some("q-1"), "A-17"));
    assert_eq!(target_id(&job, None, false), Ok(Some("q-2".into())), "the other one is open");
    job.spec.replies.push(reply(Some("q-2"), "stop"));
    let error = target_id(&job, None, false).unwrap_err();
    assert!(
        error.kind == ErrorKind::TooLate
            && error.message.contains("\"A-17\"")
            && error.message.contains("`options.message`")
    );
    assert_eq!(
        target_id(&job, Some("q-1"), false),
        Ok(Some("q-1".into())),
        "a named question is allowed, with a warning"
    );
}

#[test]
fn a_received_reply_that_was_not_accepted_leaves_the_question_open() {
    assert_eq!(pending_answer(&with_questions(), "q-1"), None);
    let not_received = changed(with_questions(), |status| status.replies_heard = None);
    assert_eq!(pending_answer(&not_received, "q-1"), Some(&reply(Some("q-1"), "B")));
    let beyond = changed(with_questions(), |status| status.replies_heard = Some(u32::MAX));
    assert_eq!(pending_answer(&beyond, "q-1"), None);
}

#[rstest]
#[case::a_misspelt_id("q1", "Did you mean \"q-1\"?")]
#[case::an_unknown_id("q-77", "The open questions are:\n  q-1  Which order")]
fn the_error_for_an_unknown_question_lists_the_open_questions(#[case] id: &str, #[case] says: &str) {
    let error = target_id(&with_questions(), Some(id), false).unwrap_err();
    assert!(error.kind == ErrorKind::Invalid && error.message.contains(says), "{error}");
}

#[test]
fn a_job_without_questions_has_no_question_to_answer() {
    let error = target_id(&job("new"), Some("q-1"), false).unwrap_err();
    assert!(error.kind == ErrorKind::Invalid && error.message.contains("Without `options.question` q-1"), "{error}");
}

#[test]
fn a_question_that_the_status_does_not_show_can_be_answered() {
    let many = changed(with_questions(), |status| {
        let waiting = status.waiting_for.get_or_insert_default();
        let question = |n: usize| AskedQuestion { id: format!("q-{n}"), ..AskedQuestion::default() };
        waiting.questions = (1..=WaitingFor::MAX_QUESTIONS).map(question).collect();
    });
    assert_eq!(target_id(&many, Some("q-9"), false), Ok(Some("q-9".into())));
    assert_eq!(check_still_open(&many, &reply(Some("q-9"), "x")), Ok(()));
}

#[test]
fn a_job_that_ends_or_is_full_accepts_no_reply() {
    let over = ended(&Outcome::new(OutcomeCode::StepLimit, "12 steps"));
    let error = target_id(&over, None, true).unwrap_err();
    assert!(error.kind == ErrorKind::TooLate && error.message.contains("StepLimit"), "{error}");
    let mut cancelled = with_questions();
    cancelled.spec.cancel = Some(true);
    assert_eq!(target_id(&cancelled, None, true).unwrap_err().kind, ErrorKind::TooLate);
    let without_skill = changed(with_held_call(), |status| status.conditions[0].reason = "SkillDeleted".to_owned());
    let error = target_id(&without_skill, None, true).unwrap_err();
    assert!(error.kind == ErrorKind::TooLate && error.message.contains("the Skill of the Job refund was deleted"));
    let mut full = with_questions();
    full.spec.replies = vec![reply(None, "x"); Reply::MAX_REPLIES];
    let error = target_id(&full, None, true).unwrap_err();
    assert!(error.kind == ErrorKind::Conflict && error.message.contains("32 replies"), "{error}");
}

#[test]
fn a_question_that_was_answered_or_closed_meanwhile_is_not_open() {
    let ours = reply(Some("q-2"), "stop");
    assert_eq!(check_still_open(&with_questions(), &ours), Ok(()));
    let mut theirs = with_questions();
    theirs.spec.replies.push(reply(None, "hurry"));
    assert_eq!(check_still_open(&theirs, &ours), Ok(()), "a message answers nothing");
    theirs.spec.replies.push(reply(Some("q-2"), "happened"));
    let error = check_still_open(&theirs, &ours).unwrap_err();
    assert!(error.kind == ErrorKind::TooLate && error.message.contains("\"happened\""), "{error}");
    assert_eq!(check_still_open(&theirs, &reply(None, "hello")), Ok(()));
    assert_eq!(
        check_still_open(&with_only_question(with_questions(), "q-1"), &ours).unwrap_err().kind,
        ErrorKind::TooLate
    );
}

#[rstest]
#[case::words("A-17\n", "A-17")]
#[case::longest(&"x".repeat(1024), &"x".repeat(1024))]
fn a_text_is_sent_unchanged(#[case] typed: &str, #[case] text: &str) {
    assert_eq!(reply_text(None, typed), Ok((text.to_owned(), None)));
}

#[rstest]
#[case::nothing(" \n", "empty")]
#[case::too_long(&"x".repeat(1025), "1025 bytes")]
#[case::too_many_bytes(&"\u{e4}".repeat(513), "1026 bytes")]
fn an_invalid_text_is_refused(#[case] typed: &str, #[case] says: &str) {
    let error = reply_text(None, typed).unwrap_err();
    assert!(error.kind == ErrorKind::Invalid && error.message.contains(says), "{error}");
}

#[test]
fn a_choice_is_selected_by_number_or_text_and_other_text_gets_a_note() {
    let job = with_questions();
    let question = &state::questions(&job)[1];
    assert_eq!(reply_text(Some(question), "2"), Ok(("did not happen".into(), None)));
    assert_eq!(reply_text(Some(question), "STOP"), Ok(("stop".into(), None)));
    let (text, note) = reply_text(Some(question), "I do not know").unwrap();
    assert_eq!(text, "I do not know");
    assert!(note.unwrap().contains("happened, did not happen, stop"));
}
