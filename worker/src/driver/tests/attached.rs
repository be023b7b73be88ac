//! Jobs that name the run key of an earlier Job of the same Skill.

use super::decision_inbox::{decision_on, parked, reported_hold};
use super::stopped::parked_after_the_reads;
use super::tampered::{allowed, approved, files, forge, refunds, started};
use super::*;
use bloomery_crds::report::HeldCallDetails;
use bloomery_crds::run::GivenReply;
use bloomery_crds::v1alpha1::ApprovalVerdict;
use rstest::rstest;
use serde_json::json;

/// Changes to another Job that names the run key.
fn change_job(stand: &mut Stand) {
    stand.is_key_named = true;
    stand.change_job();
}

fn last(stand: &Stand) -> bloomery_crds::report::Report {
    stand.reports().pop().unwrap().report
}

fn attached(stand: &Stand) -> Vec<String> {
    let job = |entry: Entry| match entry.event {
        Event::JobAttached { job } => Some(job),
        _ => None,
    };
    stand.log().into_iter().filter_map(job).collect()
}

async fn ended() -> Stand {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    stand.is_key_named = true;
    assert_eq!(stand.run(1).await, Exit::Finished);
    stand
}

#[tokio::test]
async fn the_outcome_of_an_ended_run_is_taken_over_and_nothing_is_run() {
    let mut stand = ended().await;
    let (effects, asked, first) = (stand.shop.effects(), stand.model.request_count(), last(&stand).projection);
    change_job(&mut stand);
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((stand.shop.effects(), stand.model.request_count()), (effects, asked));
    let second = last(&stand);
    assert_eq!(second.job.uid, "uid-j1");
    assert_eq!((&second.projection.outcome, &second.projection.result), (&first.outcome, &first.result));
    assert_eq!((attached(&stand), stand.events().last()), (vec!["uid-j0".to_owned()], Some(&"epoch.started")));
}

#[tokio::test]
async fn the_outcome_of_a_record_is_taken_over_if_the_log_was_deleted() {
    let mut stand = ended().await;
    let (asked, first) = (stand.model.request_count(), last(&stand).projection);
    fs::remove_dir_all(stand.memory().join("jobs/k-1")).unwrap();
    change_job(&mut stand);
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((stand.shop.effects().len(), stand.model.request_count()), (2, asked));
    let second = last(&stand).projection;
    assert_eq!((second.outcome, second.result, second.usage), (first.outcome, first.result, first.usage));
    assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded);
    assert!(!stand.memory().join("jobs/k-1").exists());
}

#[tokio::test]
async fn a_record_that_cannot_be_read_fails_the_attempt() {
    let mut stand = ended().await;
    fs::remove_dir_all(stand.memory().join("jobs/k-1")).unwrap();
    fs::write(stand.memory().join("jobs/k-1.json"), "{").unwrap();
    change_job(&mut stand);
    let error = stand.run_with(2, Disk, Stop::default()).await.unwrap_err().to_string();
    assert!(error.contains("cannot be read") && error.contains("another runKey"), "{error}");
    assert_eq!(stand.shop.effects().len(), 2);
}

#[tokio::test]
async fn an_unfinished_run_is_continued() {
    let mut stand = parked_after_the_reads().await;
    change_job(&mut stand);
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), stand.shop.effects().len()), (OutcomeCode::Succeeded, 2));
    // As if the first Job had continued: no request is repeated but the dropped one.
    assert_eq!((stand.model.request_count(), attached(&stand)), (6, vec!["uid-j1".to_owned()]));
}

/// The goal decides what the run does, so a Job never takes over the run of another goal.
#[rstest]
#[case::ended(true)]
#[case::unfinished(false)]
#[tokio::test]
async fn a_run_with_another_goal_is_refused_and_stays(#[case] has_ended: bool) {
    let mut stand = if has_ended { ended().await } else { parked_after_the_reads().await };
    let record = has_ended.then(|| stand.record());
    let (before, asked) = (files(&stand), stand.model.request_count());
    change_job(&mut stand);
    stand.goal = "Refund order A-18".into();
    assert_eq!(stand.run(2).await, Exit::Finished);
    let refused = last(&stand).projection;
    let message = refused.outcome.unwrap().message;
    assert!(message.contains("\"Refund order A-17\"") && message.contains("another runKey"), "{message}");
    assert_eq!((outcome(&stand, 2), refused.result), (OutcomeCode::UserNeeded, None));
    assert_eq!((files(&stand), stand.model.request_count()), (before, asked));
    assert_eq!(has_ended.then(|| stand.record()), record);
    if has_ended {
        fs::remove_dir_all(stand.memory().join("jobs/k-1")).unwrap();
        stand.run(3).await;
        assert_eq!((outcome(&stand, 3), last(&stand).projection.result), (OutcomeCode::UserNeeded, None));
    }
}

