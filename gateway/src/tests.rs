//! The routes, over a runtime that records its calls.

use crate::fixture::job_status;
use crate::{Access, Gateway, Identity, LoopbackAccess, Problem, router};
use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::Response;
use bloomery_crds::Digest;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::ParkReason;
use bloomery_crds::v1alpha1::WaitingFor;
use bloomery_embed::{
    Cursor, Error, ErrorKind, HeldCall, Input, JobEvent, JobStatus, JobSummary, ModelContext, NewJob, OpenRequests,
    Question, Ruling, Runtime, SkillState, SkillTool, Tenant,
};
use bloomery_engine::Event;
use bloomery_engine::event::{CallId, QuestionId, QuestionSubject, UserQuestion};
use bloomery_engine::line::{Entry, EventTime};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tower::ServiceExt;

/// A runtime with two tenants. Both have the Job `k-1`, with two events, and the ended Job `k-0`. The status of the Job `slow` has one event
/// and one output token more after each read. That of the Job `lags` too: its three events are a reply to q-1, the question q-2, and its
/// parking. Its open request is q-1 until the status has all events, then there is none, and then it is q-2. The Job `pending` has no event.
/// The Job `held` waits for the approval of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder {
    read: Arc<AtomicU64>,
    started: Arc<Mutex<Vec<NewJob>>>,
    sent: Arc<Mutex<Vec<Input>>>,
    /// Whether the caller lacks the right to follow Jobs.
    refuses_following: bool,
}

impl Recorder {
    /// Returns the input that was sent.
    pub(crate) fn sent(&self) -> Vec<Input> {
        self.sent.lock().unwrap().clone()
    }
}

impl Runtime for Recorder {
    type Caller = String;
    type Tenant = Self;

    async fn open(&self, tenant: &str, caller: String) -> Result<Self, Error> {
        assert_eq!(caller, "ada");
        match tenant {
            "local" | "acme" => Ok(self.clone()),
            _ => Err(Error::new(ErrorKind::NotFound, "there is no tenant of that name")),
        }
    }
}

fn check(job: &str) -> Result<(), Error> {
    match job {
        "k-0" | "k-1" | "slow" | "lags" | "pending" | "held" => Ok(()),
        "broken" => Err(Error::failed("the log is broken")),
        "large" => Err(Error::invalid("`options.limits` steps: must be more than 0")),
        _ => Err(Error::new(ErrorKind::NotFound, format!("there is no Job {job}"))),
    }
}

fn shown(seq: u64, event: Event) -> JobEvent {
    let stamp = EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 0 };
    JobEvent::new("/k-1", &Entry { seq, stamp, event }).unwrap()
}

fn job_event(seq: u64) -> JobEvent {
    shown(seq, Event::ToolStarted { call: CallId::new(seq, 0) })
}

fn question(n: u32) -> UserQuestion {
    UserQuestion { id: QuestionId::new(n), text: "Which?".into(), choices: Vec::new() }
}

/// Returns the events of the Job `lags`.
fn events_of_lags() -> Vec<JobEvent> {
    let (text, by) = ("Jane".to_owned(), "ada".to_owned());
    let replied = Event::UserReplied { question: QuestionId::new(1), text, by, nth: None };
    let asked = Event::UserAsked { question: question(2), about: QuestionSubject::Draft };
    let parked = Event::Parked { reason: ParkReason::Reply };
    (1..).zip([replied, asked, parked]).map(|(seq, event)| shown(seq, event)).collect()
}

impl Tenant for Recorder {
    type Events = BoxStream<'static, Result<Arc<JobEvent>, Error>>;

    async fn check_following(&self) -> Result<(), Error> {
        if self.refuses_following { Err(Error::new(ErrorKind::Forbidden, "no pods/log")) } else { Ok(()) }
    }

    async fn start(&self, job: NewJob) -> Result<String, Error> {
        if job.goal == "conflict" {
            return Err(Error::new(ErrorKind::Conflict, "the key has another Job"));
        }
        self.started.lock().unwrap().push(job);
        Ok("k-1".into())
    }

    async fn send(&self, job: &str, input: Input) -> Result<(), Error> {
        check(job)?;
        self.sent.lock().unwrap().push(input);
        Ok(())
    }

    async fn jobs(&self) -> Result<Vec<JobSummary>, Error> {
        Ok(Vec::new())
    }

