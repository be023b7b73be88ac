//! People who decide and answer while the worker runs, and runs without people.

use super::*;
use crate::fixture::desk::{Desk, Reaction};
use bloomery_engine::event::QuestionId;
use bloomery_engine::line::Entry;
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use bloomery_testkit::sample;
use rstest::rstest;
use serde_json::json;
use std::sync::Arc;

/// Returns a stand in which refunds need an approval, and the model first asks a question.
async fn stand(refund: Refund, desk: Desk) -> (Stand, Arc<Desk>) {
    let script = vec![
        Answer::Calls(vec![("ask_user", json!({ "text": "Which order?" })), ("lookup", json!({ "order": "A-17" }))]),
        Answer::Calls(vec![("refund", json!({ "amount": 20 })), ("notify", json!({ "order": "A-17" }))]),
        Answer::Says("Refunded.\n```json\n{\"status\": \"refunded\"}\n```\n"),
    ];
    let mut stand = Stand::new(script, refund).await;
    require_approval_of_refunds(&mut stand);
    let desk = Arc::new(desk);
    stand.people = Some(Arc::clone(&desk));
    (stand, desk)
}

fn require_approval_of_refunds(stand: &mut Stand) {
    // The server lists no arguments.
    let approvals = json!({"allowUnmatched": true, "approvals": [
        { "toolId": "refund", "when": "amount > 10", "action": "require_approval", "approver": "supervisor" },
    ]});
    stand.skill.policy = Some(serde_json::from_value(approvals).unwrap());
}

/// What people are asked in the run without interruptions: the model's question, and the held call.
const QUESTIONS: [&str; 2] = ["Which order?", "refund"];

#[tokio::test]
async fn people_are_asked_while_the_worker_runs_and_their_time_is_not_work() {
    let (stand, desk) = stand(Refund::Answers, Desk::approving().slow(Duration::from_millis(200))).await;
    assert!(run_and_measure_idle_time(&stand).await >= Duration::from_millis(400));
    assert_eq!((outcome(&stand, 1), desk.asked()), (OutcomeCode::Succeeded, QUESTIONS.map(str::to_owned).to_vec()));
    assert_eq!(stand.shop.effects().len(), 2);
    let count = |name: &str| stand.events().iter().filter(|event| **event == name).count();
    assert_eq!((count("user.replied"), count("tool.approved"), count("parked")), (1, 1, 0));
    // A report says that the Job waits for a person.
    let awaiting = |received: &Received| received.report.projection.phase == Phase::AwaitingApproval;
    assert!(stand.reports().iter().any(awaiting));
}

#[tokio::test]
async fn without_people_a_held_call_parks_and_the_model_cannot_ask_questions() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    require_approval_of_refunds(&mut stand);
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Approval));
    assert_eq!(stand.events()[stand.events().len() - 2..], ["tool.held", "parked"]);
    assert_eq!(stand.termination(1).end, PodEnd::Parked(ParkReason::Approval));
    assert_eq!(stand.shop.effects().len(), 0);
    let tools = stand.model.requests()[0]["tools"].clone();
    assert!(!tools.to_string().contains("ask_user"), "{tools}");
}

#[rstest]
#[case::at_a_question(1, ParkReason::Reply)]
#[case::at_a_held_call(2, ParkReason::Approval)]
#[tokio::test]
async fn people_who_leave_park_the_job_and_later_people_are_asked_again(
    #[case] leaves_at: usize,
    #[case] reason: ParkReason,
) {
    let (mut stand, desk) = stand(Refund::Answers, Desk::new(|_| Reaction::Leaves)).await;
    if leaves_at == 2 {
        stand.people = None;
        drop(desk);
        let desk = Desk::new(|asks| match &asks[0] {
            HumanRequest::Question(open) => Reaction::Answers(Statement::Reply {
                question: open.question.id.clone(),
                text: "A-17".into(),
                by: "jane".into(),
                nth: None,
            }),
            HumanRequest::Approval(_) => Reaction::Leaves,
        });
        stand.people = Some(Arc::new(desk));
    }
    assert_eq!(stand.run(1).await, Exit::Parked(reason));
    let (asked, effects) = (stand.model.request_count(), stand.shop.effects().len());
    assert_eq!(effects, 0);
    let later = Arc::new(Desk::approving());
    stand.people = Some(Arc::clone(&later));
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!(
        (outcome(&stand, 2), later.asked()),
        (OutcomeCode::Succeeded, QUESTIONS.map(str::to_owned)[leaves_at - 1..].to_vec())
    );
    // Three answers of the main loop, the ruling and the polish, each requested once.
    assert_eq!((asked, stand.model.request_count(), stand.shop.effects().len()), (leaves_at, 5, 2));
}

