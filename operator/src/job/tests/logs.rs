//! Tests of the lines that the operator logs for a Job.

use super::*;
use crate::job::fixtures::log_lines::LogLines;
use bloomery_crds::outcome::OutcomeCode;

/// Reconciles the Job twice, with two operators that have just started: the second logs no line again.
async fn reconcile_twice(api: &FakeApi) {
    for _ in 0..2 {
        reconcile_once(api).await.unwrap();
    }
}

#[tokio::test]
async fn each_wait_the_start_and_the_end_of_a_job_have_one_line() {
    let lines = LogLines::capture();
    let api = FakeApi::default();
    put_job(&api);
    reconcile_twice(&api).await;
    assert_eq!(lines.of_jobs(), ["INFO acme/refund: the Job waits: SkillNotFound"]);
    put_skill(&api);
    reconcile_twice(&api).await;
    assert_eq!(lines.of_jobs()[1..], ["INFO acme/refund: the Job waits: ModelNotFound"]);
    put_model(&api);
    reconcile_twice(&api).await;
    assert_eq!(lines.of_jobs()[2..], ["INFO acme/refund: the Job starts an attempt: refund-1-01234"]);
    api.change(JOB, |job| job["status"]["phase"] = json!("Running"));
    let termination = message(1, PodEnd::Finished, Some(OutcomeCode::Succeeded));
    api.put(POD_1, stored(&ended_pod(1, 0, Some(termination))));
    reconcile_twice(&api).await;
    assert_eq!(api.get(JOB)["status"]["phase"], "Succeeded");
    assert_eq!(lines.of_jobs()[3..], ["INFO acme/refund: the Job has ended: Succeeded"]);
}
