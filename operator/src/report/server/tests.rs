//! The real router, over an API server in memory.

use super::*;
use crate::job::fixtures::api::FakeApi;
use crate::job::fixtures::{self, UID, pod_uid, status};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use bloomery_crds::outcome::Phase;
use bloomery_crds::v1alpha1::Job;
use serde_json::{Value, json};
use tower::ServiceExt;

const JOB: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund";

fn vouch(api: &FakeApi, namespace: &str, pod_uid: &str) {
    api.review_tokens(json!({
        "authenticated": true,
        "audiences": ["bloomery"],
        "user": {
            "username": format!("system:serviceaccount:{namespace}:cs-tier-1-worker"),
            "extra": { "authentication.kubernetes.io/pod-uid": [pod_uid] },
        },
    }));
}

fn store(api: &FakeApi, job: &Job) {
    let mut job = serde_json::to_value(job).unwrap();
    job["status"]["attempt"]["podUID"] = json!(pod_uid(1));
    api.put(JOB, job);
}

fn starting() -> FakeApi {
    let api = FakeApi::default();
    vouch(&api, "acme", &pod_uid(1));
    store(&api, &Job { status: Some(status(1, Phase::Starting)), ..fixtures::job() });
    api
}

async fn endpoint(api: &FakeApi) -> Router {
    router(Arc::new(Service::new(api.operator().await)))
}

async fn post(router: &Router, body: impl Into<Body>) -> (u16, Value) {
    let request = Request::post(PATH).header("authorization", "Bearer token").body(body.into()).unwrap();
    answer(router, request).await
}

async fn answer(router: &Router, request: Request<Body>) -> (u16, Value) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

fn report(events: u64, phase: Phase) -> String {
    serde_json::to_string(&fixtures::report(1, 1, events, phase)).unwrap()
}

fn acked(ack: u64) -> (u16, Value) {
    (200, json!({ "ack": ack }))
}

#[tokio::test]
async fn a_conversation_of_a_moment_is_two_writes() {
    let api = starting();
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
    // Nothing that a person waits for: it comes with the next write.
    assert_eq!(post(&router, report(5, Phase::Running)).await, acked(3));
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
    assert_eq!(post(&router, report(9, Phase::Succeeded)).await, acked(9));
    assert_eq!(post(&router, report(9, Phase::Succeeded)).await, acked(9));
    assert_eq!(api.writes().len(), 2);
    let status = &api.get(JOB)["status"];
    assert_eq!((&status["phase"], &status["log"]["events"]), (&json!("Succeeded"), &json!(9)));
}

#[tokio::test]
async fn what_somebody_else_wrote_meanwhile_is_kept() {
    let api = starting();
    let router = endpoint(&api).await;
    let mut other = api.get(JOB);
    other["status"]["conditions"] = json!([
        { "type": "example.com/Audited", "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" },
    ]);
    api.meanwhile(JOB, other);
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
    let conditions = api.get(JOB)["status"]["conditions"].clone();
    assert!(conditions.as_array().unwrap().iter().any(|condition| condition["type"] == "example.com/Audited"));
    assert_eq!(api.writes().len(), 2, "one was refused");
}

#[tokio::test]
async fn a_pod_may_report_before_it_is_recorded() {
    let api = starting();
    let recorded = api.get(JOB);
    api.change(JOB, |job| job["status"] = Value::Null);
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await.0, 409);
    api.put(JOB, recorded);
    // The cache of this replica learns nothing more: the Job is asked for.
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
}

#[tokio::test]
async fn who_may_not_report_is_told_why() {
    let api = starting();
    let router = endpoint(&api).await;
    vouch(&api, "other", &pod_uid(1));
    let (status, body) = post(&router, report(3, Phase::Running)).await;
    assert_eq!(status, 403);
    assert!(body["error"].as_str().unwrap().contains("namespace other"), "{body}");
    assert_eq!((api.reads(), api.writes()), (vec![], vec![]), "nothing of another tenant is even looked at");
}

#[tokio::test]
async fn a_job_of_no_possible_name_is_not_asked_for() {
    let api = starting();
    let router = endpoint(&api).await;
    for (named, instead) in [
        ("\"namespace\":\"acme\"", "\"namespace\":\"acme/../other\""),
        ("\"name\":\"refund\"", "\"name\":\"refund/status\""),
        ("\"name\":\"refund\"", "\"name\":\"\""),
        (UID, "0123-"),
    ] {
        let body = report(3, Phase::Running);
        assert!(body.contains(named), "{body}");
        let (status, answer) = post(&router, body.replace(named, instead)).await;
        assert_eq!(status, 422, "{answer}");
        assert!(answer["error"].as_str().unwrap().contains("DNS label"), "{answer}");
    }
    assert_eq!((api.reads(), api.reviews()), (vec![], 0));
}

