//! Tests of Jobs that invoke others.

use super::super::fixtures::{pod, status};
use super::*;
use bloomery_crds::children;
use bloomery_crds::v1alpha1::{ChildJob, RequestedChild};

const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs";
const REVIEWER: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/reviewer";

fn child_path() -> String {
    format!("{JOBS}/{}", children::name("refund", "cs-tier-1", UID, "c-1"))
}

fn requested() -> ChildJob {
    let request = RequestedChild { goal: "Review".into(), ..RequestedChild::default() };
    ChildJob { call: "c-1".into(), skill: "reviewer".into(), request: Some(request), ..ChildJob::default() }
}

/// The record of a child once it was created.
fn created() -> ChildJob {
    let name = Some(children::name("refund", "cs-tier-1", UID, "c-1"));
    ChildJob { name, phase: Some(Phase::Pending), request: None, ..requested() }
}

/// A Job in this phase with a record of a child. Its Skill may invoke these Skills, and the Skill `reviewer` is ready.
fn invoking(skills: &[&str], phase: Phase, child: ChildJob) -> FakeApi {
    let api = tenant();
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "skills": skills }), REVISION);
    let ready = json!({ "observedGeneration": 1, "conditions": [condition("Ready")] });
    api.put(REVIEWER, resource("Skill", "reviewer", &json!({ "problem": { "statement": "reviews" } }), &ready));
    put_status(&api, JobStatus { children: vec![child], ..status(1, phase) });
    if phase == Phase::Running {
        api.put(POD_1, stored(&sealed(pod(1, "Running"))));
    }
    api
}

/// Returns the created child with a status.
fn stored_child(api: &FakeApi, status: &Value) -> Value {
    let job = serde_json::from_value(api.get(JOB)).unwrap();
    let request = requested().request.unwrap();
    let mut child = crate::children::build::child_job(&job, ("c-1", "reviewer"), &request).unwrap();
    child.metadata.uid = Some("child-uid".into());
    let mut child = serde_json::to_value(child).unwrap();
    child["status"] = status.clone();
    child
}

/// Stores the created child with a status.
fn put_child(api: &FakeApi, status: &Value) {
    api.put(&child_path(), stored_child(api, status));
}

fn recorded(api: &FakeApi) -> ChildJob {
    serde_json::from_value(api.get(JOB)["status"]["children"][0].clone()).unwrap()
}

#[tokio::test]
async fn a_requested_child_is_created_once_also_after_a_crash() {
    let api = invoking(&["reviewer"], Phase::Running, requested());
    reconcile_once(&api).await.unwrap();
    let writes = [format!("create {}", child_path()), format!("status {JOB}")];
    assert_eq!((api.writes(), recorded(&api)), (writes.to_vec(), created()));
    let child = api.get(&child_path());
    assert_eq!((&child["spec"]["goal"], &child["spec"]["parent"]["call"]), (&json!("Review"), &json!("c-1")));
    assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], UID);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
    // The operator crashed before it wrote the status. The Skill of the child is not ready any more.
    api.change(JOB, |job| job["status"]["children"] = json!([requested()]));
    api.change(REVIEWER, |skill| skill["status"]["conditions"] = json!([]));
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), recorded(&api)), (writes[1..].to_vec(), created()));
    // A person has created another Job with the name.
    api.change(JOB, |job| job["status"]["children"] = json!([requested()]));
    api.change(&child_path(), |child| child["spec"]["parent"] = Value::Null);
    reconcile_once(&api).await.unwrap();
    assert!(recorded(&api).refused.unwrap().contains("another Job has the name of the child"));
}

