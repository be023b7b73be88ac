//! Attempts whose Job a person cancels, and attempts of a namespace that is suspended.

use super::*;
use crate::fixture::desk::{Desk, Does};
use bloomery_crds::run::{BoundResource, ResourceSource};
use bloomery_crds::v1alpha1::ResourceType;
use bloomery_engine::event::Directive;
use bloomery_testkit::report_server::Reply;

const UNKNOWN: &str = "was sent and its answer is not known";

/// Whether the log says once, and nowhere else, what the operator said.
fn directed(stand: &Stand, directive: Directive) -> bool {
    let log = stand.log();
    let told: Vec<_> = log.iter().filter(|entry| entry.event.name() == "directive.received").collect();
    matches!(told.as_slice(), [entry] if entry.event == Event::DirectiveReceived { directive })
}

/// Runs the first attempt, and cancels once `moment` has come.
async fn cancelled(stand: &Stand, moment: impl Future<Output = ()>) -> Outcome {
    let stop = Stop::default();
    let cancel = async {
        moment.await;
        stop.request(StopReason::Cancelled);
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), cancel);
    assert_eq!(exit.unwrap(), Exit::Finished);
    assert!(directed(stand, Directive::Cancel), "{:?}", stand.events());
    assert_eq!(stand.events().last(), Some(&"finished"));
    let last = stand.reports().pop().unwrap().report;
    assert_eq!((last.end, last.projection.phase), (Some(PodEnd::Finished), Phase::Cancelled));
    let outcome = stand.termination(1).outcome.unwrap();
    assert_eq!((outcome.code, stand.record().outcome.as_ref()), (OutcomeCode::Cancelled, Some(&outcome)));
    outcome
}

#[tokio::test]
async fn a_request_to_the_model_is_dropped() {
    let mut script = refund();
    script.insert(1, Answer::HangsOnce);
    let stand = Stand::new(script, Refund::Answers).await;
    let outcome = cancelled(&stand, stand.model.until_requests(2)).await;
    assert_eq!(outcome.message, "The Job was cancelled.");
    assert_eq!(stand.events()[stand.events().len() - 3..], ["model.requested", "directive.received", "finished"]);
    // Another attempt has nothing to do.
    assert_eq!((stand.run(2).await, stand.model.request_count()), (Exit::Finished, 2));
}

#[tokio::test]
async fn a_call_with_effect_that_is_answered_in_time_is_known() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.patience.cancel_grace = Duration::from_mins(1);
    let stand = stand;
    let stop = Stop::default();
    let cancel = async {
        stand.shop.until_effects(1).await;
        stop.request(StopReason::Cancelled);
        stand.shop.let_go();
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), cancel);
    assert_eq!((exit.unwrap(), outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Cancelled));
    let events = stand.events();
    assert_eq!(
        events[events.len() - 4..],
        ["tool.started", "directive.received", "tool.completed", "finished"],
        "the second effect is not begun"
    );
    assert_eq!(stand.termination(1).outcome.unwrap().message, "The Job was cancelled.");
    assert_eq!(stand.shop.effects().len(), 1);
}

#[tokio::test]
async fn a_call_with_effect_that_outlasts_its_grace_is_named() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.patience.cancel_grace = Duration::ZERO;
    let stand = stand;
    let outcome = cancelled(&stand, stand.shop.until_effects(1)).await;
    assert!(outcome.message.contains("of refund") && outcome.message.contains(UNKNOWN), "{}", outcome.message);
    let events = stand.events();
    assert_eq!(
        events[events.len() - 5..],
        ["tool.started", "directive.received", "tool.indeterminate", "tool.skipped", "finished"]
    );
}

#[tokio::test]
async fn a_drain_that_was_asked_before_gives_way() {
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
async fn a_wait_for_an_mcp_server_ends() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.shop.unlisted.lock().unwrap() = u32::MAX;
    let waits = |taken: &Vec<Received>| taken.iter().any(|taken| taken.report.waiting.is_some());
    cancelled(&stand, async { drop(stand.operator.until_received(waits).await) }).await;
    assert!(stand.model.requests().is_empty());
}