#[tokio::test]
async fn another_pod_may_report_only_in_the_place_of_the_recorded_one() {
    let api = starting();
    vouch(&api, "acme", "copy");
    let path = "/api/v1/namespaces/acme/pods/refund-1-01234";
    api.put(path, serde_json::to_value(fixtures::pod(1, "Running")).unwrap());
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await.0, 403);
    api.change(path, |pod| pod["metadata"]["uid"] = json!("copy"));
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
}

#[tokio::test]
async fn replaced_and_deleted_jobs_are_told_apart() {
    let api = starting();
    store(&api, &Job { status: Some(status(2, Phase::Starting)), ..fixtures::job() });
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await.0, 410);
    api.remove(JOB);
    assert_eq!(post(&router, report(3, Phase::Running)).await.0, 404);
}

#[tokio::test]
async fn a_report_must_be_one() {
    let api = starting();
    let router = endpoint(&api).await;
    let twice = report(3, Phase::Running).replacen("\"attempt\":1", "\"attempt\":1,\"attempt\":1", 1);
    let unknown = report(3, Phase::Running).replacen("\"attempt\":1", "\"attempt\":1,\"approved\":true", 1);
    for (body, expected) in [
        ("{".to_owned(), 422),
        (twice, 422),
        (unknown, 422),
        (report(3, Phase::Running).replace("\"Running\"", "\"Succeeded\""), 422),
        (format!("\"{}\"", "x".repeat(MAX_BYTES)), 413),
    ] {
        let (status, answer) = post(&router, body).await;
        assert_eq!(status, expected, "{answer}");
        assert!(answer["error"].is_string());
    }
    let request = Request::post(PATH).body(Body::from(report(3, Phase::Running))).unwrap();
    assert_eq!(answer(&router, request).await.0, 401);
    assert_eq!(answer(&router, Request::get(PATH).body(Body::empty()).unwrap()).await.0, 405);
    assert_eq!(answer(&router, Request::post("/").body(Body::empty()).unwrap()).await.0, 404);
    assert_eq!(api.writes(), [""; 0]);
    assert!(report(3, Phase::Running).contains(UID));
}

/// A report of a worker that parks with a held call, and tells what people need to know of it.
fn held() -> bloomery_crds::report::Report {
    let mut held = fixtures::report(1, 1, 7, Phase::AwaitingApproval);
    held.projection.waiting_for =
        Some(bloomery_crds::v1alpha1::WaitingFor { call: Some(fixtures::held_call()), ..Default::default() });
    held.hold = Some(fixtures::hold());
    held.end = Some(bloomery_crds::report::PodEnd::Parked(bloomery_crds::report::ParkReason::Approval));
    held
}

const APPROVALS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/approvals";

