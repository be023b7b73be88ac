//! Jobs that invoke other Skills. The operator creates the children.

use super::*;
use bloomery_crds::children::{self, ChildProgress, ChildRequest, ChildState, MAX_DEPTH, VisibleSkill, WAIT_SECONDS};
use bloomery_crds::v1alpha1::Usage;
use serde_json::json;

/// Returns a stand whose model first calls `use_skill` with these arguments.
async fn stand(arguments: serde_json::Value) -> Stand {
    let script = [vec![Answer::Calls(vec![("use_skill", arguments)])], refund()].concat();
    let mut stand = Stand::new(script, Refund::Answers).await;
    stand.skill.skills = vec!["*".into()];
    let skill = |name: &str| VisibleSkill { name: name.into(), description: "Helps".into(), resources: Vec::new() };
    *stand.operator.skills.lock().unwrap() = ["alpha", "beta", "billing"].map(skill).to_vec();
    stand
}

async fn invoking() -> Stand {
    stand(json!({"action": "invoke", "name": "billing", "goal": "Refund A-17"})).await
}

/// Waits until the worker has requested a child. Returns the request.
async fn requested(stand: &Stand) -> ChildRequest {
    let is_requested = |received: &Received| !received.report.children.is_empty();
    let received = stand.operator.until_received(|received| received.iter().any(is_requested)).await;
    received.into_iter().find(is_requested).unwrap().report.children.remove(0)
}

fn ended(request: &ChildRequest) -> ChildState {
    let state = ChildProgress::Ended {
        code: OutcomeCode::Succeeded,
        message: "The answer passed every gate.".into(),
        text: Some("Three bills are open.".into()),
        fields: serde_json::Map::new(),
        usage: Usage { input_tokens: 900, ..Usage::default() },
    };
    ChildState { call: request.call.clone(), job: "refund-0".into(), state }
}

fn count(stand: &Stand, event: &str) -> usize {
    stand.events().iter().filter(|name| **name == event).count()
}

/// Returns whether a request to the model has a text.
fn model_read(stand: &Stand, text: &str) -> bool {
    stand.model.requests().iter().any(|request| request.to_string().contains(text))
}

#[tokio::test]
async fn the_answer_of_a_child_is_the_result_of_the_call() {
    let stand = invoking().await;
    let ends = async {
        let request = requested(&stand).await;
        stand.operator.children.send_replace(vec![ended(&request)]);
        request
    };
    let (exit, request) = tokio::join!(stand.run(1), ends);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
    assert_eq!((request.skill.as_str(), request.goal.as_str()), ("billing", "Refund A-17"));
    assert!(model_read(&stand, "Three bills are open."));
    let log = stand.log();
    let started = log.iter().find(|entry| entry.event.name() == "child.started").unwrap();
    let Event::ChildStarted { job, .. } = &started.event else { panic!("{started:?}") };
    assert_eq!(*job, children::name("refund", "cs-tier-1", "k-1", &request.call));
    let reports = stand.reports();
    let first = reports.iter().find(|received| !received.report.children.is_empty()).unwrap();
    assert_eq!(first.report.wait_seconds, WAIT_SECONDS);
    assert!(first.report.projection.log.events >= started.seq, "the start is durable before it is reported");
    let last = &reports.last().unwrap().report;
    assert_eq!((last.children.len(), last.projection.usage.children.unwrap().tokens), (0, 900));
}

#[tokio::test]
async fn a_child_that_takes_long_parks_the_job_and_the_next_attempt_goes_on() {
    let mut stand = invoking().await;
    stand.child_wait_seconds = Some(0);
    assert_eq!(stand.run(1).await, Exit::Parked(ParkReason::Children));
    let last = stand.reports().pop().unwrap().report;
    assert_eq!((last.end, last.wait_seconds), (Some(PodEnd::Parked(ParkReason::Children)), 0));
    assert_eq!(stand.termination(1).end, PodEnd::Parked(ParkReason::Children));
    let request = last.children[0].clone();
    stand.children = vec![ended(&request)];
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded);
    for name in ["tool.started", "child.started", "child.completed"] {
        let expected = if name == "tool.started" { 3 } else { 1 };
        assert_eq!(count(&stand, name), expected, "{name}");
    }
}

#[tokio::test]
async fn a_drain_parks_a_waiting_job_and_the_same_child_is_requested_again() {
    let mut stand = invoking().await;
    stand.child_wait_seconds = Some(3600);
    let stop = Stop::default();
    let drain = async {
        let request = requested(&stand).await;
        stop.request(StopReason::Drain);
        request
    };
    let (exit, request) = tokio::join!(stand.run_with(1, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Parked(ParkReason::Drain));
    assert_eq!(stand.reports().pop().unwrap().report.children, std::slice::from_ref(&request));
    stand.operator.children.send_replace(vec![ended(&request)]);
    assert_eq!(stand.run(2).await, Exit::Finished);
    let reports = stand.reports();
    let again = reports.iter().filter(|received| received.report.attempt == 2);
    assert!(again.flat_map(|received| &received.report.children).all(|other| *other == request));
    assert_eq!((count(&stand, "child.started"), outcome(&stand, 2)), (1, OutcomeCode::Succeeded));
}

#[tokio::test]
async fn a_cancellation_ends_a_waiting_job() {
    let mut stand = invoking().await;
    stand.child_wait_seconds = Some(3600);
    let stop = Stop::default();
    let cancel = async {
        let request = requested(&stand).await;
        stop.request(StopReason::Cancelled);
        request
    };
    let (exit, request) = tokio::join!(stand.run_with(1, Disk, stop.clone()), cancel);
    assert_eq!(exit.unwrap(), Exit::Finished);
    let outcome = stand.termination(1).outcome.unwrap();
    let job = children::name("refund", "cs-tier-1", "k-1", &request.call);
    let message = format!("The Job was cancelled. The Job {job} of the Skill billing had not ended.");
    assert_eq!((outcome.code, outcome.message), (OutcomeCode::Cancelled, message));
    assert!(stand.reports().pop().unwrap().report.children.is_empty(), "nothing waits for the child any more");
}

#[tokio::test]
async fn all_pages_of_skills_are_listed() {
    let stand = stand(json!({"action": "list"})).await;
    assert_eq!(stand.run(1).await, Exit::Finished);
    assert!(model_read(&stand, "- alpha: Helps") && model_read(&stand, "- billing: Helps"));
    assert_eq!((count(&stand, "tool.started"), count(&stand, "child.started")), (2, 0));
}

#[tokio::test]
async fn a_child_that_the_operator_refuses_is_a_failed_call() {
    let mut stand = invoking().await;
    let refused = ChildProgress::Refused { reason: "The Skill billing is not ready.".into() };
    let call = async {
        let request = requested(&stand).await;
        let state = ChildState { state: refused.clone(), ..ended(&request) };
        stand.operator.children.send_replace(vec![state]);
    };
    let (exit, ()) = tokio::join!(stand.run(1), call);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
    assert!(model_read(&stand, "Failed: The Skill billing is not ready."));
    // A Job that is too deep does not have the tool.
    stand.clear();
    stand.depth = MAX_DEPTH;
    assert_eq!(stand.run(1).await, Exit::Finished);
    assert_eq!(count(&stand, "child.started"), 0);
    let last = stand.log().into_iter().find(|entry| entry.event.name() == "tool.ruled").unwrap();
    assert!(format!("{last:?}").contains("there is no tool"), "{last:?}");
}
