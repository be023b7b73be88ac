use super::*;
use bloomery_crds::conditions::{Observation, put};
use bloomery_crds::v1alpha1::{Job, JobStatus};
use bloomery_testkit::api_server::ApiServer;
use rstest::rstest;

const JOB: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund";

#[rstest]
#[case::nothing(json!({ "a": 1, "b": { "c": [1] } }), json!({ "a": 1, "b": { "c": [1] } }), None)]
#[case::a_changed_field(json!({ "a": 1, "b": 2 }), json!({ "a": 1, "b": 3 }), Some(json!({ "b": 3 })))]
#[case::nested(json!({ "a": { "b": 1, "c": 2 } }), json!({ "a": { "b": 1, "c": 3 } }), Some(json!({ "a": { "c": 3 } })))]
#[case::a_removed_field(json!({ "a": { "b": 1 }, "c": 2 }), json!({ "c": 2 }), Some(json!({ "a": null })))]
#[case::a_new_object(json!({}), json!({ "a": { "b": 1 } }), Some(json!({ "a": { "b": 1 } })))]
#[case::a_list_is_one_value(json!({ "a": [1, 2] }), json!({ "a": [1] }), Some(json!({ "a": [1] })))]
#[case::a_value_becomes_an_object(json!({ "a": 1 }), json!({ "a": { "b": 1 } }), Some(json!({ "a": { "b": 1 } })))]
#[case::an_object_becomes_a_value(json!({ "a": { "b": 1 } }), json!({ "a": 1 }), Some(json!({ "a": 1 })))]
#[case::an_empty_object_is_new(json!(null), json!({}), Some(json!({})))]
#[case::null_is_absent(json!({ "a": {} }), json!({ "a": { "b": null } }), None)]
#[case::null_removes(json!({ "a": { "b": 1 } }), json!({ "a": { "b": null } }), Some(json!({ "a": { "b": null } })))]
fn only_what_differs_is_written(#[case] before: Value, #[case] after: Value, #[case] expected: Option<Value>) {
    assert_eq!(difference(&before, &after), expected);
}

/// A Job as a newer version stored it, and the API server that stores it.
fn stored(api: &ApiServer) -> Job {
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": "2027-01-15T08:00:00Z" });
    api.put(
        JOB,
        json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
            "metadata": { "namespace": "acme", "name": "refund", "uid": "u" },
            "spec": { "skill": "s", "goal": "g" },
            "status": {
                "phase": "Running", "cost": { "cents": 7 }, "attempt": { "number": 1, "pod": "p", "node": "n" },
                "conditions": [condition("Ready"), condition("BudgetKept")],
            },
        }),
    );
    serde_json::from_value(api.get(JOB)).unwrap()
}

fn statuses(api: &ApiServer) -> Statuses {
    Statuses::new(Client::new(api.router(), "default"), Arc::default())
}

fn changed(job: &Job) -> JobStatus {
    let mut status = job.status.clone().unwrap();
    let observed = Observation::fails(ConditionType::Ready, Reason::Running, "works");
    status.conditions = put(&status.conditions, &observed, Some(1), &Time(Timestamp::UNIX_EPOCH));
    status.attempt.as_mut().unwrap().epoch = Some(4);
    status
}

#[tokio::test]
async fn fields_and_conditions_of_a_newer_version_stay() {
    let api = ApiServer::default();
    let job = stored(&api);
    statuses(&api).replace(&job, changed(&job)).await.unwrap().unwrap();
    let status = api.get(JOB)["status"].clone();
    assert_eq!(status["cost"], json!({ "cents": 7 }));
    assert_eq!(status["attempt"], json!({ "number": 1, "pod": "p", "node": "n", "epoch": 4 }));
    let kinds: Vec<_> = status["conditions"].as_array().unwrap().iter().map(|condition| &condition["type"]).collect();
    assert_eq!(kinds, ["BudgetKept", "Ready"]);
}

#[tokio::test]
async fn an_unchanged_status_is_not_written() {
    let api = ApiServer::default();
    let job = stored(&api);
    assert!(statuses(&api).replace(&job, job.status.clone().unwrap()).await.unwrap().is_none());
    assert!(api.writes().is_empty());
}

#[tokio::test]
async fn a_status_that_another_writer_changed_is_a_conflict() {
    let api = ApiServer::default();
    let job = stored(&api);
    let statuses = statuses(&api);
    statuses.replace(&job, changed(&job)).await.unwrap();
    let mut late = job.status.clone().unwrap();
    late.replies_heard = Some(3);
    assert!(statuses.replace(&job, late).await.unwrap_err().is_conflict());
    assert!(api.get(JOB)["status"]["repliesHeard"].is_null());
}