/// Approvals are bound to the UID of a Job, so those for an earlier Job do not count. They are not forged either.
#[rstest]
#[case::held(|_: &_| vec![])]
#[case::approved(|hold: &_| vec![approved(hold)])]
#[case::approved_and_allowed(|hold: &_| vec![approved(hold), allowed(hold)])]
#[tokio::test]
async fn people_are_asked_again_about_a_call_of_an_earlier_job(#[case] events: fn(&HeldCallDetails) -> Vec<Event>) {
    let (mut stand, hold) = parked().await;
    let events = events(&hold);
    if !events.is_empty() {
        forge(&stand, events);
    }
    change_job(&mut stand);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Approval));
    let again = reported_hold(&stand);
    assert_eq!((refunds(&stand), &again.call, &again.arguments), (0, &hold.call, &hold.arguments));
    stand.decided = vec![decision_on(&again, ApprovalVerdict::Approve)];
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!((refunds(&stand), outcome(&stand, 3)), (1, OutcomeCode::Succeeded));
}

/// The call may have happened, so a person decides, as after any lost worker.
#[tokio::test]
async fn a_call_that_an_earlier_job_has_started_is_not_sent_again() {
    let (mut stand, hold) = parked().await;
    forge(&stand, vec![approved(&hold), allowed(&hold), started(&hold)]);
    change_job(&mut stand);
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((refunds(&stand), outcome(&stand, 2)), (0, OutcomeCode::ToolIndeterminate));
}

#[tokio::test]
async fn an_approval_that_is_forged_for_the_attached_job_is_tampering() {
    let (mut stand, hold) = parked().await;
    change_job(&mut stand);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Approval));
    forge(&stand, vec![approved(&hold)]);
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!((refunds(&stand), outcome(&stand, 3)), (0, OutcomeCode::LogTampered));
}

/// Somebody who can write to the log may pretend that another Job was attached. The forged approval does not count either way.
#[tokio::test]
async fn a_forged_attachment_makes_no_call() {
    let (mut stand, hold) = parked().await;
    change_job(&mut stand);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Approval));
    forge(&stand, vec![approved(&hold), allowed(&hold), Event::JobAttached { job: "uid-x".into() }]);
    assert_eq!(stand.run(3).await, Exit::Parked(ParkReason::Approval));
    assert_eq!(refunds(&stand), 0);
}

/// The replies of a Job are numbered from 1, so those of an earlier Job do not count as read.
#[tokio::test]
async fn the_first_reply_of_the_new_job_is_read() {
    let ask = Answer::Calls(vec![
        ("ask_user", json!({ "text": "Which order?" })),
        ("ask_user", json!({ "text": "Which shop?" })),
    ]);
    let mut stand = Stand::new([vec![ask], refund()].concat(), Refund::Answers).await;
    let reply = |nth, question: &str| GivenReply { nth, question: Some(question.into()), text: "A-17".into() };
    stand.replies = Some(Vec::new());
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Reply));
    stand.replies = Some(vec![reply(1, "q-1")]);
    assert_eq!(stand.run(2).await, Exit::Parked(ParkReason::Reply));
    change_job(&mut stand);
    assert_eq!(stand.run(3).await, Exit::Parked(ParkReason::Reply));
    assert_eq!(last(&stand).projection.replies_heard, 0);
    stand.replies = Some(vec![reply(1, "q-2")]);
    assert_eq!(stand.run(4).await, Exit::Finished);
    assert_eq!((outcome(&stand, 4), last(&stand).projection.replies_heard), (OutcomeCode::Succeeded, 1));
    assert_eq!(attached(&stand), ["uid-j1"], "a later attempt of the same Job does not attach it again");
}

/// A restore may give a Job another name or namespace.
#[tokio::test]
async fn the_log_of_a_job_with_another_name_is_continued() {
    let mut stand = parked_after_the_reads().await;
    let segments = stand.memory().join("jobs/k-1");
    for entry in fs::read_dir(&segments).unwrap() {
        let file = entry.unwrap().path();
        fs::remove_file(file).unwrap();
    }
    let mut chain = bloomery_engine::line::Chain::new("/namespaces/prod/skilljobs/refund-before/k-1");
    let stamp = bloomery_engine::line::EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 0 };
    let started = Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false };
    let line = chain.append(started, stamp).unwrap().0 + "\n";
    fs::write(segments.join(bloomery_journal::segment::name(1)), line).unwrap();
    let unnamed = stand.run_with(2, Disk, Stop::default()).await.unwrap_err().to_string();
    assert!(unnamed.contains("belongs to /namespaces/prod/skilljobs/refund-before/k-1"), "{unnamed}");
    change_job(&mut stand);
    assert_eq!(stand.run(3).await, Exit::Finished);
    assert_eq!(outcome(&stand, 3), OutcomeCode::Succeeded);
}