#[tokio::test]
async fn a_child_that_is_deleted_is_created_again_once_it_is_gone() {
    let deleted: [fn(&mut Value); 2] = [
        |child| child["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        |child| child["metadata"]["ownerReferences"][0]["uid"] = json!("an-earlier-parent"),
    ];
    for delete in deleted {
        let api = invoking(&["reviewer"], Phase::Running, requested());
        put_child(&api, &json!({ "phase": "Running" }));
        api.change(&child_path(), delete);
        reconcile_once(&api).await.unwrap();
        assert_eq!(recorded(&api), requested());
        api.remove(&child_path());
        reconcile_once(&api).await.unwrap();
        assert_eq!(recorded(&api), created());
        assert_eq!(api.get(&child_path())["metadata"]["ownerReferences"][0]["uid"], UID);
    }
}

#[tokio::test]
async fn a_child_that_is_not_allowed_or_that_the_api_server_refuses_is_refused_with_the_reason() {
    let api = invoking(&["auditor"], Phase::Running, requested());
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let child = recorded(&api);
    assert!(child.refused.unwrap().contains("may not invoke reviewer") && child.request.is_none());
    let api = invoking(&["*"], Phase::Running, requested());
    api.refuse_creates(Some(json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "a policy of the cluster",
    })));
    reconcile_once(&api).await.unwrap();
    assert!(recorded(&api).refused.unwrap().contains("a policy of the cluster"));
    // The API server has stored the child before it refuses the repeated request.
    api.change(JOB, |job| job["status"]["children"] = json!([requested()]));
    api.meanwhile(&child_path(), stored_child(&api, &json!({ "phase": "Pending" })));
    reconcile_once(&api).await.unwrap();
    assert_eq!(recorded(&api), created());
}

#[tokio::test]
async fn a_job_that_is_cancelled_creates_no_child() {
    let api = invoking(&["*"], Phase::Running, requested());
    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.find(&child_path()), recorded(&api)), (None, requested()));
}

#[tokio::test]
async fn a_job_waits_without_a_pod_until_its_child_has_ended() {
    let api = invoking(&["*"], Phase::AwaitingJob, created());
    put_child(&api, &json!({ "phase": "Running" }));
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![], "AwaitingJob"));
    put_child(&api, &json!({ "phase": "AwaitingApproval" }));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let conditions = api.get(JOB)["status"]["conditions"].to_string();
    assert!(conditions.contains("waits for the approval of a call"), "{conditions}");
    let outcome = json!({ "code": "Succeeded", "message": "it passed" });
    let result = json!({ "text": "Looks good", "verified": true });
    put_child(&api, &json!({ "phase": "Succeeded", "outcome": outcome, "result": result }));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    let text = api.get(POD_2)["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap().to_owned();
    let part: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(part["children"][0]["state"]["ended"]["text"], "Looks good");
    assert_eq!(
        (api.get(JOB)["status"]["phase"].clone(), recorded(&api).phase),
        (json!("Starting"), Some(Phase::Succeeded))
    );
}

#[tokio::test]
async fn a_deleted_child_resumes_its_parent() {
    let api = invoking(&["*"], Phase::AwaitingJob, created());
    reconcile_once(&api).await.unwrap();
    let text = api.get(POD_2)["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap().to_owned();
    assert!(text.contains(r#""state":"deleted""#), "{text}");
}

#[tokio::test]
async fn a_child_that_is_deleted_after_its_end_is_created_again() {
    let api = invoking(&["reviewer"], Phase::AwaitingJob, ChildJob { phase: Some(Phase::Succeeded), ..created() });
    reconcile_once(&api).await.unwrap();
    assert_eq!((recorded(&api).name, recorded(&api).phase), (None, Some(Phase::Succeeded)));
    reconcile_once(&api).await.unwrap();
    assert!(api.find(POD_2).is_some(), "the worker requests the child again");
    let again = json!([ChildJob { phase: Some(Phase::Succeeded), ..requested() }]);
    api.change(JOB, |job| job["status"]["children"] = again.clone());
    reconcile_once(&api).await.unwrap();
    assert_eq!((recorded(&api), api.find(&child_path()).is_some()), (created(), true));
    // A child that has existed is deleted, and not refused, if it cannot be created again.
    api.remove(&child_path());
    api.change(JOB, |job| job["status"]["children"] = again);
    api.change(REVIEWER, |skill| skill["status"]["conditions"] = json!([]));
    reconcile_once(&api).await.unwrap();
    assert_eq!((recorded(&api), api.find(&child_path())), (created(), None));
}

#[tokio::test]
async fn a_child_whose_parent_has_ended_is_cancelled_before_it_starts() {
    let api = tenant();
    api.change(JOB, |job| job["spec"]["parent"] = json!({ "name": "gone", "uid": "u", "call": "c-1" }));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_eq!(api.get(JOB)["status"]["outcome"]["code"], "Cancelled");
}