#[tokio::test]
async fn people_are_asked_before_the_status_says_so_and_once() {
    let api = starting();
    api.install_policy();
    let names = crate::approval::approval_names("refund", UID, &fixtures::held_call());
    let router = endpoint(&api).await;
    let body = serde_json::to_string(&held()).unwrap();
    assert_eq!(post(&router, body.clone()).await, acked(7));
    let made: Vec<String> = names.iter().map(|name| format!("create {APPROVALS}/{name}")).collect();
    assert_eq!(api.writes(), [made[0].clone(), made[1].clone(), format!("status {JOB}")]);
    let status = api.get(JOB)["status"].clone();
    assert_eq!((&status["phase"], &status["waitingFor"]["approvals"]), (&json!("AwaitingApproval"), &json!(names)));
    let approval = api.get(&format!("{APPROVALS}/{}", names[0]));
    assert_eq!((&approval["spec"]["approver"], &approval["spec"]["decision"]), (&json!("supervisor"), &Value::Null));
    // A repetition, and another replica that has seen nothing of it.
    assert_eq!(post(&router, body.clone()).await, acked(7));
    assert_eq!(post(&endpoint(&api).await, body).await, acked(7));
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn as_long_as_nothing_checks_decisions_nobody_is_asked() {
    let api = starting();
    let body = serde_json::to_string(&held()).unwrap();
    assert_eq!(post(&endpoint(&api).await, body).await, acked(7));
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_eq!(api.get(JOB)["status"]["phase"], "AwaitingApproval");
}

#[tokio::test]
async fn as_long_as_a_policy_is_stored_and_not_enforced_the_worker_comes_again_and_hears_what_people_want() {
    let api = starting();
    api.install_policy();
    api.set_policy_enforced(false);
    let router = endpoint(&api).await;
    let body = serde_json::to_string(&held()).unwrap();
    assert_eq!(post(&router, body.clone()).await, acked(0));
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let told = api.get(JOB)["status"]["conditions"][1].clone();
    assert_eq!(told["reason"], "NobodyAsked");
    assert!(told["message"].as_str().unwrap().contains("does not enforce the admission policy approvals"), "{told}");
    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
    let router = endpoint(&api).await;
    let (status, said) = post(&router, body.clone()).await;
    assert_eq!((status, &said["cancel"], api.writes()), (200, &json!(true), Vec::new()));
    api.set_policy_enforced(true);
    api.change(JOB, |job| job["spec"]["cancel"] = json!(false));
    assert_eq!(post(&endpoint(&api).await, body).await, acked(7));
    assert_eq!(api.writes().len(), 3);
}

#[tokio::test]
async fn arguments_that_are_not_those_of_the_call_are_refused() {
    let api = starting();
    api.install_policy();
    let mut forged = held();
    forged.hold.as_mut().unwrap().arguments = "other arguments".to_owned();
    let (status, answer) = post(&endpoint(&api).await, serde_json::to_string(&forged).unwrap()).await;
    assert_eq!(status, 422, "{answer}");
    let mut endless = held();
    endless.hold.as_mut().unwrap().arguments = "x".repeat(16 * 1024 + 1);
    let (status, answer) = post(&endpoint(&api).await, serde_json::to_string(&endless).unwrap()).await;
    assert_eq!((status, answer.to_string().contains("hold.arguments")), (422, true), "{answer}");
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn what_people_want_is_told_with_every_reply_and_repeated_reports_cost_nothing() {
    let api = starting();
    api.change(JOB, |job| {
        job["spec"]["cancel"] = json!(true);
        job["spec"]["replies"] = json!([{ "question": "q-1", "text": "A-17" }, { "text": "be quick" }]);
    });
    let annotations = json!({ bloomery_crds::names::ANNOTATION_SUSPEND: "true" });
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "acme", "annotations": annotations } });
    api.put("/api/v1/namespaces/acme", namespace);
    let router = endpoint(&api).await;
    let said = json!({
        "cancel": true, "park": true,
        "replies": [{ "nth": 1, "question": "q-1", "text": "A-17" }, { "nth": 2, "text": "be quick" }],
    });
    let mut expected = said.clone();
    expected["ack"] = json!(3);
    // Merged, repeated, deferred.
    for (events, acked) in [(3, 3), (3, 3), (4, 3)] {
        expected["ack"] = json!(acked);
        assert_eq!(post(&router, report(events, Phase::Running)).await, (200, expected.clone()));
    }
    let mut heard = fixtures::report(1, 1, 4, Phase::Running);
    heard.projection.replies_heard = 1;
    let (_, reply) = post(&router, serde_json::to_string(&heard).unwrap()).await;
    assert_eq!(reply["replies"], json!([{ "nth": 2, "text": "be quick" }]));
}

#[tokio::test]
async fn a_worker_that_has_nothing_new_costs_no_request() {
    let api = starting();
    // What the cache has is what stands: as after a moment.
    let running = endpoint(&api).await;
    post(&running, report(3, Phase::Running)).await;
    let router = endpoint(&api).await;
    post(&router, report(3, Phase::Running)).await;
    api.writes();
    api.reads();
    let reviews = api.reviews();
    for _ in 0..10 {
        assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
    }
    assert_eq!((api.writes().len(), api.reads().len(), api.reviews()), (0, 0, reviews));
}

#[tokio::test]
async fn a_question_is_told_with_one_write_and_a_lie_about_it_is_refused() {
    let api = starting();
    let mut asking = fixtures::report(1, 1, 7, Phase::AwaitingReply);
    asking.projection.waiting_for = Some(fixtures::asked(0));
    asking.projection.replies_heard = 2;
    asking.end = Some(bloomery_crds::report::PodEnd::Parked(bloomery_crds::report::ParkReason::Reply));
    let router = endpoint(&api).await;
    let body = serde_json::to_string(&asking).unwrap();
    assert_eq!(post(&router, body.clone()).await, acked(7));
    assert_eq!(post(&router, body).await, acked(7));
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let status = api.get(JOB)["status"].clone();
    assert_eq!((&status["phase"], &status["repliesHeard"]), (&json!("AwaitingReply"), &json!(2)));
    let waiting = &status["waitingFor"];
    assert_eq!(waiting["questions"][1]["text"], "Which shop?");
    assert_ne!(waiting["since"], json!(fixtures::at(0)), "since when, the operator says");

    asking.projection.waiting_for.as_mut().unwrap().questions[0].text = "x".repeat(1025);
    let (status, answer) = post(&router, serde_json::to_string(&asking).unwrap()).await;
    assert_eq!((status, answer.to_string().contains("a question: 1025")), (422, true), "{answer}");
}
