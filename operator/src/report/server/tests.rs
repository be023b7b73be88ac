//! Tests of the real router with an API server in memory.

use super::*;
use crate::job::fixtures::api::FakeApi;
use crate::job::fixtures::log_lines::LogLines;
use crate::job::fixtures::{self, UID, pod_uid, status};
use crate::report::review_limit::MAX_UNPROVEN;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bloomery_crds::outcome::Phase;
use bloomery_crds::probe::{ProbeReport, Subject};
use bloomery_crds::report::ExternalWait;
use bloomery_crds::v1alpha1::{Job, JobMode, Skill};
use bloomery_token::{Claims, Verifier, audience};
use k8s_openapi::api::core::v1::Pod;
use rstest::rstest;
use serde_json::{Value, json};
use tower::ServiceExt;

const JOB: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund";

/// The status of the review of a worker's token.
pub(super) fn review(namespace: &str, pod_uid: &str) -> Value {
    json!({
        "authenticated": true,
        "audiences": ["bloomery"],
        "user": {
            "username": format!("system:serviceaccount:{namespace}:cs-tier-1-worker"),
            "extra": { "authentication.kubernetes.io/pod-uid": [pod_uid] },
        },
    })
}

fn accept_token_of(api: &FakeApi, namespace: &str, pod_uid: &str) {
    api.review_tokens(review(namespace, pod_uid));
}

fn store(api: &FakeApi, job: &Job) {
    let mut job = serde_json::to_value(job).unwrap();
    job["status"]["attempt"]["podUID"] = json!(pod_uid(1));
    api.put(JOB, job);
}

/// A token in the form of a worker's. The API server decides whose it is.
fn token() -> String {
    token_with("c2lnbmF0dXJl")
}