    async fn status(&self, job: &str) -> Result<JobStatus, Error> {
        check(job)?;
        let outcome = (job == "k-0").then(|| Outcome::new(OutcomeCode::Succeeded, "It ended."));
        let mut status = job_status(job, outcome, None);
        if job == "slow" {
            let read = self.read.fetch_add(1, Ordering::Relaxed);
            (status.status.log.events, status.status.usage.output_tokens) = (read, read);
        }
        if job == "lags" {
            status.status.log.events = self.read.fetch_add(1, Ordering::Relaxed);
            status.status.waiting_for = Some(WaitingFor::default());
        }
        if job == "pending" {
            status.status.phase = Phase::Pending;
            status.condition = Some("ModelMissing: there is no Model x".into());
        }
        Ok(status)
    }

    async fn timeline(&self, job: &str) -> Result<Vec<JobEvent>, Error> {
        check(job).map(|()| vec![job_event(1), job_event(2)])
    }

    async fn model_context(&self, job: &str) -> Result<ModelContext, Error> {
        check(job).map(|()| ModelContext { system: None, turns: Vec::new() })
    }

    async fn open_requests(&self, job: &str) -> Result<OpenRequests, Error> {
        check(job)?;
        let nth = match self.read.load(Ordering::Relaxed) {
            _ if job != "lags" => None,
            // The status that was read last has fewer events than the log.
            0..=3 => Some(1),
            4 => None,
            _ => Some(2),
        };
        let asked = nth.map(|nth| Question { question: question(nth), refused: None });
        let held = (job == "held").then(|| HeldCall {
            call: CallId::new(7, 0),
            tool: "refund".into(),
            arguments: "{}".into(),
            digest: Digest::of_bytes(b"{}"),
            reasons: Vec::new(),
            approvers: vec!["finance".into()],
        });
        let (approvals, questions) = (held.into_iter().collect(), asked.into_iter().collect());
        Ok(OpenRequests { approvals, questions, ..OpenRequests::default() })
    }

    async fn skills(&self) -> Result<Vec<SkillState>, Error> {
        Ok(vec![SkillState { name: "greeter".into(), ..SkillState::default() }])
    }

    async fn tools(&self, _: &str) -> Result<Vec<SkillTool>, Error> {
        Err(Error::new(ErrorKind::Unavailable, "the server does not answer"))
    }

    async fn events(&self, job: &str, after: Cursor) -> Result<Self::Events, Error> {
        check(job)?;
        if matches!(job, "lags" | "pending" | "held") {
            let events = if job == "lags" { events_of_lags() } else { Vec::new() };
            return Ok(stream::iter(events).map(|event| Ok(Arc::new(event))).chain(stream::pending()).boxed());
        }
        let events: Vec<_> = (1..=2).filter(|seq| after.lacks(*seq)).map(|seq| Ok(Arc::new(job_event(seq)))).collect();
        Ok(stream::iter(events.into_iter().chain([Err(Error::failed("the log is broken"))])).boxed())
    }

    async fn close(&self) {}
}

/// Returns a request of the user.
fn request(method: &str, path: &str) -> axum::http::request::Builder {
    let request = Request::builder().method(method).uri(path).header(HOST, "localhost:80");
    request.header(AUTHORIZATION, "Bearer t-1")
}

fn post(path: &str, body: &Value) -> Request<Body> {
    request("POST", path).header(CONTENT_TYPE, "application/json").body(Body::from(body.to_string())).unwrap()
}

fn get(path: &str) -> Request<Body> {
    request("GET", path).body(Body::empty()).unwrap()
}

async fn respond(runtime: &Recorder, request: Request<Body>) -> Response {
    respond_with(runtime, LoopbackAccess::new(80, "t-1", "ada"), request).await
}

async fn respond_with<A: Access<Caller = String>>(runtime: &Recorder, access: A, request: Request<Body>) -> Response {
    let gateway = Gateway { runtime: runtime.clone(), access, tenant: "local".into() };
    router(gateway).oneshot(request).await.unwrap()
}

