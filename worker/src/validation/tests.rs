//! Attempts of a Job that validates its Skill.

use crate::driver::Exit;
use crate::fixture::shop::Refund;
use crate::fixture::stand::Stand;
use crate::stop::{Stop, StopReason};
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::ParkReason;
use bloomery_journal::files::Disk;
use bloomery_testkit::recording_model::Answer;
use rstest::rstest;
use serde_json::json;
use std::fs;

/// Answers that the judging model of the stand passes and fails.
const PASSES: &str = "It says so.";
const FAILS: &str = "I think so.";

/// Returns a stand of a Job that validates a Skill with the features `one` and `two`.
async fn stand(answer: &'static str) -> Stand {
    let mut stand = Stand::new(vec![Answer::Says(answer); 8], Refund::Answers).await;
    let feature =
        |name: &str| json!({"name": name, "testScenario": "When asked, then say so", "expectedResult": "It says so"});
    stand.skill.features = serde_json::from_value(json!([feature("one"), feature("two")])).unwrap();
    stand.skill.output_contract = None;
    stand.validates = true;
    stand
}

#[rstest]
#[case::passing(PASSES, OutcomeCode::Succeeded)]
#[case::failing(FAILS, OutcomeCode::FeatureFailed)]
#[tokio::test]
async fn each_feature_is_tested_in_an_empty_memory(#[case] answer: &'static str, #[case] code: OutcomeCode) {
    let stand = stand(answer).await;
    assert_eq!(stand.run(1).await, Exit::Finished);
    assert_eq!(stand.events(), ["epoch.started", "feature.tested", "feature.tested", "finished"]);
    assert_eq!(stand.termination(1).outcome.unwrap().code, code);
    let projection = stand.reports().pop().unwrap().report.projection;
    let names: Vec<&str> = projection.features.iter().map(|result| result.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    for result in &projection.features {
        assert_eq!(result.passed, code == OutcomeCode::Succeeded);
        assert_eq!(result.reason.is_some(), !result.passed);
    }
    let requests = &projection.usage.llm_calls;
    assert!(requests.plan >= 2 && requests.finalization >= 2 && requests.polish == 0, "{requests:?}");
    assert_eq!(fs::read_dir(stand.dir.path().join("scratch")).unwrap().count(), 0);
    let jobs = fs::read_dir(stand.memory().join("jobs")).unwrap().count();
    assert_eq!(jobs, 2, "the memory of the Skill has only the log and the record of the Job");
}

#[tokio::test]
async fn each_feature_is_tested_as_often_as_its_skill_says() {
    let mut stand = stand(PASSES).await;
    stand.skill.engine.get_or_insert_default().validation = serde_json::from_value(json!({"runs": 2})).unwrap();
    assert_eq!(stand.run(1).await, Exit::Finished);
    let tested = "feature.tested";
    assert_eq!(stand.events(), ["epoch.started", tested, tested, tested, tested, "finished"]);
    let projection = stand.reports().pop().unwrap().report.projection;
    let results: Vec<_> = projection.features.iter().map(|result| (result.name.as_str(), result.passed)).collect();
    assert_eq!(results, [("one", true), ("two", true)]);
    assert_eq!(projection.usage.llm_calls.plan, 4);
}

#[tokio::test]
async fn the_next_attempt_tests_only_the_features_without_a_result() {
    let stand = stand(PASSES).await;
    // The third request is that of the second test.
    *stand.model.silent_at.lock().unwrap() = Some(3);
    let stop = Stop::default();
    let drain = async {
        stand.model.until_requests(3).await;
        stop.request(StopReason::Drain);
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Parked(ParkReason::Drain));
    assert_eq!(stand.events(), ["epoch.started", "feature.tested", "parked"]);
    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!(stand.events()[3..], ["epoch.started", "feature.tested", "finished"]);
    assert_eq!(stand.model.request_count(), 5);
    assert_eq!(stand.termination(2).outcome.unwrap().code, OutcomeCode::Succeeded);
}

#[tokio::test]
async fn a_cancelled_validation_ends() {
    let stand = stand(PASSES).await;
    let stop = Stop::default();
    stop.request(StopReason::Cancelled);
    assert_eq!(stand.run_with(1, Disk, stop).await.unwrap(), Exit::Finished);
    assert_eq!(stand.events(), ["epoch.started", "directive.received", "finished"]);
    assert_eq!(stand.termination(1).outcome.unwrap().code, OutcomeCode::Cancelled);
    assert_eq!(stand.model.request_count(), 0);
}