#[rstest]
#[case::at_a_question(1)]
#[case::at_a_held_call(2)]
#[tokio::test]
async fn a_drain_while_a_person_is_asked_parks_at_once(#[case] at: usize) {
    let react = move |asks: &[HumanRequest<'_>]| match (&asks[0], at) {
        (HumanRequest::Question(open), 2) => Reaction::Answers(Statement::Reply {
            question: open.question.id.clone(),
            text: "A-17".into(),
            by: "jane".into(),
            nth: None,
        }),
        _ => Reaction::NeverAnswers,
    };
    let (mut stand, desk) = stand(Refund::Answers, Desk::new(react)).await;
    let stop = Stop::default();
    let drain = async {
        desk.until_asked(at).await;
        stop.request(StopReason::Drain);
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Parked(ParkReason::Drain));
    stand.people = Some(Arc::new(Desk::approving()));
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), stand.shop.effects().len()), (OutcomeCode::Succeeded, 2));
}

#[tokio::test]
async fn unasked_statements_are_recorded_between_requests() {
    let (stand, desk) = stand(Refund::Answers, Desk::approving()).await;
    let by = || "jane".to_owned();
    *desk.unasked.lock().unwrap() = vec![
        Statement::Message { text: "be quick".into(), by: by(), nth: None },
        Statement::Reply { question: QuestionId::new(9), text: "to nobody".into(), by: by(), nth: None },
    ];
    assert_eq!(stand.run(1).await, Exit::Finished);
    assert_eq!(outcome(&stand, 1), OutcomeCode::Succeeded);
    let first = stand.model.requests()[0]["messages"].clone();
    assert!(first.to_string().contains("be quick"), "{first}");
    assert_eq!(stand.events().iter().filter(|event| **event == "user.replied").count(), 2);
}

#[tokio::test]
async fn a_lost_call_is_asked_about_and_not_sent_again() {
    let (stand, desk) = stand(Refund::Loses, Desk::approving()).await;
    assert_eq!(stand.run(1).await, Exit::Finished);
    // The answer to the later call of `notify` is lost, too.
    let lost = desk.asked().into_iter().filter(|asked| asked.contains("its answer was lost")).count();
    assert_eq!((outcome(&stand, 1), stand.shop.effects().len(), lost), (OutcomeCode::Succeeded, 2, 2));
}

async fn operations_of_a_run() -> u32 {
    let (stand, _) = stand(Refund::Answers, Desk::approving()).await;
    let files = Faulty::default();
    let operations = files.operations.clone();
    stand.run_with(1, files, Stop::default()).await.unwrap();
    operations.get()
}

/// Some of the kills are between the approval and the start of the call, and between its start and its outcome.
#[tokio::test]
async fn after_a_kill_at_any_operation_no_call_runs_unapproved_or_twice_and_nobody_decides_twice() {
    let operations = Box::pin(operations_of_a_run()).await;
    let (mut inside, mut between) = (0, 0);
    for fault in [Fault::KillBefore, Fault::KillAfter] {
        for at in (0..operations).step_by(sample::distance()) {
            let (mut stand, first) = stand(Refund::Answers, Desk::approving()).await;
            let _ = stand.run_with(1, Faulty::killed(at, fault), Stop::default()).await;
            let left = stand.log();
            let effects = stand.shop.effects().len();
            let has = |name: &str| left.iter().any(|entry| entry.event.name() == name);
            assert!(effects == 0 || has("tool.approved"), "{fault:?} at {at}: a call ran without an approval");
            let is_inside = left.last().is_some_and(|entry| matches!(entry.event, Event::ToolStarted { .. }));
            inside += u32::from(is_inside);
            between += u32::from(left.last().is_some_and(|entry| matches!(entry.event, Event::ToolApproved { .. })));

            let second = Arc::new(Desk::approving());
            stand.people = Some(Arc::clone(&second));
            assert_eq!(stand.run(2).await, Exit::Finished, "{fault:?} at {at}");
            let log = stand.log();
            assert_eq!(log[..left.len()], left, "{fault:?} at {at}: acknowledged events changed");
            assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded, "{fault:?} at {at}");
            let effects = stand.shop.effects();
            let unique: std::collections::BTreeSet<_> = effects.iter().collect();
            assert_eq!(unique.len(), effects.len(), "{fault:?} at {at}: {effects:?}");
            // A person decides whether a lost call has happened.
            let asked = second.asked().iter().any(|asked| asked.contains("its answer was lost"));
            assert_eq!(asked, is_inside, "{fault:?} at {at}");
            assert!(effects.len() == 2 || is_inside, "{fault:?} at {at}: {effects:?}");
            let decided = |log: &[Entry]| log.iter().filter(|entry| entry.event.name() == "tool.approved").count();
            assert_eq!(decided(&log), 1, "{fault:?} at {at}");
            if decided(&left) == 1 {
                assert!(!second.asked().contains(&"refund".to_owned()), "{fault:?} at {at}: asked again");
            }
            drop(first);
        }
    }
    assert!(inside > 0 && between > 0, "{inside} {between}");
}
