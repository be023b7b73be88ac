//! Runs whose Job is cancelled, whose Skill is deleted, or whose namespace is suspended.

use super::*;
use crate::fixture::desk::{Desk, Reaction};
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::ResourceType;
use bloomery_engine::event::Directive;
use bloomery_testkit::report_server::Reply;

const UNKNOWN: &str = "was sent and its answer is not known";

/// Returns whether the log has exactly one directive, and it is this one.
fn has_directive(stand: &Stand, directive: Directive) -> bool {
    let log = stand.log();
    let directives: Vec<_> = log.iter().filter(|entry| entry.event.name() == "directive.received").collect();
    matches!(directives.as_slice(), [entry] if entry.event == Event::DirectiveReceived { directive })
}

/// Runs the first attempt, and cancels the Job once `moment` is ready. Returns the outcome.
async fn run_and_cancel(stand: &Stand, moment: impl Future<Output = ()>) -> Outcome {
    let stop = Stop::default();
    let cancel = async {
        moment.await;
        stop.request(StopReason::Cancelled);
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), cancel);
    assert_eq!(exit.unwrap(), Exit::Finished);
    assert!(has_directive(stand, Directive::Cancel), "{:?}", stand.events());
    assert_eq!(stand.events().last(), Some(&"finished"));
    let last = stand.reports().pop().unwrap().report;
    assert_eq!((last.end, last.projection.phase), (Some(PodEnd::Finished), Phase::Cancelled));
    let outcome = stand.termination(1).outcome.unwrap();
    assert_eq!((outcome.code, stand.record().outcome.as_ref()), (OutcomeCode::Cancelled, Some(&outcome)));
    outcome
}

#[tokio::test]
async fn a_cancellation_drops_a_request_to_the_model() {
    let mut script = refund();
    script.insert(1, Answer::HangsOnce);
    let stand = Stand::new(script, Refund::Answers).await;
    let outcome = run_and_cancel(&stand, stand.model.until_requests(2)).await;
    assert_eq!(outcome.message, "The Job was cancelled.");
    assert_eq!(stand.events()[stand.events().len() - 3..], ["model.requested", "directive.received", "finished"]);
    // Another attempt does nothing.
    assert_eq!((stand.run(2).await, stand.model.request_count()), (Exit::Finished, 2));
}

#[tokio::test]
async fn the_outcome_of_an_effect_that_is_answered_in_time_is_recorded() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.patience.cancel_grace = Duration::from_mins(1);
    let stand = stand;
    let stop = Stop::default();
    let cancel = async {
        stand.shop.until_effects(1).await;
        stop.request(StopReason::Cancelled);
        stand.shop.answer_calls();
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), cancel);
    assert_eq!((exit.unwrap(), outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Cancelled));
    let events = stand.events();
    assert_eq!(
        events[events.len() - 4..],
        ["tool.started", "directive.received", "tool.completed", "finished"],
        "the second effect is not started"
    );
    assert_eq!(stand.termination(1).outcome.unwrap().message, "The Job was cancelled.");
    assert_eq!(stand.shop.effects().len(), 1);
}

#[tokio::test]
async fn the_outcome_names_an_effect_that_outlasts_its_grace() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.patience.cancel_grace = Duration::ZERO;
    let stand = stand;
    let outcome = run_and_cancel(&stand, stand.shop.until_effects(1)).await;
    assert!(outcome.message.contains("of refund") && outcome.message.contains(UNKNOWN), "{}", outcome.message);
    let events = stand.events();
    assert_eq!(
        events[events.len() - 5..],
        ["tool.started", "directive.received", "tool.indeterminate", "tool.skipped", "finished"]
    );
}

#[tokio::test]
async fn a_cancellation_replaces_an_earlier_drain() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.patience.cancel_grace = Duration::ZERO;
    let stand = stand;
    let stop = Stop::default();
    let both = async {
        stand.shop.until_effects(1).await;
        stop.request(StopReason::Drain);
        stop.request(StopReason::Suspended);
        stop.request(StopReason::Cancelled);
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), both);
    assert_eq!((exit.unwrap(), outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Cancelled));
    assert!(!stand.events().contains(&"parked"));
}

