//! What people say in the spec of a Job, whose workers they never meet.

use super::*;
use bloomery_crds::run::GivenReply;
use bloomery_crds::v1alpha1::{ApprovalVerdict, AskedQuestion};
use rstest::rstest;
use serde_json::json;

fn to(nth: u32, question: &str, text: &str) -> GivenReply {
    GivenReply { nth, question: Some(question.into()), text: text.into() }
}

fn message(nth: u32, text: &str) -> GivenReply {
    GivenReply { nth, question: None, text: text.into() }
}

/// A stand whose model asks first what nobody has told it, with nobody here.
async fn stand(questions: &[&'static str]) -> Stand {
    let ask = |text: &&'static str| ("ask_user", json!({ "text": text }));
    let script = [vec![Answer::Calls(questions.iter().map(ask).collect())], refund()].concat();
    let mut stand = Stand::new(script, Refund::Answers).await;
    stand.replies = Some(Vec::new());
    stand
}

/// One whose first attempt has parked with its questions.
async fn parked(questions: &[&'static str]) -> Stand {
    let stand = stand(questions).await;
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Reply));
    stand
}

fn last(stand: &Stand) -> Projection {
    stand.reports().pop().unwrap().report.projection
}

fn asked(stand: &Stand) -> Vec<AskedQuestion> {
    last(stand).waiting_for.map(|waiting| waiting.questions).unwrap_or_default()
}

fn count(stand: &Stand, event: &str) -> usize {
    stand.events().iter().filter(|name| **name == event).count()
}

#[tokio::test]
async fn a_question_parks_and_its_reply_is_heard_once_and_no_model_is_asked_again() {
    let mut stand = parked(&["Which order?"]).await;
    let (report, message) = (stand.reports().pop().unwrap().report, stand.termination(1));
    assert_eq!(
        (report.end.clone(), message.end),
        (Some(PodEnd::Parked(ParkReason::Reply)), report.end.clone().unwrap())
    );
    assert_eq!((report.projection.phase, report.projection.replies_heard), (Phase::AwaitingReply, 0));
    let question = AskedQuestion { id: "q-1".into(), text: "Which order?".into(), ..AskedQuestion::default() };
    assert_eq!(asked(&stand), [question]);
    // Should the report not arrive, the message says the same.
    assert_eq!((message.questions, message.replies_heard), (asked(&stand), 0));
    let before = stand.log();
    // One question more than without: three answers of the main loop, the ruling and the polish.
    let undisturbed = stand.model.request_count() + 5;

    // The Job's part gives it, and every report is answered with it until one says that it was heard.
    let given = vec![to(1, "q-1", "A-17")];
    *stand.operator.replies.lock().unwrap() = given.clone();
    stand.replies = Some(given);
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), count(&stand, "user.replied")), (OutcomeCode::Succeeded, 1));
    assert_eq!(stand.log()[..before.len()], before);
    assert_eq!((last(&stand).replies_heard, asked(&stand)), (1, Vec::new()));
    assert_eq!((stand.model.request_count(), stand.shop.effects().len()), (undisturbed, 2));
}