async fn text(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn a_request_of_the_older_runtime_starts_a_job() {
    let runtime = Recorder::default();
    let body = json!({"goal": "Fix it", "skillSlug": "sw-dev-senior", "resources": {"codebase": "/src"}});
    let response = respond(&runtime, post("/api/chat", &body)).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    assert_eq!(response.headers()[LOCATION], "/api/jobs/k-1");
    assert_eq!(text(response).await, r#"{"job":"k-1"}"#);
    let body = json!({"goal": "Fix it", "projectPath": "/src"});
    assert_eq!(respond(&runtime, post("/api/chat", &body)).await.status(), StatusCode::ACCEPTED);
    let resources = [("codebase".to_owned(), "/src".to_owned())];
    let with_path = NewJob { resources: resources.into(), ..NewJob::new("Fix it") };
    let with_skill = NewJob { skill: Some("sw-dev-senior".into()), ..with_path.clone() };
    assert_eq!(*runtime.started.lock().unwrap(), [with_skill, with_path]);
}

/// An access whose requests name their tenants.
struct Choosing(LoopbackAccess);

impl Access for Choosing {
    type Caller = String;

    const CHOOSES_TENANT: bool = true;

    async fn identify(&self, method: &Method, headers: &HeaderMap) -> Result<Identity<String>, Problem> {
        self.0.identify(method, headers).await
    }
}

#[tokio::test]
async fn a_request_names_its_namespace() {
    let respond = async |request| {
        let access = Choosing(LoopbackAccess::new(80, "t-1", "ada"));
        respond_with(&Recorder::default(), access, request).await
    };
    let body = json!({"goal": "Fix it"});
    let response = respond(post("/api/chat?namespace=acme", &body)).await;
    assert_eq!(response.headers()[LOCATION], "/api/jobs/k-1?namespace=acme");
    let mut by_header = post("/api/chat", &body);
    by_header.headers_mut().insert("bloomery-namespace", "acme".parse().unwrap());
    assert_eq!(respond(by_header).await.headers()[LOCATION], "/api/jobs/k-1?namespace=acme");
    assert_eq!(respond(post("/api/chat", &body)).await.headers()[LOCATION], "/api/jobs/k-1");
    let session = text(respond(get("/api/session?namespace=acme")).await).await;
    assert_eq!(session, r#"{"user":"ada","namespace":"acme","choosesNamespace":true}"#);
    assert_eq!(respond(get("/api/jobs?namespace=x")).await.status(), StatusCode::NOT_FOUND);
    let twice = get("/api/jobs?namespace=acme&namespace=local");
    assert_eq!(respond(twice).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_client_that_accepts_events_follows_the_job() {
    let mut request = post("/api/chat", &json!({"goal": "Fix it"}));
    request.headers_mut().insert(ACCEPT, "text/event-stream".parse().unwrap());
    let response = respond(&Recorder::default(), request).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    let events = text(response).await;
    assert!(
        events.contains("id: 1\n") && events.contains("event: tool.started\n") && events.contains("id: 2\n"),
        "{events}"
    );
    let (_, problem) = events.split_once("event: problem\n").unwrap();
    assert!(problem.contains("the log is broken") && !problem.contains("id: "), "{problem}");
}

#[tokio::test]
async fn who_may_not_follow_jobs_starts_none_to_follow() {
    let runtime = Recorder { refuses_following: true, ..Recorder::default() };
    let goal = json!({"goal": "Fix it"});
    let mut followed = post("/api/chat", &goal);
    followed.headers_mut().insert(ACCEPT, "text/event-stream".parse().unwrap());
    let chat = json!({"model": "greeter", "messages": [{"role": "user", "content": "Greet me"}]});
    for request in [followed, post("/v1/chat/completions", &chat)] {
        assert_eq!(respond(&runtime, request).await.status(), StatusCode::FORBIDDEN);
    }
    assert!(runtime.started.lock().unwrap().is_empty());
    assert_eq!(respond(&runtime, post("/api/chat", &goal)).await.status(), StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_client_goes_on_after_its_last_event() {
    let follow = |job: &'static str, last: &'static str| async move {
        let mut request = get(&format!("/api/jobs/{job}/events"));
        request.headers_mut().insert("last-event-id", last.parse().unwrap());
        respond(&Recorder::default(), request).await
    };
    let events = text(follow("k-1", "1").await).await;
    assert!(!events.contains("id: 1\n") && events.contains("id: 2\n"), "{events}");
    assert_eq!(follow("k-1", "latest").await.status(), StatusCode::BAD_REQUEST);
    // A running Job will have further events. An ended one has none.
    for (job, last, status) in
        [("k-1", "2", StatusCode::OK), ("k-0", "1", StatusCode::OK), ("k-0", "2", StatusCode::NO_CONTENT)]
    {
        assert_eq!(follow(job, last).await.status(), status, "{job} after {last}");
    }
}

#[tokio::test]
async fn the_input_of_people_is_sent() {
    let runtime = Recorder::default();
    let digest = Digest::of_bytes(b"{}");
    let decision = json!({"decision": "deny", "digest": digest, "approver": "finance", "reason": "no"});
    for (path, body) in [
        ("replies", json!({"question": "q-1", "text": "Jane"})),
        ("replies", json!({"text": "hurry"})),
        ("approvals/7-0", decision),
        ("cancel", json!({})),
    ] {
        let response = respond(&runtime, post(&format!("/api/jobs/k-1/{path}"), &body)).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED, "{path}");
    }
    let expected = [
        Input::Reply { question: QuestionId::new(1), text: "Jane".into() },
        Input::Message { text: "hurry".into() },
        Input::Decision {
            call: CallId::new(7, 0),
            digest,
            approver: "finance".into(),
            ruling: Ruling::Deny,
            reason: Some("no".into()),
        },
        Input::Cancel,
    ];
    assert_eq!(runtime.sent(), expected);
}

#[rstest]
#[case::no_such_job(get("/api/jobs/k-2"), StatusCode::NOT_FOUND, "there is no Job k-2")]
#[case::a_failure(get("/api/jobs/broken"), StatusCode::INTERNAL_SERVER_ERROR, "the log is broken")]
#[case::option(get("/api/jobs/large"), StatusCode::BAD_REQUEST, "`limits` steps: must")]
#[case::unavailable(get("/api/skills/greeter/tools"), StatusCode::SERVICE_UNAVAILABLE, "does not answer")]
#[case::no_such_projection(get("/api/jobs/k-1/projections/x"), StatusCode::NOT_FOUND, "timeline")]
#[case::no_such_path(get("/api/x"), StatusCode::NOT_FOUND, "There is no /api/x.")]
#[case::other_method(get("/api/chat"), StatusCode::METHOD_NOT_ALLOWED, "has no method GET")]
#[case::no_goal(post("/api/chat", &json!({})), StatusCode::UNPROCESSABLE_ENTITY, "missing field `goal`")]
#[case::unknown_field(post("/api/chat", &json!({"goal": "x", "gaol": 1})), StatusCode::UNPROCESSABLE_ENTITY, "gaol")]
#[case::bound_twice(
    post("/api/chat", &json!({"goal": "x", "projectPath": "/a", "resources": {"codebase": "/b"}})),
    StatusCode::BAD_REQUEST,
    "projectPath"
)]
#[case::conflict(post("/api/chat", &json!({"goal": "conflict"})), StatusCode::CONFLICT, "another Job")]
#[case::too_large(post("/api/chat", &json!({"goal": "x".repeat(1 << 17)})), StatusCode::PAYLOAD_TOO_LARGE, "")]
#[tokio::test]
async fn an_error_is_a_problem(#[case] request: Request<Body>, #[case] status: StatusCode, #[case] says: &str) {
    let response = respond(&Recorder::default(), request).await;
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["status"], status.as_u16());
    assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
}

#[tokio::test]
async fn an_idempotency_key_with_another_body_is_unprocessable() {
    let runtime = Recorder::default();
    let with_key = |goal: &str| {
        let mut request = post("/api/chat", &json!({"goal": goal}));
        request.headers_mut().insert("idempotency-key", "one".parse().unwrap());
        request
    };
    assert_eq!(respond(&runtime, with_key("x")).await.status(), StatusCode::ACCEPTED);
    assert!(runtime.started.lock().unwrap()[0].key.as_ref().unwrap().starts_with("i-"));
    assert_eq!(respond(&runtime, with_key("conflict")).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
}

#[rstest]
#[case(HOST, "evil.example:80", StatusCode::FORBIDDEN)]
#[case(AUTHORIZATION, "Bearer t-2", StatusCode::UNAUTHORIZED)]
#[tokio::test]
async fn another_host_or_token_reaches_no_tenant(
    #[case] header: axum::http::HeaderName,
    #[case] value: &str,
    #[case] status: StatusCode,
) {
    let runtime = Recorder::default();
    let mut request = post("/api/chat", &json!({"goal": "x"}));
    request.headers_mut().insert(header, value.parse().unwrap());
    assert_eq!(respond(&runtime, request).await.status(), status);
    assert!(runtime.started.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_user_who_sends_too_many_requests_waits() {
    let access = LoopbackAccess::new(80, "t-1", "ada");
    let router = router(Gateway { runtime: Recorder::default(), access, tenant: "local".into() });
    let mut statuses = Vec::new();
    for _ in 0..=120 {
        let response = router.clone().oneshot(post("/api/jobs/k-1/cancel", &json!({}))).await.unwrap();
        statuses.push(response.status());
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            assert_eq!(response.headers()["retry-after"], "1");
            break;
        }
    }
    assert!(statuses.len() > 100, "{statuses:?}");
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS));
}

#[tokio::test]
async fn an_error_of_the_openai_front_has_its_form() {
    for (request, status, code) in [
        (get("/v1/x"), StatusCode::NOT_FOUND, json!("model_not_found")),
        (get("/v1/chat/completions"), StatusCode::METHOD_NOT_ALLOWED, Value::Null),
        (post("/v1/chat/completions", &json!({"model": "x"})), StatusCode::UNPROCESSABLE_ENTITY, Value::Null),
        (
            post("/v1/chat/completions", &json!({"model": "x", "messages": "x".repeat(2 << 20)})),
            StatusCode::PAYLOAD_TOO_LARGE,
            Value::Null,
        ),
    ] {
        let response = respond(&Recorder::default(), request).await;
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let body: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(body["error"]["code"], code, "{body}");
        assert!(body["error"]["message"].is_string() && body["error"]["param"].is_null(), "{body}");
    }
    let mut request = get("/v1/models");
    request.headers_mut().insert(AUTHORIZATION, "Bearer t-2".parse().unwrap());
    let body: Value = serde_json::from_str(&text(respond(&Recorder::default(), request).await).await).unwrap();
    assert_eq!(body["error"]["code"], "invalid_api_key");
}

#[tokio::test]
async fn each_usable_skill_is_a_model() {
    let models: Value =
        serde_json::from_str(&text(respond(&Recorder::default(), get("/v1/models")).await).await).unwrap();
    let model = json!({"id": "greeter", "object": "model", "created": 0, "owned_by": "bloomery"});
    assert_eq!(models, json!({"object": "list", "data": [model]}));
}

#[tokio::test]
async fn the_description_needs_no_identity_and_no_other_site_reads_anything() {
    let request = Request::builder().uri("/openapi.json").body(Body::empty()).unwrap();
    let response = respond(&Recorder::default(), request).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    let mut preflight = request_of_other_site("OPTIONS");
    preflight.headers_mut().insert("access-control-request-method", "POST".parse().unwrap());
    for request in [preflight, request_of_other_site("POST")] {
        let response = respond(&Recorder::default(), request).await;
        assert!(response.headers().keys().all(|name| !name.as_str().starts_with("access-control-")), "{response:?}");
    }
}

fn request_of_other_site(method: &str) -> Request<Body> {
    let mut request = post("/api/chat", &json!({"goal": "x"}));
    *request.method_mut() = method.parse().unwrap();
    request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    request
}

#[tokio::test]
async fn a_path_that_is_no_text_is_a_problem() {
    let response = respond(&Recorder::default(), get("/api/jobs/%FF")).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
}

#[tokio::test]
async fn the_page_is_public_and_its_session_is_not() {
    let public = Request::builder().uri("/").header(HOST, "localhost:80").body(Body::empty()).unwrap();
    assert_eq!(respond(&Recorder::default(), public).await.status(), StatusCode::OK);
    let session = text(respond(&Recorder::default(), get("/api/session")).await).await;
    assert_eq!(session, r#"{"user":"ada","namespace":"local","choosesNamespace":false}"#);
    let anonymous = Request::builder().uri("/api/session").header(HOST, "localhost:80").body(Body::empty()).unwrap();
    assert_eq!(respond(&Recorder::default(), anonymous).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn lists_have_items() {
    let skills = text(respond(&Recorder::default(), get("/api/skills")).await).await;
    assert_eq!(skills, r#"{"items":[{"name":"greeter"}]}"#);
    assert_eq!(text(respond(&Recorder::default(), get("/api/jobs")).await).await, r#"{"items":[]}"#);
    let timeline = text(respond(&Recorder::default(), get("/api/jobs/k-1/projections/timeline")).await).await;
    assert_eq!(serde_json::from_str::<Value>(&timeline).unwrap()["items"][1]["seq"], 2);
}