/// A token in this form, with this signature.
pub(super) fn token_with(signature: &str) -> String {
    format!("e30.{}.{signature}", URL_SAFE_NO_PAD.encode(r#"{"aud":["bloomery"]}"#))
}

/// An API server with a Job whose first attempt is starting. The token of a report belongs to the pod of this attempt.
fn starting() -> FakeApi {
    let api = FakeApi::default();
    accept_token_of(&api, "acme", &pod_uid(1));
    store(&api, &Job { status: Some(status(1, Phase::Starting)), ..fixtures::job() });
    api
}

async fn endpoint(api: &FakeApi) -> Router {
    router(Arc::new(Service::new(api.operator().await, CancellationToken::new())), TIMEOUTS)
}

async fn post(router: &Router, body: impl Into<Body>) -> (u16, Value) {
    let request = Request::post(PATH).header("authorization", format!("Bearer {}", token())).body(body.into()).unwrap();
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
async fn the_results_of_a_validation_are_recorded_on_its_skill_once() {
    let api = FakeApi::default();
    accept_token_of(&api, "acme", &pod_uid(1));
    let mut job = Job { status: Some(status(1, Phase::Running)), ..fixtures::job() };
    job.spec.mode = Some(JobMode::Validate);
    store(&api, &job);
    let mut skill = serde_json::to_value(crate::skill::fixtures::without_server()).unwrap();
    skill["metadata"]["name"] = json!("cs-tier-1");
    let path = SKILL.replace("orders", "cs-tier-1");
    api.put(&path, skill);
    let router = endpoint(&api).await;
    let mut report = fixtures::report(1, 1, 4, Phase::Succeeded);
    let result = json!({"name": "greets", "passed": true, "score": 0.9, "tokens": 7, "seconds": 2});
    report.projection.features = vec![serde_json::from_value(result).unwrap()];
    for _ in 0..2 {
        let (code, answer) = post(&router, serde_json::to_string(&report).unwrap()).await;
        assert_eq!((code, &answer["ack"]), (200, &json!(4)));
    }
    assert_eq!(api.writes(), [format!("status {path}"), format!("status {JOB}")]);
    let recorded = &api.get(&path)["status"]["features"][0];
    assert_eq!((&recorded["name"], &recorded["job"]), (&json!("greets"), &json!("refund")));
    assert_eq!(recorded["revision"], json!(fixtures::revision().name));
    assert_eq!(api.get(JOB)["status"]["features"][0]["passed"], json!(true));
}

#[tokio::test]
async fn a_short_conversation_costs_two_writes() {
    let api = starting();
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
    // A deferrable report: the next write includes it.
    assert_eq!(post(&router, report(5, Phase::Running)).await, acked(3));
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
    assert_eq!(post(&router, report(9, Phase::Succeeded)).await, acked(9));
    assert_eq!(post(&router, report(9, Phase::Succeeded)).await, acked(9));
    assert_eq!(api.writes().len(), 2);
    let status = &api.get(JOB)["status"];
    assert_eq!((&status["phase"], &status["log"]["events"]), (&json!("Succeeded"), &json!(9)));
}

#[tokio::test]
async fn a_missing_key_and_the_end_in_a_report_have_one_line_and_one_event() {
    let lines = LogLines::capture();
    let api = starting();
    let router = endpoint(&api).await;
    post(&router, report(3, Phase::Running)).await;
    assert_eq!((lines.of_jobs(), api.events()), (vec![], vec![]));
    let mut waits = fixtures::report(1, 1, 3, Phase::Running);
    waits.waiting = Some(ExternalWait::SecretMissing { name: "llm".into(), key: "token".into(), until: None });
    for _ in 0..2 {
        assert_eq!(post(&router, serde_json::to_string(&waits).unwrap()).await, acked(3));
    }
    assert_eq!(lines.of_jobs(), ["INFO acme/refund: the Job waits: SecretMissing"]);
    assert_eq!(api.events(), ["Warning SecretMissing of refund"]);
    for _ in 0..2 {
        assert_eq!(post(&router, report(9, Phase::Succeeded)).await, acked(9));
    }
    assert_eq!(lines.of_jobs()[1..], ["INFO acme/refund: the Job has ended: Succeeded"]);
    assert_eq!(api.events(), ["Normal Succeeded of refund"]);
}

#[tokio::test]
async fn a_requested_child_is_recorded_at_once_and_its_state_is_in_each_answer() {
    let api = starting();
    let router = endpoint(&api).await;
    let request = json!({
        "call": "c-1", "digest": format!("sha256:{}", "0".repeat(64)), "skill": "reviewer", "goal": "Review",
        "limits": { "steps": 3 },
    });
    let with_children = |events, children: Value| {
        let mut report = serde_json::to_value(fixtures::report(1, 1, events, Phase::Running)).unwrap();
        report["children"] = children;
        report.to_string()
    };
    post(&router, report(3, Phase::Running)).await;
    api.writes();
    let (status, answer) = post(&router, with_children(5, json!([request]))).await;
    let name = bloomery_crds::children::name("refund", "cs-tier-1", UID, "c-1");
    let running = json!([{ "call": "c-1", "job": name, "state": "running" }]);
    assert_eq!((status, &answer["ack"], &answer["children"]), (200, &json!(5), &running));
    let recorded = &api.get(JOB)["status"]["children"];
    assert_eq!((&recorded[0]["request"]["goal"], &recorded[0]["name"]), (&json!("Review"), &Value::Null));
    assert_eq!(post(&router, with_children(5, json!([request]))).await.1["children"], running);
    assert_eq!(api.writes(), [format!("status {JOB}")], "the request is recorded once");
    // A report that waits is answered at once if its worker has to know something.
    let mut blank = serde_json::from_str::<Value>(&with_children(6, json!([request]))).unwrap();
    (blank["children"][0]["call"], blank["children"][0]["goal"]) = (json!("c-2"), json!(" "));
    blank["waitSeconds"] = json!(20);
    let (_, answer) = post(&router, blank.to_string()).await;
    assert!(answer["children"][0]["state"]["refused"]["reason"].as_str().unwrap().contains("goal: "), "{answer}");
    let many = json!(vec![request; 5]);
    let (status, answer) = post(&router, with_children(7, many)).await;
    assert_eq!((status, answer["error"].as_str().unwrap().contains("children: 5 items")), (422, true), "{answer}");
}

#[tokio::test]
async fn the_skills_that_a_job_may_invoke_are_read_with_the_token_of_a_worker() {
    let api = starting();
    let router = endpoint(&api).await;
    let page = |token: Option<String>| {
        let request = Request::get(format!("{SKILLS_PATH}?after=a"));
        let request = token
            .into_iter()
            .fold(request, |request, token| request.header("authorization", format!("Bearer {token}")));
        request.body(Body::empty()).unwrap()
    };
    assert_eq!(answer(&router, page(None)).await.0, 401);
    let (status, refused) = answer(&router, page(Some(token()))).await;
    assert_eq!(status, 503, "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("does not exist"), "the revision is missing: {refused}");
}

#[tokio::test]
async fn a_concurrent_change_by_another_writer_is_kept() {
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
    assert_eq!(api.writes().len(), 2, "the first write was refused");
}

#[tokio::test]
async fn a_pod_may_report_before_it_is_recorded() {
    let api = starting();
    let recorded = api.get(JOB);
    api.change(JOB, |job| job["status"] = Value::Null);
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await.0, 409);
    api.put(JOB, recorded);
    // The cache of this replica is not updated any more, so the Job is read from the API server.
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
}

#[tokio::test]
async fn a_worker_of_another_namespace_is_refused_with_the_reason() {
    let api = starting();
    let router = endpoint(&api).await;
    accept_token_of(&api, "other", &pod_uid(1));
    let (status, body) = post(&router, report(3, Phase::Running)).await;
    assert_eq!(status, 403);
    assert!(body["error"].as_str().unwrap().contains("namespace other"), "{body}");
    assert_eq!((api.reads(), api.writes()), (vec![], vec![]), "no object of another tenant is read");
}

#[tokio::test]
async fn a_job_with_an_impossible_name_is_refused_without_a_read() {
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
    assert_eq!((api.reads(), api.reviews()), (vec![], 1));
}

#[tokio::test]
async fn another_pod_may_report_only_if_it_replaced_the_recorded_one() {
    let api = starting();
    accept_token_of(&api, "acme", "copy");
    let path = "/api/v1/namespaces/acme/pods/refund-1-01234";
    let pod = serde_json::to_value(fixtures::sealed(fixtures::pod(1, "Running"))).unwrap();
    api.put(path, pod);
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await.0, 403);
    api.change(path, |pod| pod["metadata"]["uid"] = json!("copy"));
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
    api.change(path, |pod| pod["metadata"]["annotations"] = json!({}));
    assert_eq!(post(&router, report(4, Phase::Running)).await.0, 403, "the operator has not created it");
}

#[tokio::test]
async fn a_replaced_attempt_and_a_deleted_job_have_different_refusals() {
    let api = starting();
    store(&api, &Job { status: Some(status(2, Phase::Starting)), ..fixtures::job() });
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await.0, 410);
    assert_eq!(api.reads(), [""; 0], "the cached Job has a later attempt");
    api.remove(JOB);
    assert_eq!(post(&endpoint(&api).await, report(3, Phase::Running)).await.0, 404);
}

#[tokio::test]
async fn a_field_of_a_newer_worker_is_ignored() {
    let api = starting();
    let router = endpoint(&api).await;
    let newer = report(3, Phase::Running).replacen("\"attempt\":1", "\"attempt\":1,\"approved\":true", 1);
    assert_eq!(post(&router, newer).await.0, 200);
}

#[tokio::test]
async fn an_invalid_request_is_refused() {
    let api = starting();
    let router = endpoint(&api).await;
    let twice = report(3, Phase::Running).replacen("\"attempt\":1", "\"attempt\":1,\"attempt\":1", 1);
    for (body, expected) in [
        ("{".to_owned(), 422),
        (twice, 422),
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

#[tokio::test]
async fn a_false_token_is_refused_before_the_body_is_read() {
    let api = starting();
    api.review_tokens(json!({ "authenticated": false }));
    let router = endpoint(&api).await;
    for (token, reviews) in [("token".to_owned(), 0), (token(), 1)] {
        let endless = Body::from_stream(futures::stream::pending::<Result<Bytes, std::convert::Infallible>>());
        let request = Request::post(PATH).header("authorization", format!("Bearer {token}")).body(endless).unwrap();
        let (status, answer) = answer(&router, request).await;
        assert_eq!((status, api.reviews()), (401, reviews), "{answer}");
    }
}

#[tokio::test]
async fn after_many_false_tokens_of_an_address_the_api_server_is_asked_for_other_addresses_only() {
    let api = starting();
    api.review_tokens(json!({ "authenticated": false }));
    api.review_token(&token(), review("acme", &pod_uid(1)));
    let router = endpoint(&api).await;
    let from = |address: [u8; 4]| router.clone().layer(Extension(Peer(IpAddr::from(address))));
    let (hostile, honest) = (from([10, 0, 0, 1]), from([10, 0, 0, 2]));
    let mut refused = Vec::new();
    for number in 0..=MAX_UNPROVEN {
        let request =
            Request::post(PATH).header("authorization", format!("Bearer {}", token_with(&number.to_string())));
        refused.push(answer(&hostile, request.body(Body::empty()).unwrap()).await.0);
    }
    assert_eq!((refused.pop(), refused.iter().all(|status| *status == 401)), (Some(503), true));
    assert_eq!(api.reviews(), MAX_UNPROVEN);
    assert_eq!(post(&honest, report(3, Phase::Running)).await, acked(3));
    // A token that is known needs no review.
    assert_eq!(post(&hostile, report(3, Phase::Running)).await, acked(3));
}

#[tokio::test]
async fn a_pod_has_one_request_at_a_time() {
    let api = starting();
    let router = endpoint(&api).await;
    let endless = Body::from_stream(futures::stream::pending::<Result<Bytes, std::convert::Infallible>>());
    let request = Request::post(PATH).header("authorization", format!("Bearer {}", token())).body(endless).unwrap();
    let mut first = Box::pin(router.clone().oneshot(request));
    let mut second = Box::pin(post(&router, report(3, Phase::Running)));
    tokio::select! {
        biased;
        _ = &mut first => panic!("its body does not end"),
        () = api.until_requested("tokenreviews") => {}
    }
    // The first request is admitted before the second one begins.
    tokio::select! {
        biased;
        _ = &mut first => panic!("its body does not end"),
        answer = &mut second => panic!("the second request is answered: {answer:?}"),
        () = tokio::time::sleep(Duration::from_millis(50)) => {}
    }
    drop(first);
    assert_eq!(second.await, acked(3));
}

#[test]
fn the_maximum_of_connections_leaves_half_of_the_open_files() {
    for (files, connections) in [(None, 4096), (Some(1 << 20), 4096), (Some(1024), 512), (Some(1), 1)] {
        assert_eq!(max_connections(files), connections);
    }
}

#[tokio::test]
async fn a_refused_token_is_not_reviewed_again_at_once() {
    let api = starting();
    api.review_tokens(json!({ "authenticated": false }));
    let router = endpoint(&api).await;
    for _ in 0..3 {
        assert_eq!(post(&router, report(3, Phase::Running)).await.0, 401);
    }
    assert_eq!(api.reviews(), 1);
}

/// Sends the start of a request over a connection. Returns what the server answers until it closes the connection.
async fn answer_to_start(router: Router, start: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let task = tokio::spawn(serve_requests(server, router, BRIEF.headers, CancellationToken::new()));
    client.write_all(start.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    task.await.unwrap();
    answer
}

/// Time limits that are over at once.
const BRIEF: Timeouts = Timeouts { headers: Duration::from_millis(10), body: Duration::from_millis(10) };

#[tokio::test]
async fn a_connection_with_half_a_request_is_closed() {
    let api = starting();
    let router = router(Arc::new(Service::new(api.operator().await, CancellationToken::new())), BRIEF);
    let headers = format!("POST {PATH} HTTP/1.1\r\nHost: operator\r\nAuthorization: Bearer {}\r\n", token());
    let half_body = format!("{headers}Content-Length: 1000\r\n\r\n{{");
    let answer = answer_to_start(router.clone(), &half_body).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("within 10ms"), "{answer}");
    answer_to_start(router, &headers).await;
    assert_eq!(api.reviews(), 1);
}

#[tokio::test]
async fn a_report_that_contradicts_an_earlier_one_is_refused_and_shown() {
    let api = starting();
    api.install_policies();
    let router = endpoint(&api).await;
    let mut forged = held();
    let call = forged.projection.waiting_for.as_mut().unwrap().call.as_mut().unwrap();
    call.tool = "track_order".to_owned();
    assert_eq!(post(&router, serde_json::to_string(&forged).unwrap()).await, acked(7));
    let (status, answer) = post(&endpoint(&api).await, serde_json::to_string(&held()).unwrap()).await;
    assert_eq!((status, answer.to_string().contains("another held call")), (412, true), "{answer}");
    assert_eq!(api.get(JOB)["status"]["waitingFor"]["call"]["tool"], "track_order");
}

/// A report of a worker that parks with a held call, with the details for approvers.
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
async fn approvals_are_created_once_and_before_the_status_names_them() {
    let api = starting();
    api.install_policies();
    let names = crate::approval::approval_names("refund", UID, &fixtures::held_call());
    let router = endpoint(&api).await;
    let body = serde_json::to_string(&held()).unwrap();
    assert_eq!(post(&router, body.clone()).await, acked(7));
    let creates: Vec<String> = names.iter().map(|name| format!("create {APPROVALS}/{name}")).collect();
    assert_eq!(api.writes(), [creates[0].clone(), creates[1].clone(), format!("status {JOB}")]);
    let status = api.get(JOB)["status"].clone();
    assert_eq!((&status["phase"], &status["waitingFor"]["approvals"]), (&json!("AwaitingApproval"), &json!(names)));
    let approval = api.get(&format!("{APPROVALS}/{}", names[0]));
    assert_eq!((&approval["spec"]["approver"], &approval["spec"]["decision"]), (&json!("supervisor"), &Value::Null));
    // Repeated reports, one of them to a replica that has just started, create nothing.
    assert_eq!(post(&router, body.clone()).await, acked(7));
    assert_eq!(post(&endpoint(&api).await, body).await, acked(7));
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn without_the_admission_policy_no_approval_is_created() {
    let api = starting();
    let body = serde_json::to_string(&held()).unwrap();
    assert_eq!(post(&endpoint(&api).await, body).await, acked(7));
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_eq!(api.get(JOB)["status"]["phase"], "AwaitingApproval");
}

#[tokio::test]
async fn while_the_policy_is_not_enforced_a_report_is_not_merged_and_gets_directives() {
    let api = starting();
    api.install_policies();
    api.set_policy_enforced(false);
    let router = endpoint(&api).await;
    let body = serde_json::to_string(&held()).unwrap();
    assert_eq!(post(&router, body.clone()).await, acked(0));
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    let condition = api.get(JOB)["status"]["conditions"][1].clone();
    assert_eq!(condition["reason"], "NobodyAsked");
    assert!(
        condition["message"].as_str().unwrap().contains("does not enforce the admission policy approvals"),
        "{condition}"
    );
    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
    let router = endpoint(&api).await;
    let (status, directives) = post(&router, body.clone()).await;
    assert_eq!((status, &directives["cancel"], api.writes()), (200, &json!(true), Vec::new()));
    api.set_policy_enforced(true);
    api.change(JOB, |job| job["spec"]["cancel"] = json!(false));
    assert_eq!(post(&endpoint(&api).await, body).await, acked(7));
    assert_eq!(api.writes().len(), 3);
}

#[tokio::test]
async fn arguments_that_do_not_match_the_call_are_refused() {
    let api = starting();
    api.install_policies();
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
async fn every_response_repeats_the_directives() {
    let api = starting();
    api.change(JOB, |job| {
        job["spec"]["cancel"] = json!(true);
        job["spec"]["replies"] = json!([{ "question": "q-1", "text": "A-17" }, { "text": "be quick" }]);
    });
    let annotations = json!({
        bloomery_crds::names::ANNOTATION_SUSPEND: "true", bloomery_crds::names::ANNOTATION_BLOCKED_TOOLS: "send_*",
    });
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "acme", "annotations": annotations } });
    api.put("/api/v1/namespaces/acme", namespace);
    let router = endpoint(&api).await;
    let mut expected = json!({
        "cancel": true, "park": true, "tenantTools": { "blocked": ["send_*"] },
        "replies": [{ "nth": 1, "question": "q-1", "text": "A-17" }, { "nth": 2, "text": "be quick" }],
    });
    // A merged, a repeated and a deferred report.
    for (events, acked) in [(3, 3), (3, 3), (4, 3)] {
        expected["ack"] = json!(acked);
        assert_eq!(post(&router, report(events, Phase::Running)).await, (200, expected.clone()));
    }
    let mut heard = fixtures::report(1, 1, 4, Phase::Running);
    heard.projection.replies_heard = 1;
    let (_, reply) = post(&router, serde_json::to_string(&heard).unwrap()).await;
    assert_eq!(reply["replies"], json!([{ "nth": 2, "text": "be quick" }]));
}

/// The deferred report is not in the status.
#[tokio::test]
async fn a_report_that_contradicts_a_deferred_one_is_refused() {
    let api = starting();
    let router = endpoint(&api).await;
    assert_eq!(post(&router, report(3, Phase::Running)).await, acked(3));
    assert_eq!(post(&router, report(4, Phase::Running)).await, acked(3));
    let mut forged = fixtures::report(1, 1, 4, Phase::Running);
    forged.projection.log.head = bloomery_crds::Digest::of_bytes(b"forged");
    let (status, _) = post(&router, serde_json::to_string(&forged).unwrap()).await;
    assert_eq!(status, 412);
    assert_eq!(post(&router, report(4, Phase::Running)).await, acked(3));
}

#[tokio::test]
async fn a_repeated_report_costs_no_request() {
    let api = starting();
    // The second replica starts after the write, so its cache is up to date.
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
async fn a_question_costs_one_write_and_an_oversized_question_is_refused() {
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
    assert_ne!(waiting["since"], json!(fixtures::at(0)), "the operator records the start of the wait");

    asking.projection.waiting_for.as_mut().unwrap().questions[0].text = "x".repeat(1025);
    let (status, answer) = post(&router, serde_json::to_string(&asking).unwrap()).await;
    assert_eq!((status, answer.to_string().contains("a question: 1025")), (422, true), "{answer}");
}

const SKILL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/orders";
const PROBE_POD: &str = "/api/v1/namespaces/acme/pods/orders-probe-1";

/// The report of a probe of the stored Skill.
fn probe_report() -> ProbeReport {
    let skill = crate::skill::fixtures::with_service();
    let server = bloomery_crds::probe::server_digest(skill.spec.mcp_server.as_ref().unwrap());
    let rules = bloomery_crds::probe::rules_digest(&skill.spec);
    let subject = Subject { server, rules, key: bloomery_crds::Digest::of_bytes(b"key") };
    crate::skill::fixtures::probe_report(&skill, &subject, &[("refund", "Refunds an order")])
}

/// The pod of the probe, without a seal.
fn probe_pod() -> Pod {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "acme", "name": "orders-probe-1", "uid": "u-probe",
            "labels": {"app.kubernetes.io/component": "probe", "bloomery.dev/skill": "orders"},
            "ownerReferences": [
                {"apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "name": "orders", "uid": "u-skill", "controller": true},
            ],
        },
        "spec": {"containers": [{"name": "worker", "args": ["probe"]}]},
    }))
    .unwrap()
}

