use super::*;
use crate::job::fixtures::{asked, held_call, stamp, status};
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::{AskedQuestion, WaitingFor};
use proptest::prelude::*;
use rstest::rstest;

fn reply_to(question: Option<&str>, text: &str) -> Reply {
    Reply { question: question.map(str::to_owned), text: text.into() }
}

fn spec(replies: Vec<Reply>) -> JobSpec {
    JobSpec { replies, ..JobSpec::default() }
}

/// The status of a Job whose worker has received one reply.
fn waiting_status(phase: Phase, waiting_for: Option<WaitingFor>) -> JobStatus {
    JobStatus { waiting_for: waiting_for.map(Into::into), replies_heard: Some(1), ..status(1, phase) }
}

/// A wait with the maximum number of questions.
fn wait_with_max_questions() -> WaitingFor {
    let question = |nth: usize| AskedQuestion { id: format!("q-{nth}"), ..AskedQuestion::default() };
    WaitingFor { questions: (1..=WaitingFor::MAX_QUESTIONS).map(question).collect(), ..asked(0) }
}

fn wait_with_held_call() -> WaitingFor {
    WaitingFor { call: Some(held_call()), ..WaitingFor::default() }
}

#[rstest]
#[case::open_question(Some(asked(0)), Some("q-2"), AnswerState::Available)]
#[case::without_a_question(Some(asked(0)), None, AnswerState::Awaited)]
#[case::unknown_question(Some(asked(0)), Some("q-9"), AnswerState::Awaited)]
#[case::question_beyond_the_maximum(Some(wait_with_max_questions()), Some("q-9"), AnswerState::Available)]
#[case::unreported_question(Some(WaitingFor::default()), Some("q-9"), AnswerState::Available)]
#[case::without_a_wait(None, Some("q-9"), AnswerState::Available)]
#[case::held_call_without_questions(Some(wait_with_held_call()), Some("q-9"), AnswerState::Awaited)]
#[case::held_call_and_unknown_question(Some(WaitingFor { call: Some(held_call()), ..asked(0) }), Some("q-9"), AnswerState::Awaited)]
#[case::held_call_and_open_question(Some(WaitingFor { call: Some(held_call()), ..asked(0) }), Some("q-1"), AnswerState::Available)]
fn an_answer_is_a_reply_to_an_open_question(
    #[case] waiting: Option<WaitingFor>,
    #[case] question: Option<&str>,
    #[case] expected: AnswerState,
) {
    let status = waiting_status(Phase::AwaitingReply, waiting);
    let given = spec(vec![reply_to(None, "heard"), reply_to(question, "A-17")]);
    assert_eq!(answers(&given, &status), expected);
    // A reply that was received does not count again.
    assert_eq!(answers(&spec(vec![reply_to(question, "A-17")]), &status), AnswerState::Awaited);
    let full = spec(vec![reply_to(question, "A-17"); Reply::MAX_REPLIES]);
    let expected = if expected == AnswerState::Available { AnswerState::Available } else { AnswerState::Impossible };
    assert_eq!(answers(&full, &status), expected);
}

fn message(status: &JobStatus) -> Option<(String, String)> {
    let condition = conditions::find(&status.conditions, ConditionType::RepliesTaken)?;
    assert_eq!(condition.status, "False");
    Some((condition.reason.clone(), condition.message.clone()))
}

#[rstest]
#[case::running(Phase::Running, None)]
#[case::queued(Phase::Queued, None)]
#[case::waits_for_a_reply(Phase::AwaitingReply, Some("Not heard: reply 3 is to q-9, which is not open: \"B\"."))]
#[case::waits_for_approval(Phase::AwaitingApproval, Some("Not heard: reply 3 is to q-9, which is not open: \"B\"."))]
#[case::ended(
    Phase::Cancelled,
    Some(
        "Not heard: reply 2, before the Job ended: \"A\". reply 3 to q-9, before the Job ended: \"B\". reply 4 to q-1, before the Job ended: \"C\"."
    )
)]
fn undelivered_replies_are_recorded_by_phase(#[case] phase: Phase, #[case] expected: Option<&str>) {
    let given = spec(vec![
        reply_to(None, "heard"),
        reply_to(None, "A"),
        reply_to(Some("q-9"), "B"),
        reply_to(Some("q-1"), "C"),
    ]);
    let after = with_undelivered_replies(waiting_status(phase, Some(asked(0))), &given, &stamp(9));
    assert_eq!(message(&after).map(|(_, message)| message).as_deref(), expected);
    assert_eq!(with_undelivered_replies(after.clone(), &given, &stamp(90)), after, "the replies are recorded once");
}

#[test]
fn the_worker_s_text_stays_and_every_reply_is_named_once() {
    let mut before_status = waiting_status(Phase::AwaitingReply, Some(asked(0)));
    let of_worker =
        crate::job::status::stray_replies_condition(&["reply 1 is to q-7, which nobody has asked: \"x\"".to_owned()]);
    before_status.conditions = conditions::merge(&[], &[of_worker.unwrap()], Some(3), &stamp(1).now);
    let mut given = spec(vec![reply_to(Some("q-7"), "x"), reply_to(Some("q-9"), "y")]);
    let waiting = with_undelivered_replies(before_status, &given, &stamp(9));
    given.replies.push(reply_to(Some("q-8"), "z"));
    let ended = JobStatus { phase: Some(Phase::Failed), ..with_undelivered_replies(waiting, &given, &stamp(10)) };
    let (reason, message) = message(&with_undelivered_replies(ended, &given, &stamp(11))).unwrap();
    assert_eq!(reason, "JobEnded");
    assert!(
        message.starts_with("reply 1 is to q-7, which nobody has asked: \"x\". Not heard: reply 2 to q-9"),
        "{message}"
    );
    for nth in ["reply 1", "reply 2", "reply 3"] {
        assert_eq!(message.matches(nth).count(), 1, "{message}");
    }
}

#[test]
fn a_job_that_has_heard_every_reply_is_unchanged() {
    let ended = JobStatus { phase: Some(Phase::Succeeded), ..waiting_status(Phase::Succeeded, None) };
    assert_eq!(with_undelivered_replies(ended.clone(), &spec(vec![reply_to(None, "heard")]), &stamp(9)), ended);
    assert_eq!(with_undelivered_replies(ended.clone(), &spec(Vec::new()), &stamp(9)), ended);
}

proptest! {
    /// Holds for any replies and any earlier message.
    #[test]
    fn a_second_reconcile_does_not_change_the_message(
        texts in prop::collection::vec("(Not heard: |[a-zé\"\u{1}]{0,8}){0,200}", 0..6),
        before in "(Not heard: |[a-zé ]{0,8}){0,300}",
        ended in any::<bool>(),
    ) {
        let mut before_status = waiting_status(if ended { Phase::Failed } else { Phase::AwaitingReply }, Some(asked(0)));
        let seen = Observation::fails(ConditionType::RepliesTaken, Reason::UnknownQuestion, before);
        before_status.conditions = conditions::merge(&[], &[seen], Some(3), &stamp(1).now);
        let given = spec(texts.iter().map(|text| reply_to(Some("q-9"), text)).collect());
        let once = with_undelivered_replies(before_status, &given, &stamp(9));
        prop_assert_eq!(with_undelivered_replies(once.clone(), &given, &stamp(90)), once);
    }
}
