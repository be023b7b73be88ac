//! Tests of Jobs that name their run key, and of restored Jobs.

use super::*;

const OTHER: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/other";

fn name_key(api: &FakeApi) {
    api.change(JOB, |job| job["spec"]["runKey"] = json!("nightly"));
}

fn part(api: &FakeApi, pod: &str) -> Value {
    serde_json::from_str(api.get(pod)["metadata"]["annotations"]["bloomery.dev/job-part"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn the_pod_gets_the_named_run_key() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    assert_eq!((&part(&api, POD_1)["runKey"], &part(&api, POD_1)["namedRunKey"]), (&json!(UID), &Value::Null));
    let api = tenant();
    name_key(&api);
    reconcile_once(&api).await.unwrap();
    let (part, pod) = (part(&api, POD_1), api.get(POD_1));
    assert_eq!((&part["runKey"], &part["namedRunKey"]), (&json!("nightly"), &json!(true)));
    assert_eq!(part["job"]["uid"], UID, "approvals and reports belong to the UID");
    assert_eq!(pod["metadata"]["labels"][names::LABEL_RUN_KEY], "nightly");
}

#[tokio::test]
async fn a_key_in_use_is_a_wait_without_a_request_for_the_pod() {
    let api = tenant();
    name_key(&api);
    let spec = json!({ "skill": "cs-tier-1", "goal": "Refund", "runKey": "nightly" });
    let attempt = json!({ "number": 1, "pod": "other-1-other" });
    api.put(OTHER, resource("Job", "other", &spec, &json!({ "phase": "AwaitingApproval", "attempt": attempt })));
    api.reads();
    let action = reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "RunKeyInUse"));
    assert_eq!(action, Action::requeue(Duration::from_secs(10)));
    let reads = api.reads();
    assert!(!reads.iter().any(|read| read.contains("/configmaps/")), "{reads:?}");
    api.change(OTHER, |job| job["status"]["phase"] = json!("Succeeded"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

#[tokio::test]
async fn a_key_is_in_use_until_the_pod_of_the_deleted_job_has_ended() {
    let api = tenant();
    name_key(&api);
    let mut pod = stored(&sealed(fixtures::pod(1, "Running")));
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!("refund-1-gone");
    metadata["ownerReferences"][0]["uid"] = json!("gone-uid");
    metadata["labels"][names::LABEL_SKILL] = json!("cs-tier-1");
    metadata["labels"][names::LABEL_RUN_KEY] = json!("nightly");
    api.put("/api/v1/namespaces/acme/pods/refund-1-gone", pod);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "RunKeyInUse");
    api.change("/api/v1/namespaces/acme/pods/refund-1-gone", |pod| pod["status"]["phase"] = json!("Succeeded"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

#[tokio::test]
async fn a_restored_job_waits_for_its_key() {
    let api = tenant();
    api.change(JOB, |job| job["metadata"]["labels"] = json!({ names::LABEL_RESTORED: "monday" }));
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "RestoredWithoutRunKey"));
    name_key(&api);
    reconcile_once(&api).await.unwrap();
    assert_eq!((reason(&api).as_str(), &part(&api, POD_1)["runKey"]), ("Starting", &json!("nightly")));
    // A started Job never waits for a key again.
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

/// The restore wrote the status of the Job in the backup too.
#[tokio::test]
async fn a_restored_job_with_an_attempt_of_another_uid_starts_no_pod() {
    let api = tenant();
    let (parked, own) = (json!("refund-1-old00"), json!(names::worker_pod("refund", 1, UID)));
    api.change(JOB, |job| {
        job["metadata"]["labels"] = json!({ names::LABEL_RESTORED: "monday" });
        job["status"] = json!({ "phase": "Queued", "attempt": { "number": 1, "pod": parked } });
    });
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "RestoredWithoutRunKey"));
    let conditions = api.get(JOB)["status"]["conditions"].to_string();
    assert!(conditions.contains("Create it again without its status, and with spec.runKey"), "{conditions}");
    // A Job that a restore has found and labelled goes on.
    api.change(JOB, |job| job["status"]["attempt"]["pod"] = own);
    reconcile_once(&api).await.unwrap();
    assert_eq!(part(&api, POD_2)["runKey"], UID);
}

/// A person set the key after the operator had created the pod, and before it recorded the attempt.
#[tokio::test]
async fn a_pod_of_another_run_key_is_replaced() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    api.change(JOB, |job| job["status"] = json!({ "observedGeneration": -1 }));
    name_key(&api);
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_1}"), format!("delete {POD_1}")]);
    reconcile_once(&api).await.unwrap();
    assert_eq!(part(&api, POD_1)["runKey"], "nightly");
    assert_eq!(api.get(JOB)["status"]["attempt"]["number"], 1);
}

#[tokio::test]
async fn a_follow_up_finds_the_log_by_the_run_key_of_the_continued_job() {
    let api = tenant();
    api.change(JOB, |job| job["spec"]["continues"] = json!("refund-0"));
    let spec = json!({ "skill": "cs-tier-1", "goal": "Refund", "runKey": "daily" });
    api.put(CONTINUED, resource("Job", "refund-0", &spec, &json!({ "phase": "Succeeded" })));
    reconcile_once(&api).await.unwrap();
    let status = api.get(JOB)["status"].clone();
    assert_eq!((&status["continuedUID"], &status["continuedRunKey"]), (&json!("refund-0-uid"), &json!("daily")));
    assert_eq!(part(&api, POD_1)["continues"], json!({ "name": "refund-0", "runKey": "daily" }));
    api.remove(CONTINUED);
    api.remove(POD_1);
    api.change(JOB, |job| job["status"]["phase"] = json!("Queued"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(part(&api, POD_2)["continues"], json!({ "name": "refund-0", "runKey": "daily" }));
}