/// An API server with the Skill `orders` and the pod of its probe, whose token belongs to this pod.
async fn probing(change: fn(&mut Pod)) -> (FakeApi, Router) {
    probing_of(&crate::skill::fixtures::with_service(), change).await
}

async fn probing_of(skill: &Skill, change: fn(&mut Pod)) -> (FakeApi, Router) {
    let api = FakeApi::default();
    accept_token_of(&api, "acme", "u-probe");
    api.put(SKILL, serde_json::to_value(skill).unwrap());
    let context = api.operator().await;
    let mut pod = context.pod_seals.sealed(probe_pod());
    change(&mut pod);
    api.put(PROBE_POD, serde_json::to_value(pod).unwrap());
    (api, router(Arc::new(Service::new(context, CancellationToken::new())), TIMEOUTS))
}

async fn post_probe(router: &Router, report: &ProbeReport) -> (u16, Value) {
    post_to(router, probe::PATH, serde_json::to_string(report).unwrap()).await
}

async fn post_to(router: &Router, path: &str, body: String) -> (u16, Value) {
    let authorization = format!("Bearer {}", token());
    answer(router, Request::post(path).header("authorization", authorization).body(body.into()).unwrap()).await
}

/// Requests the token for the server that the probe verifies.
async fn request_token(router: &Router) -> (u16, Value) {
    let skill = json!({"namespace": "acme", "name": "orders", "uid": "u-skill"});
    post_to(router, "/v1/probes/token", json!({"skill": skill, "pod": "orders-probe-1"}).to_string()).await
}