#[tokio::test]
async fn a_cancellation_ends_the_wait_for_an_mcp_server() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.shop.failing_lists.lock().unwrap() = u32::MAX;
    let waits = |received: &Vec<Received>| received.iter().any(|received| received.report.waiting.is_some());
    run_and_cancel(&stand, async { drop(stand.operator.until_received(waits).await) }).await;
    assert!(stand.model.requests().is_empty());
}

#[tokio::test]
async fn a_cancellation_ends_the_wait_for_a_secret() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    let file = KeyFile { path: "/nowhere".into(), secret: "ledger".into(), key: "dsn".into() };
    let source = ResourceSource::Secret(file);
    stand.resources = vec![BoundResource { name: "ledger".into(), kind: ResourceType::ConnectionString, source }];
    let stand = stand;
    let waits = |received: &Vec<Received>| received.iter().any(|received| received.report.waiting.is_some());
    run_and_cancel(&stand, async { drop(stand.operator.until_received(waits).await) }).await;
    assert_eq!(stand.events(), ["epoch.started", "directive.received", "finished"]);
}

#[tokio::test]
async fn a_cancellation_withdraws_a_question() {
    let mut stand = Stand::new(refund(), Refund::Loses).await;
    let desk = std::sync::Arc::new(Desk::new(|_| Reaction::NeverAnswers));
    stand.people = Some(desk.clone());
    let stand = stand;
    let outcome = run_and_cancel(&stand, desk.until_asked(1)).await;
    assert!(outcome.message.contains(UNKNOWN), "{}", outcome.message);
}

#[tokio::test]
async fn the_next_worker_cancels_a_parked_job_at_once() {
    let stand = super::stopped::parked_after_the_reads().await;
    let (times, stop) = (stand.model.request_count(), Stop::default());
    stop.request(StopReason::Cancelled);
    assert_eq!(stand.run_with(2, Disk, stop).await.unwrap(), Exit::Finished);
    assert_eq!((outcome(&stand, 2), stand.model.request_count()), (OutcomeCode::Cancelled, times));
}

#[tokio::test]
async fn a_directive_in_the_answer_to_a_report_reaches_the_run() {
    let mut script = refund();
    script.insert(1, Answer::HangsOnce);
    let stand = Stand::new(script, Refund::Answers).await;
    let directive = async {
        stand.model.until_requests(2).await;
        stand.operator.answer_next(Reply::Cancel);
    };
    let (exit, ()) = tokio::join!(stand.run(1), directive);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Cancelled));
    assert!(has_directive(&stand, Directive::Cancel));
}

#[tokio::test]
async fn the_outcome_names_a_call_that_ran_when_the_skill_was_deleted() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.patience.cancel_grace = Duration::ZERO;
    let stand = stand;
    let directive = async {
        stand.shop.until_effects(1).await;
        stand.operator.answer_next(Reply::SkillDeleted);
    };
    let (exit, ()) = tokio::join!(stand.run(1), directive);
    let outcome = stand.termination(1).outcome.unwrap();
    assert_eq!((exit, outcome.code), (Exit::Finished, OutcomeCode::SkillDeleted));
    assert!(outcome.message.contains("of refund") && outcome.message.contains(UNKNOWN), "{}", outcome.message);
    assert!(has_directive(&stand, Directive::SkillDeleted));
    assert_eq!(stand.reports().pop().unwrap().report.projection.phase, Phase::Failed);
}

#[tokio::test]
async fn a_suspended_namespace_parks_the_run_and_the_next_attempt_continues() {
    let mut script = refund();
    script.insert(1, Answer::HangsOnce);
    let stand = Stand::new(script, Refund::Answers).await;
    let directive = async {
        stand.model.until_requests(2).await;
        stand.operator.answer_next(Reply::Park);
    };
    let (exit, ()) = tokio::join!(stand.run(1), directive);
    assert_eq!(exit, Exit::Parked(ParkReason::Suspension));
    assert!(has_directive(&stand, Directive::Park));
    let last = stand.reports().pop().unwrap().report;
    assert_eq!((last.end, last.projection.phase), (Some(PodEnd::Parked(ParkReason::Suspension)), Phase::Queued));

    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), stand.shop.effects().len()), (OutcomeCode::Succeeded, 2));
    // Only the dropped request is repeated.
    assert_eq!(stand.model.request_count(), 6);
}
