//! Tests of the lines that the operator logs for a Job, and of the Events that it publishes.

use super::*;
use crate::job::fixtures::log_lines::LogLines;
use bloomery_crds::outcome::OutcomeCode;

/// Reconciles the Job twice, with two operators that have just started: the second logs no line and publishes no Event again. Returns the
/// new lines and the Events.
async fn reconcile_twice(api: &FakeApi, lines: &LogLines) -> (Vec<String>, Vec<String>) {
    let known = lines.of_jobs().len();
    for _ in 0..2 {
        reconcile_once(api).await.unwrap();
    }
    (lines.of_jobs().split_off(known), api.events())
}

/// One line and one Event of the Job.
fn once(line: &str, event: &str) -> (Vec<String>, Vec<String>) {
    (vec![format!("INFO acme/refund: the Job {line}")], vec![format!("{event} of refund")])
}

/// The line and the Event of a wait for a person.
fn waits(reason: &str) -> (Vec<String>, Vec<String>) {
    once(&format!("waits: {reason}"), &format!("Warning {reason}"))
}

#[tokio::test]
async fn each_wait_the_start_and_the_end_of_a_job_have_one_line_and_one_event() {
    let lines = LogLines::capture();
    let api = FakeApi::default();
    put_job(&api);
    assert_eq!(reconcile_twice(&api, &lines).await, waits("SkillNotFound"));
    put_skill(&api);
    assert_eq!(reconcile_twice(&api, &lines).await, waits("ModelNotFound"));
    put_model(&api);
    api.change(MODEL, |model| model["status"] = Value::Null);
    assert_eq!(reconcile_twice(&api, &lines).await, waits("ModelNotReady"));
    put_model(&api);
    let quota = "pods \"refund-1-01234\" is forbidden: exceeded quota: small";
    api.refuse_creates(Some(json!({ "kind": "Status", "code": 403, "reason": "Forbidden", "message": quota })));
    assert_eq!(reconcile_twice(&api, &lines).await, waits("QuotaExceeded"));
    api.refuse_creates(None);
    let started = once("starts an attempt: refund-1-01234", "Normal Starting");
    assert_eq!(reconcile_twice(&api, &lines).await, started);
    let worker = json!({ "name": "worker", "state": { "waiting": { "reason": "ErrImagePull" } } });
    api.change(POD_1, |pod| pod["status"] = json!({ "phase": "Pending", "containerStatuses": [worker] }));
    assert_eq!(reconcile_twice(&api, &lines).await, waits("ImageUnavailable"));
    api.change(JOB, |job| job["status"]["phase"] = json!("Running"));
    let termination = message(1, PodEnd::Finished, Some(OutcomeCode::Succeeded));
    api.put(POD_1, stored(&ended_pod(1, 0, Some(termination))));
    assert_eq!(reconcile_twice(&api, &lines).await, once("has ended: Succeeded", "Normal Succeeded"));
    assert_eq!(api.get(JOB)["status"]["phase"], "Succeeded");
}