/// Returns the claims of a token, if the server of this Skill accepts it now.
fn claims(token: &Value, skill: &str) -> Claims {
    let tokens = crate::server_tokens::ServerTokens::default();
    tokens.set_keys(crate::server_tokens::test_keys());
    let server = Verifier::new(&tokens.public_keys().unwrap(), audience("acme", skill));
    let now = k8s_openapi::jiff::Timestamp::now().as_second();
    server.verify(token["token"].as_str().unwrap(), u64::try_from(now).unwrap()).unwrap()
}

#[tokio::test]
async fn a_worker_gets_the_token_for_a_server_that_the_operator_runs_with_each_response() {
    let api = starting();
    let mut skill = crate::skill::fixtures::with_container();
    skill.metadata.name = Some("cs-tier-1".into());
    api.put("/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/cs-tier-1", serde_json::to_value(&skill).unwrap());
    let router = endpoint(&api).await;
    for events in [3, 5] {
        let (status, answer) = post(&router, report(events, Phase::Running)).await;
        assert_eq!(status, 200);
        let claims = claims(&answer["serverToken"], "cs-tier-1");
        assert_eq!((claims.job.as_deref(), claims.sub.as_str()), (Some("refund"), UID));
        assert!(answer["serverToken"]["validSeconds"].as_u64().unwrap() > 180);
    }
}