#[tokio::test]
async fn a_reply_that_was_heard_does_not_count_again_in_any_later_attempt() {
    let mut stand = parked(&["Which order?"]).await;
    let given = vec![to(1, "q-1", "A-17"), message(2, "be quick"), to(3, "q-9", "to nobody")];
    stand.replies = Some(given);
    stand.shop.refund = Refund::Waits;
    let stop = Stop::default();
    let drain = async {
        stand.shop.until_effects(1).await;
        stop.request(StopReason::Drain);
        stand.shop.let_go();
    };
    let (exit, ()) = tokio::join!(stand.run_with(2, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Parked(ParkReason::Drain));
    // The operator may not know yet what was heard, and gives all of it again.
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!((count(&stand, "user.replied"), count(&stand, "user.message")), (2, 1));
    let last = last(&stand);
    assert_eq!(last.replies_heard, 3);
    assert_eq!(last.stray_replies, ["reply 3 is to q-9, which was never asked: \"to nobody\""]);
}

#[tokio::test]
async fn several_questions_are_put_at_once_and_answered_in_one_go() {
    let mut stand = parked(&["Which order?", "Which shop?"]).await;
    let ids: Vec<String> = asked(&stand).into_iter().map(|asked| asked.id).collect();
    assert_eq!(ids, ["q-1", "q-2"]);
    stand.replies = Some(vec![to(1, "q-2", "Mill Lane"), to(2, "q-1", "A-17")]);
    assert_eq!(stand.run(2).await, Exit::Finished);
    let results = stand.model.requests()[1]["messages"].to_string();
    assert!(results.contains("Mill Lane") && results.contains("A-17"), "{results}");
    assert_eq!((outcome(&stand, 2), count(&stand, "user.replied")), (OutcomeCode::Succeeded, 2));
}

#[tokio::test]
async fn one_of_two_answers_parks_again_and_asks_for_the_other() {
    let mut stand = parked(&["Which order?", "Which shop?"]).await;
    stand.replies = Some(vec![to(1, "q-1", "A-17")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Reply));
    let left: Vec<String> = asked(&stand).into_iter().map(|asked| asked.text).collect();
    assert_eq!((left, stand.model.request_count()), (vec!["Which shop?".to_owned()], 1));
    let message = stand.termination(2);
    assert_eq!((message.questions, message.replies_heard), (asked(&stand), 1));
}

#[rstest]
#[case::unknown("q-7", "reply 1 is to q-7, which was never asked: \"A-17\"")]
#[case::no_question_at_all("order", "reply 1 is to order, which was never asked: \"A-17\"")]
#[tokio::test]
async fn a_reply_to_no_question_is_told_and_the_job_waits_on(#[case] question: &str, #[case] told: &str) {
    let mut stand = parked(&["Which order?"]).await;
    stand.replies = Some(vec![to(1, question, "A-17")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Reply));
    let last = last(&stand);
    assert_eq!((last.stray_replies, last.replies_heard), (vec![told.to_owned()], 1));
    assert_eq!(asked(&stand)[0].id, "q-1");
}

#[tokio::test]
async fn a_message_to_a_running_job_comes_with_the_answer_to_a_report() {
    // One that comes after the answer has the model give it anew.
    let script = [refund(), refund().split_off(2)].concat();
    let mut stand = Stand::new(script, Refund::Waits).await;
    stand.replies = Some(Vec::new());
    let says = async {
        stand.shop.until_effects(1).await;
        *stand.operator.replies.lock().unwrap() = vec![message(1, "the customer is called Ada")];
        // The answer to the next report has it.
        let reports = stand.reports().len();
        stand.operator.until_received(|taken| taken.len() > reports).await;
        stand.shop.let_go();
    };
    let (exit, ()) = tokio::join!(stand.run(1), says);
    assert_eq!(exit, Exit::Finished);
    assert_eq!((outcome(&stand, 1), count(&stand, "user.message")), (OutcomeCode::Succeeded, 1));
    assert!(stand.model.requests().iter().any(|asked| asked["messages"].to_string().contains("called Ada")));
    assert_eq!(last(&stand).replies_heard, 1);
}

#[tokio::test]
async fn a_lost_call_waits_for_the_word_of_a_person_and_is_not_sent_again() {
    let mut stand = Stand::new(refund(), Refund::Loses).await;
    stand.replies = Some(Vec::new());
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Reply));
    assert_eq!(asked(&stand)[0].choices, ["happened", "did not happen", "stop"]);
    stand.replies = Some(vec![to(1, "q-1", "perhaps")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Reply));
    let refused = asked(&stand)[0].refused.clone().unwrap();
    assert!(refused.contains("\"perhaps\" is none of: happened, did not happen, stop"), "{refused}");
    stand.replies = Some(vec![to(1, "q-1", "perhaps"), to(2, "q-1", "did not happen")]);
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!((outcome(&stand, 3), stand.shop.effects().len()), (OutcomeCode::Succeeded, 1));
    assert_eq!(last(&stand).stray_replies, Vec::<String>::new());
}

#[tokio::test]
async fn a_question_beside_a_held_call_is_shown_with_it_and_parks_for_the_approval() {
    let mut stand = stand(&["Which order?", "May I?"]).await;
    let approvals = json!({"approvals": [
        { "toolId": "ask_user", "when": "text == 'May I?'", "action": "require_approval", "approver": "supervisor" },
    ]});
    stand.skill.policy = Some(serde_json::from_value(approvals).unwrap());
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Approval));
    let report = stand.reports().pop().unwrap().report;
    let waiting = report.projection.waiting_for.unwrap();
    assert_eq!(
        (report.projection.phase, waiting.questions[0].text.as_str()),
        (Phase::AwaitingApproval, "Which order?")
    );
    let call = waiting.call.unwrap();

    // The answer alone does not let it go on; both do.
    stand.replies = Some(vec![to(1, "q-1", "A-17")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Approval));
    assert_eq!(asked(&stand), []);
    stand.decided = vec![bloomery_crds::run::GivenDecision {
        call: call.id,
        digest: call.digest,
        approver: "supervisor".into(),
        verdict: ApprovalVerdict::Deny,
        by: "jane@acme.io".into(),
        reason: None,
    }];
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!((outcome(&stand, 3), count(&stand, "user.replied")), (OutcomeCode::Succeeded, 1));
}