#[tokio::test]
async fn a_wait_for_a_bound_secret_ends() {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    let file = KeyFile { path: "/nowhere".into(), secret: "ledger".into(), key: "dsn".into() };
    let source = ResourceSource::Secret(file);
    stand.resources = vec![BoundResource { name: "ledger".into(), kind: ResourceType::ConnectionString, source }];
    let stand = stand;
    let waits = |taken: &Vec<Received>| taken.iter().any(|taken| taken.report.waiting.is_some());
    cancelled(&stand, async { drop(stand.operator.until_received(waits).await) }).await;
    assert_eq!(stand.events(), ["epoch.started", "directive.received", "finished"]);
}

#[tokio::test]
async fn a_question_that_people_are_asked_is_taken_back() {
    let mut stand = Stand::new(refund(), Refund::Loses).await;
    let desk = std::sync::Arc::new(Desk::new(|_| Does::Thinks));
    stand.people = Some(desk.clone());
    let stand = stand;
    let outcome = cancelled(&stand, desk.until_asked(1)).await;
    assert!(outcome.message.contains(UNKNOWN), "{}", outcome.message);
}

#[tokio::test]
async fn a_job_that_parked_is_cancelled_by_the_next_worker_before_it_does_anything() {
    let stand = super::stopped::parked_after_the_reads().await;
    let (times, stop) = (stand.model.request_count(), Stop::default());
    stop.request(StopReason::Cancelled);
    assert_eq!(stand.run_with(2, Disk, stop).await.unwrap(), Exit::Finished);
    assert_eq!((outcome(&stand, 2), stand.model.request_count()), (OutcomeCode::Cancelled, times));
}

#[tokio::test]
async fn what_the_operator_says_reaches_the_run() {
    let mut script = refund();
    script.insert(1, Answer::HangsOnce);
    let stand = Stand::new(script, Refund::Answers).await;
    let said = async {
        stand.model.until_requests(2).await;
        stand.operator.answer_next(Reply::Cancel);
    };
    let (exit, ()) = tokio::join!(stand.run(1), said);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Cancelled));
    assert!(directed(&stand, Directive::Cancel));
}

#[tokio::test]
async fn a_call_under_way_when_the_skill_is_deleted_is_named() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.patience.cancel_grace = Duration::ZERO;
    let stand = stand;
    let said = async {
        stand.shop.until_effects(1).await;
        stand.operator.answer_next(Reply::SkillDeleted);
    };
    let (exit, ()) = tokio::join!(stand.run(1), said);
    let outcome = stand.termination(1).outcome.unwrap();
    assert_eq!((exit, outcome.code), (Exit::Finished, OutcomeCode::SkillDeleted));
    assert!(outcome.message.contains("of refund") && outcome.message.contains(UNKNOWN), "{}", outcome.message);
    assert!(directed(&stand, Directive::SkillDeleted));
    assert_eq!(stand.reports().pop().unwrap().report.projection.phase, Phase::Failed);
}

#[tokio::test]
async fn a_suspended_namespace_parks_the_run_and_it_goes_on_afterwards() {
    let mut script = refund();
    script.insert(1, Answer::HangsOnce);
    let stand = Stand::new(script, Refund::Answers).await;
    let said = async {
        stand.model.until_requests(2).await;
        stand.operator.answer_next(Reply::Park);
    };
    let (exit, ()) = tokio::join!(stand.run(1), said);
    assert_eq!(exit, Exit::Parked(ParkReason::Suspension));
    assert!(directed(&stand, Directive::Park));
    let last = stand.reports().pop().unwrap().report;
    assert_eq!((last.end, last.projection.phase), (Some(PodEnd::Parked(ParkReason::Suspension)), Phase::Queued));

    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!((outcome(&stand, 2), stand.shop.effects().len()), (OutcomeCode::Succeeded, 2));
    // Only the request that was dropped is made again.
    assert_eq!(stand.model.request_count(), 6);
}
