use super::*;
use crate::exit::Exit;
use crate::jobs::fixtures::{asks, changed, ended, holds, job};
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use rstest::rstest;

fn reply(question: Option<&str>, text: &str) -> Reply {
    Reply { question: question.map(str::to_owned), text: text.to_owned() }
}

fn only(job: Job, id: &str) -> Job {
    changed(job, |status| {
        if let Some(waiting) = &mut status.waiting_for {
            waiting.questions.retain(|question| question.id == id);
        }
    })
}

/// The id of the question that is answered; the refusal otherwise.
fn aimed(job: &Job, question: Option<&str>, message: bool) -> Result<Option<String>, Error> {
    target(job, question, message).map(|aim| match aim {
        ReplyTarget::Message => None,
        ReplyTarget::Question(question) => Some(question.id),
        ReplyTarget::Ambiguous(several) => panic!("one of {several:?}"),
    })
}

#[test]
fn the_one_open_question_is_answered() {
    assert_eq!(aimed(&only(asks(), "q-2"), None, false), Ok(Some("q-2".into())));
    assert_eq!(aimed(&asks(), Some("q-2"), false), Ok(Some("q-2".into())));
    assert_eq!(aimed(&asks(), None, true), Ok(None), "it is said to be a message");
    assert_eq!(aimed(&job("new"), None, false), Ok(None));
    assert_eq!(aimed(&holds(), None, false), Ok(None), "a held call is no question");
}

#[test]
fn of_several_one_has_to_be_chosen() {
    let Ok(ReplyTarget::Ambiguous(open)) = target(&asks(), None, false) else { panic!("it is not clear which") };
    assert_eq!(
        list_questions(&open),
        "\n  q-1  Which order is meant?\n  q-2  Did it happen? (happened, did not happen, stop)"
    );
}

#[test]
fn a_question_that_an_unheard_reply_answers_is_not_answered_again() {
    let mut job = asks();
    job.spec.replies.push(reply(Some("q-1"), "A-17"));
    assert_eq!(aimed(&job, None, false), Ok(Some("q-2".into())), "the other one is open");
    job.spec.replies.push(reply(Some("q-2"), "stop"));
    let error = aimed(&job, None, false).unwrap_err();
    assert!(error.exit == Exit::TooLate && error.message.contains("\"A-17\"") && error.message.contains("--message"));
    assert_eq!(aimed(&job, Some("q-1"), false), Ok(Some("q-1".into())), "who names it is warned");
}

#[test]
fn a_reply_that_was_heard_and_not_taken_leaves_the_question_open() {
    assert_eq!(pending_answer(&asks(), "q-1"), None);
    let unheard = changed(asks(), |status| status.replies_heard = None);
    assert_eq!(pending_answer(&unheard, "q-1"), Some(&reply(Some("q-1"), "B")));
    let beyond = changed(asks(), |status| status.replies_heard = Some(u32::MAX));
    assert_eq!(pending_answer(&beyond, "q-1"), None);
}

#[rstest]
#[case::a_slip("q1", "Did you mean \"q-1\"?")]
#[case::another("q-77", "Open are:\n  q-1  Which order")]
fn an_unknown_question_is_told_with_those_that_are_open(#[case] id: &str, #[case] says: &str) {
    let error = aimed(&asks(), Some(id), false).unwrap_err();
    assert!(error.exit == Exit::Usage && error.message.contains(says), "{error}");
}

#[test]
fn where_nothing_is_asked_a_question_is_unknown() {
    let error = aimed(&job("new"), Some("q-1"), false).unwrap_err();
    assert!(error.exit == Exit::Usage && error.message.contains("Without --question"), "{error}");
}

#[test]
fn a_question_beyond_those_that_are_shown_may_be_answered() {
    let many = changed(asks(), |status| {
        let waiting = status.waiting_for.get_or_insert_default();
        let question = |n: usize| AskedQuestion { id: format!("q-{n}"), ..AskedQuestion::default() };
        waiting.questions = (1..=WaitingFor::MAX_QUESTIONS).map(question).collect();
    });
    assert_eq!(aimed(&many, Some("q-9"), false), Ok(Some("q-9".into())));
    assert_eq!(check_still_open(&many, &reply(Some("q-9"), "x")), Ok(()));
}

#[test]
fn who_cannot_hear_is_told_nothing() {
    let over = ended(&Outcome::new(OutcomeCode::StepLimit, "12 steps"));
    let error = aimed(&over, None, true).unwrap_err();
    assert!(error.exit == Exit::TooLate && error.message.contains("StepLimit"), "{error}");
    let mut cancelled = asks();
    cancelled.spec.cancel = Some(true);
    assert_eq!(aimed(&cancelled, None, true).unwrap_err().exit, Exit::TooLate);
    let without_skill = changed(holds(), |status| status.conditions[0].reason = "SkillDeleted".to_owned());
    let error = aimed(&without_skill, None, true).unwrap_err();
    assert!(error.exit == Exit::TooLate && error.message.contains("the Skill of the Job refund was deleted"));
    let mut full = asks();
    full.spec.replies = vec![reply(None, "x"); Reply::MAX_REPLIES];
    let error = aimed(&full, None, true).unwrap_err();
    assert!(error.exit == Exit::Error && error.message.contains("32 replies"), "{error}");
}

#[test]
fn what_somebody_else_has_changed_meanwhile_counts() {
    let ours = reply(Some("q-2"), "stop");
    assert_eq!(check_still_open(&asks(), &ours), Ok(()));
    let mut theirs = asks();
    theirs.spec.replies.push(reply(None, "hurry"));
    assert_eq!(check_still_open(&theirs, &ours), Ok(()), "a message answers nothing");
    theirs.spec.replies.push(reply(Some("q-2"), "happened"));
    let error = check_still_open(&theirs, &ours).unwrap_err();
    assert!(error.exit == Exit::TooLate && error.message.contains("\"happened\""), "{error}");
    assert_eq!(check_still_open(&theirs, &reply(None, "hello")), Ok(()));
    assert_eq!(check_still_open(&only(asks(), "q-1"), &ours).unwrap_err().exit, Exit::TooLate);
}

#[rstest]
#[case::words("A-17\n", "A-17")]
#[case::longest(&"x".repeat(1024), &"x".repeat(1024))]
fn a_text_is_said_as_it_is(#[case] typed: &str, #[case] said: &str) {
    assert_eq!(reply_text(None, typed), Ok((said.to_owned(), None)));
}

#[rstest]
#[case::nothing(" \n", "empty")]
#[case::too_long(&"x".repeat(1025), "1025 bytes")]
#[case::too_many_bytes(&"\u{e4}".repeat(513), "1026 bytes")]
fn a_text_that_no_job_takes_is_refused(#[case] typed: &str, #[case] says: &str) {
    let error = reply_text(None, typed).unwrap_err();
    assert!(error.exit == Exit::Usage && error.message.contains(says), "{error}");
}

#[test]
fn a_choice_is_meant_by_number_or_words_and_others_are_sent_with_a_note() {
    let job = asks();
    let question = &state::questions(&job)[1];
    assert_eq!(reply_text(Some(question), "2"), Ok(("did not happen".into(), None)));
    assert_eq!(reply_text(Some(question), "STOP"), Ok(("stop".into(), None)));
    let (said, note) = reply_text(Some(question), "I do not know").unwrap();
    assert_eq!(said, "I do not know");
    assert!(note.unwrap().contains("happened, did not happen, stop"));
}