#[tokio::test]
async fn a_probe_gets_the_token_for_a_server_that_the_operator_runs() {
    let (api, router) = probing_of(&crate::skill::fixtures::with_container(), |_| ()).await;
    let (status, answer) = request_token(&router).await;
    assert_eq!(status, 200);
    let claims = claims(&answer, "orders");
    assert_eq!((claims.job, claims.sub.as_str()), (None, "u-probe"));
    assert_eq!(api.writes(), [""; 0]);
    let (_, router) = probing(|_| ()).await;
    assert_eq!(request_token(&router).await.0, 404, "the operator does not run the server");
}

#[tokio::test]
async fn the_report_of_a_probe_is_recorded_with_one_write() {
    let (api, router) = probing(|_| ()).await;
    assert_eq!(post_probe(&router, &probe_report()).await, (200, json!({})));
    assert_eq!(api.writes(), [format!("status {SKILL}")]);
    let tools = &api.get(SKILL)["status"]["tools"];
    assert_eq!(tools["pins"]["tools"][0]["name"], "refund");
    assert_eq!(tools["digest"], tools["found"]["digest"]);
}

#[rstest]
#[case::without_a_seal(|pod: &mut Pod| pod.metadata.annotations = None)]
#[case::another_pod(|pod: &mut Pod| pod.metadata.uid = Some("u-other".into()))]
#[case::another_owner(|pod: &mut Pod| pod.metadata.owner_references.as_mut().unwrap()[0].uid = "u-other".into())]
#[case::a_worker(|pod: &mut Pod| {
    pod.metadata.labels.as_mut().unwrap().insert("app.kubernetes.io/component".into(), "worker".into());
})]
#[tokio::test]
async fn only_a_probe_that_the_operator_created_may_report(#[case] change: fn(&mut Pod)) {
    let (_, of_container) = probing_of(&crate::skill::fixtures::with_container(), change).await;
    assert_eq!(request_token(&of_container).await.0, 403);
    let (api, router) = probing(change).await;
    assert_eq!(post_probe(&router, &probe_report()).await.0, 403);
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_probe_cannot_report_for_another_tenant() {
    let (api, router) = probing(|_| ()).await;
    accept_token_of(&api, "other", "u-probe");
    assert_eq!(post_probe(&router, &probe_report()).await.0, 403);
    assert_eq!(request_token(&router).await.0, 403);
    assert_eq!((api.reads(), api.writes()), (vec![], vec![]), "no object of another tenant is read");
}
