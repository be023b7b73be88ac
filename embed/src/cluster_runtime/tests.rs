//! The runtime over an API server in memory.

use super::{Caller, ClusterRuntime, ClusterTenant};
use crate::cursor::Cursor;
use crate::error::ErrorKind;
use crate::event::JobEvent;
use crate::input::{Input, Ruling};
use crate::job::NewJob;
use crate::requests::MissingRights;
use crate::runtime::{Runtime, Tenant};
use bloomery_crds::Digest;
use bloomery_engine::Event;
use bloomery_engine::event::{CallId, QuestionId};
use bloomery_engine::line::{Chain, EventTime};
use bloomery_testkit::api_server::{ApiServer, refusal};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use hyper::StatusCode;
use kube::Config;
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The timeout for events that happen soon.
const TIMEOUT: Duration = Duration::from_mins(1);

const JOB: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund";
const SKILL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/desk";
const SOURCE: &str = "/namespaces/acme/skilljobs/refund/uid-1";

/// An API server, and a runtime for it.
pub(super) struct Setup {
    pub(super) api: ApiServer,
    runtime: ClusterRuntime,
}

impl Setup {
    pub(super) async fn new() -> Self {
        let api = ApiServer::default();
        let config = Config::new(api.serve().await.parse().unwrap());
        Self { api, runtime: ClusterRuntime::new(&config, Some("worker:1".into())).unwrap() }
    }

    /// Opens the namespace for a user, whom this program impersonates.
    pub(super) async fn open(&self, user: &str) -> ClusterTenant {
        let caller = Caller::Impersonated { user: user.into(), groups: vec!["support".into()] };
        self.runtime.open("acme", caller).await.unwrap()
    }

    pub(super) fn put_job(&self, status: &Value) {
        self.api.put(
            JOB,
            json!({
                "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
                "metadata": {"name": "refund", "namespace": "acme", "uid": "uid-1"},
                "spec": {"skill": "desk", "goal": "Refund"},
                "status": status,
            }),
        );
    }

    /// Stores the Skill `desk` with these resources.
    fn put_skill(&self, resources: &Value) {
        let spec = json!({"problem": {"statement": "Help"}, "resources": resources});
        let metadata = json!({"name": "desk", "namespace": "acme"});
        let skill = json!({"apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "metadata": metadata, "spec": spec});
        self.api.put(SKILL, skill);
    }

    /// Stores the Job with a call that waits for finance. Returns the path of the Approval.
    fn put_held_call(&self, digest: &Digest) -> String {
        let (name, path) = self.put_approval(digest, "finance");
        self.put_job(&json!({"phase": "AwaitingApproval", "waitingFor": {"approvals": [name]}}));
        path
    }

    /// Stores the Approval of a call of the Job for an approver. Returns its name and its path.
    fn put_approval(&self, digest: &Digest, approver: &str) -> (String, String) {
        let name = bloomery_crds::names::approval("refund", "uid-1", "9-0", approver);
        let path = format!("/apis/bloomery.dev/v1alpha1/namespaces/acme/approvals/{name}");
        let spec = json!({
            "job": "refund", "jobUid": "uid-1", "approver": approver, "tool": "pay", "callId": "9-0", "arguments": "{}",
            "argumentsDigest": digest, "expiresAt": "2037-01-15T08:00:00Z",
        });
        let metadata = json!({"name": name, "namespace": "acme", "uid": format!("uid-{approver}")});
        let approval =
            json!({"apiVersion": "bloomery.dev/v1alpha1", "kind": "Approval", "metadata": metadata, "spec": spec});
        self.api.put(&path, approval);
        (name, path)
    }

    /// Stores an ended worker pod of the Job, with the log of the attempt.
    fn put_pod(&self, attempt: u32, log: &str) {
        self.put_pod_with(attempt, log, &worker(&json!({"terminated": {"exitCode": 0}}), "Succeeded"));
    }

    /// Stores a worker pod of the Job that runs, with its log so far. A reader of the log reaches its end, as if the connection to the
    /// node were lost.
    fn put_running_pod(&self, attempt: u32, log: &str) {
        // Another phase would let the pod end with the log.
        self.put_pod_with(attempt, log, &worker(&json!({"running": {}}), "Unknown"));
    }

    fn put_pod_with(&self, attempt: u32, log: &str, status: &Value) {
        let name = format!("refund-{attempt}-uid-1");
        let owner = json!({"apiVersion": "bloomery.dev/v1alpha1", "kind": "Job", "name": "refund", "uid": "uid-1"});
        self.api.put(
            &format!("/api/v1/namespaces/acme/pods/{name}"),
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": name, "namespace": "acme", "uid": name, "ownerReferences": [owner],
                    "labels": {"bloomery.dev/job": "refund", "bloomery.dev/attempt": attempt.to_string()},
                },
                "status": status,
            }),
        );
        self.api.logs(&name, log);
    }

    /// Lets reader pods start, and print a log.
    fn put_reader(&self, log: &str) {
        self.api.on_create(|pod| pod["status"] = worker(&json!({"running": {}}), "Running"));
        self.api.logs("refund-events-", log);
    }

    /// Returns the number of created pods.
    fn created_pods(&self) -> usize {
        self.api.requests().iter().filter(|request| request.contains("POST /api/v1/namespaces/acme/pods")).count()
    }
}

fn worker(state: &Value, phase: &str) -> Value {
    json!({
        "phase": phase,
        "containerStatuses": [
            {"name": "worker", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state},
        ],
    })
}

/// Returns the lines of a log, each with its line feed.
pub(super) fn lines(count: usize) -> Vec<String> {
    let mut chain = Chain::new(SOURCE);
    let stamp = || EventTime { time: "2027-01-15T08:00:00Z".into(), elapsed_ms: 1 };
    let event = |index| Event::ToolStarted { call: CallId::new(1, index) };
    (0..count).map(|index| chain.append(event(index), stamp()).unwrap().0 + "\n").collect()
}

fn ended(events: u64) -> Value {
    json!({
        "phase": "Succeeded", "outcome": {"code": "Succeeded", "message": "It ended."}, "log": position(events),
    })
}

pub(super) fn running(events: u64) -> Value {
    json!({"phase": "Running", "log": position(events)})
}

fn position(events: u64) -> Value {
    json!({"path": "jobs/uid-1", "events": events, "head": Digest::of_bytes(b"")})
}

/// Returns the resources of a Skill that requires `codebase`.
fn codebase() -> Value {
    json!([{"name": "codebase", "type": "filesystem", "required": true}])
}

async fn events(tenant: &ClusterTenant, after: u64) -> Result<Vec<u64>, crate::Error> {
    let events = tenant.events("refund", Cursor::after(after)).await?;
    let events = tokio::time::timeout(TIMEOUT, events.try_collect::<Vec<Arc<JobEvent>>>()).await.unwrap()?;
    Ok(events.iter().map(|event| event.seq).collect())
}

/// Returns the number of the next event.
async fn next_seq(events: &mut BoxStream<'static, Result<Arc<JobEvent>, crate::Error>>) -> u64 {
    tokio::time::timeout(TIMEOUT, events.next()).await.unwrap().unwrap().unwrap().seq
}

#[tokio::test]
async fn a_second_start_with_a_key_is_the_same_job() {
    let setup = Setup::new().await;
    let tenant = setup.open("ada").await;
    setup.put_skill(&json!([]));
    let new = |goal: &str| NewJob { skill: Some("desk".into()), key: Some("i-17".into()), ..NewJob::new(goal) };
    assert_eq!(tenant.start(new("Refund")).await.unwrap(), "i-17");
    assert_eq!(tenant.start(new("Refund")).await.unwrap(), "i-17");
    assert_eq!(tenant.start(new("Pay")).await.unwrap_err().kind, ErrorKind::Conflict);
    let jobs = tenant.jobs().await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.job.as_str()).collect::<Vec<_>>(), ["i-17"]);
    let requests = setup.api.requests();
    assert!(requests.iter().all(|request| request.starts_with("ada ")), "{requests:?}");
}

#[tokio::test]
async fn two_starts_with_a_key_at_the_same_moment_are_the_same_job() {
    let setup = Setup::new().await;
    let tenant = setup.open("ada").await;
    let new = |key: &str, goal: &str| NewJob { key: Some(key.to_owned()), ..NewJob::new(goal) };
    for key in ["i-17", "i-18"] {
        let path = format!("/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/{key}");
        tenant.start(new(key, "Refund")).await.unwrap();
        // The other start comes after this one has found no Job.
        setup.api.meanwhile(&path, setup.api.get(&path));
        setup.api.remove(&path);
    }
    assert_eq!(tenant.start(new("i-17", "Refund")).await.as_deref(), Ok("i-17"));
    assert_eq!(tenant.start(new("i-18", "Pay")).await.unwrap_err().kind, ErrorKind::Conflict);
}

#[tokio::test]
async fn a_missing_right_is_named() {
    let setup = Setup::new().await;
    setup.api.deny(&["create skilljobs"]);
    let error = setup.open("eve").await.start(NewJob::new("Refund")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden);
    assert!(error.message.contains("the verb create on skilljobs.bloomery.dev"), "{error}");
}

#[tokio::test]
async fn a_job_without_a_required_resource_is_not_created() {
    let setup = Setup::new().await;
    setup.put_skill(&codebase());
    let tenant = setup.open("ada").await;
    let with = |resources: &[(&str, &str)]| NewJob {
        skill: Some("desk".into()),
        resources: resources.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect(),
        ..NewJob::new("Refund")
    };
    for refused in [with(&[]), with(&[("codebase", "https://api.example")]), with(&[("codbase", "claim:code")])] {
        let error = tenant.start(refused).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.message.contains("resources.codebase") && error.message.contains("claim:NAME"), "{error}");
    }
    assert!(tenant.jobs().await.unwrap().is_empty());
    assert!(tenant.start(with(&[("codebase", "claim:code")])).await.is_ok());
    // The operator checks the Jobs of who may not read Skills.
    setup.api.deny(&["get skills"]);
    assert!(tenant.start(NewJob { key: Some("i-17".into()), ..with(&[]) }).await.is_ok());
}

#[tokio::test]
async fn a_skill_that_does_not_exist_is_named_with_its_namespace() {
    let setup = Setup::new().await;
    setup.put_skill(&json!([]));
    let tenant = setup.open("ada").await;
    let of = |skill: &str| NewJob { skill: Some(skill.to_owned()), ..NewJob::new("Refund") };
    for error in [tenant.start(of("desc")).await.unwrap_err(), tenant.tools("desc").await.unwrap_err()] {
        assert_eq!(error.kind, ErrorKind::NotFound);
        let says = "the namespace acme has no Skill desc. Did you mean \"desk\"?";
        assert!(error.message.starts_with(says), "{error}");
    }
    for error in [tenant.start(of("../desk")).await.unwrap_err(), tenant.tools("../desk").await.unwrap_err()] {
        assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    }
    setup.api.deny(&["list skills"]);
    let error = tenant.start(of("desc")).await.unwrap_err();
    assert!(error.kind == ErrorKind::NotFound && !error.message.contains("desk"), "{error}");
    assert!(tenant.jobs().await.unwrap().is_empty());
    // The operator creates the default Skill from its template, and checks the Jobs of who may not read Skills.
    assert!(tenant.start(NewJob::new("Refund")).await.is_ok());
    setup.api.deny(&["get skills"]);
    assert!(tenant.start(of("desc")).await.is_ok());
}

#[tokio::test]
async fn a_repeated_start_finds_its_job_after_the_skill_has_changed_or_is_gone() {
    let setup = Setup::new().await;
    setup.put_skill(&json!([]));
    let tenant = setup.open("ada").await;
    let new =
        |key: &str, goal: &str| NewJob { skill: Some("desk".into()), key: Some(key.to_owned()), ..NewJob::new(goal) };
    assert_eq!(tenant.start(new("i-17", "Refund")).await.as_deref(), Ok("i-17"));
    setup.put_skill(&codebase());
    assert_eq!(tenant.start(new("i-18", "Refund")).await.unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(tenant.start(new("i-17", "Refund")).await.as_deref(), Ok("i-17"));
    setup.api.remove(SKILL);
    assert_eq!(tenant.start(new("i-18", "Refund")).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(tenant.start(new("i-17", "Refund")).await.as_deref(), Ok("i-17"));
    assert_eq!(tenant.start(new("i-17", "Pay")).await.unwrap_err().kind, ErrorKind::Conflict);
    // Who may not read Jobs cannot compare them.
    setup.put_skill(&json!([]));
    setup.api.deny(&["get skilljobs"]);
    assert_eq!(tenant.start(new("i-17", "Refund")).await.unwrap_err().kind, ErrorKind::Forbidden);
    assert_eq!(tenant.start(new("i-18", "Refund")).await.as_deref(), Ok("i-18"));
}

#[tokio::test]
async fn who_may_not_follow_a_job_learns_it_before_the_start() {
    let setup = Setup::new().await;
    let tenant = setup.open("eve").await;
    tenant.check_following().await.unwrap();
    setup.api.deny(&["get pods/log", "watch pods"]);
    let error = tenant.check_following().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden);
    let missing =
        "missing in the namespace acme: the verb watch on pods, and the verb get on pods/log. Nothing was started";
    assert!(error.message.contains(missing), "{error}");
}

#[tokio::test]
async fn a_missing_right_to_impersonate_is_named() {
    let setup = Setup::new().await;
    setup.api.deny_impersonation("eve");
    let tenant = setup.open("eve").await;
    let started = tenant.start(NewJob::new("Refund")).await.unwrap_err();
    for error in [started, tenant.jobs().await.unwrap_err(), tenant.skills().await.unwrap_err()] {
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert!(error.message.contains("lacks the verb impersonate on users/eve."), "{error}");
    }
    assert!(setup.open("ada").await.jobs().await.is_ok());
}

#[rstest]
#[case("")]
#[case("Acme")]
#[case("acme/pods")]
#[case("..")]
#[tokio::test]
async fn a_namespace_is_no_path(#[case] name: &str) {
    let setup = Setup::new().await;
    let opened = setup.runtime.open(name, Caller::Token("t-1".into())).await;
    assert_eq!(opened.err().unwrap().kind, ErrorKind::Invalid);
    let tenant = setup.open("ada").await;
    assert_eq!(tenant.status("../skills/desk").await.unwrap_err().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn input_changes_the_objects() {
    let setup = Setup::new().await;
    let question = json!({"id": "q-1", "text": "Which?"});
    setup.put_job(&json!({"phase": "AwaitingReply", "waitingFor": {"questions": [question]}}));
    let tenant = setup.open("ada").await;
    let reply = |id| Input::Reply { question: QuestionId::new(id), text: "A-17".into() };
    assert_eq!(tenant.send("refund", reply(2)).await.unwrap_err().kind, ErrorKind::Conflict);
    tenant.send("refund", reply(1)).await.unwrap();
    // The response may have been lost.
    tenant.send("refund", reply(1)).await.unwrap();
    tenant.send("refund", Input::Message { text: "hurry".into() }).await.unwrap();
    let expected = json!([{"question": "q-1", "text": "A-17"}, {"text": "hurry"}]);
    assert_eq!(setup.api.get(JOB)["spec"]["replies"], expected);
    tenant.send("refund", Input::Cancel).await.unwrap();
    assert_eq!(setup.api.get(JOB)["spec"]["cancel"], true);
    let late = tenant.send("refund", Input::Message { text: "wait".into() }).await.unwrap_err();
    assert_eq!(late.kind, ErrorKind::TooLate);
}

#[tokio::test]
async fn a_decision_is_that_of_the_caller_on_the_arguments_that_were_shown() {
    let setup = Setup::new().await;
    let digest = Digest::of_bytes(b"{}");
    let path = setup.put_held_call(&digest);
    let tenant = setup.open("ada").await;
    let open = tenant.open_requests("refund").await.unwrap();
    assert_eq!((open.approvals[0].call.0.as_str(), &open.approvals[0].digest), ("9-0", &digest));
    assert_eq!(open.missing, MissingRights::default());
    let decision = |digest: &Digest, approver: &str| Input::Decision {
        call: CallId::new(9, 0),
        digest: digest.clone(),
        approver: approver.into(),
        ruling: Ruling::Deny,
        reason: Some("too much".into()),
    };
    for refused in [decision(&Digest::of_bytes(b"{1}"), "finance"), decision(&digest, "legal")] {
        assert_eq!(tenant.send("refund", refused).await.unwrap_err().kind, ErrorKind::Conflict);
    }
    tenant.send("refund", decision(&digest, "finance")).await.unwrap();
    let expected = json!({"verdict": "Deny", "by": "ada", "reason": "too much"});
    assert_eq!(setup.api.get(&path)["spec"]["decision"], expected);
    assert!(tenant.open_requests("refund").await.unwrap().approvals.is_empty());
}

#[tokio::test]
async fn open_requests_have_the_rights_that_the_caller_lacks() {
    let setup = Setup::new().await;
    setup.put_held_call(&Digest::of_bytes(b"{}"));
    setup.api.deny(&["patch skilljobs", "approve approvers"]);
    let missing = setup.open("eve").await.open_requests("refund").await.unwrap().missing;
    let patch = "the verb patch on skilljobs.bloomery.dev/refund";
    assert_eq!((missing.reply.as_deref(), missing.cancel.as_deref()), (Some(patch), Some(patch)));
    assert_eq!(missing.decide["finance"], "the verb approve on approvers.bloomery.dev/finance");
}

#[tokio::test]
async fn a_caller_whom_a_policy_refuses_may_not_decide() {
    let setup = Setup::new().await;
    let path = setup.put_held_call(&Digest::of_bytes(b"{}"));
    setup.api.admit(|write| {
        let message = "a service account may not decide on an Approval";
        let is_refused = write.user == "robot" && write.body["spec"]["decision"].is_object();
        if is_refused { Err(refusal(StatusCode::FORBIDDEN, "Forbidden", message)) } else { Ok(()) }
    });
    let missing = setup.open("robot").await.open_requests("refund").await.unwrap().missing;
    assert_eq!((missing.reply, missing.cancel), (None, None));
    assert!(missing.decide["finance"].contains("a service account may not decide"), "{:?}", missing.decide);
    let open = setup.open("ada").await.open_requests("refund").await.unwrap();
    assert_eq!(open.missing, MissingRights::default());
    // Finding this out decides nothing.
    assert!(setup.api.get(&path)["spec"]["decision"].is_null());
}

#[tokio::test]
async fn the_caller_is_looked_up_once_for_all_held_calls() {
    let setup = Setup::new().await;
    let digest = Digest::of_bytes(b"{}");
    let approvals = ["finance", "legal"].map(|approver| setup.put_approval(&digest, approver).0);
    setup.put_job(&json!({"phase": "AwaitingApproval", "waitingFor": {"approvals": approvals}}));
    let open = setup.open("ada").await.open_requests("refund").await.unwrap();
    assert_eq!(open.missing, MissingRights::default());
    let requests = setup.api.requests();
    let count = |part: &str| requests.iter().filter(|request| request.contains(part)).count();
    let dry_runs = count(" PATCH /apis/bloomery.dev/v1alpha1/namespaces/acme/approvals/");
    assert_eq!((dry_runs, count("/selfsubjectreviews")), (2, 1), "{requests:?}");
}

#[tokio::test]
async fn the_logs_of_the_pods_are_the_events() {
    let setup = Setup::new().await;
    let lines = lines(4);
    setup.put_job(&ended(4));
    setup.put_pod(1, &format!("{}a line for people\n", lines[..2].concat()));
    // The second attempt repeats a line.
    setup.put_pod(2, &lines[1..].concat());
    let tenant = setup.open("ada").await;
    assert_eq!(events(&tenant, 0).await.unwrap(), [1, 2, 3, 4]);
    assert_eq!(events(&tenant, 3).await.unwrap(), [4]);
    assert_eq!(tenant.timeline("refund").await.unwrap().len(), 4);
    assert_eq!(setup.created_pods(), 0);
}

#[tokio::test]
async fn events_that_no_pod_has_come_from_a_reader_pod() {
    let setup = Setup::new().await;
    let lines = lines(4);
    setup.put_job(&ended(4));
    setup.put_pod(2, &lines[2..].concat());
    setup.put_reader(&lines.concat());
    let tenant = setup.open("ada").await;
    assert_eq!(events(&tenant, 2).await.unwrap(), [3, 4]);
    assert_eq!(setup.created_pods(), 0);
    assert_eq!(events(&tenant, 0).await.unwrap(), [1, 2, 3, 4]);
    assert_eq!(setup.created_pods(), 1);
}

#[tokio::test]
async fn a_log_that_ends_before_its_pod_is_read_again() {
    let setup = Setup::new().await;
    let lines = lines(2);
    setup.put_job(&running(0));
    setup.put_running_pod(1, &lines[0]);
    let tenant = setup.open("ada").await;
    let mut events = tenant.events("refund", Cursor::START).await.unwrap();
    assert_eq!(next_seq(&mut events).await, 1);
    setup.api.logs("refund-1-uid-1", &lines.concat());
    assert_eq!(next_seq(&mut events).await, 2);
    assert_eq!(setup.created_pods(), 0);
}

#[tokio::test]
async fn events_that_a_rotation_has_removed_arrive_while_the_job_runs() {
    let setup = Setup::new().await;
    let lines = lines(3);
    setup.put_job(&running(2));
    setup.put_running_pod(1, "");
    setup.put_reader(&lines[..2].concat());
    let tenant = setup.open("ada").await;
    let mut events = tenant.events("refund", Cursor::START).await.unwrap();
    assert_eq!((next_seq(&mut events).await, next_seq(&mut events).await), (1, 2));
    setup.api.logs("refund-1-uid-1", &lines[2]);
    assert_eq!(next_seq(&mut events).await, 3);
    assert_eq!(setup.created_pods(), 1);
}

/// The node was lost with the pod, so no log has the second event.
#[tokio::test]
async fn events_of_a_pod_that_is_gone_come_from_a_reader_pod_once_a_later_event_arrives() {
    let setup = Setup::new().await;
    let lines = lines(3);
    setup.put_job(&running(0));
    setup.put_running_pod(1, &lines[0]);
    setup.put_reader(&lines.concat());
    let tenant = setup.open("ada").await;
    let mut events = tenant.events("refund", Cursor::START).await.unwrap();
    assert_eq!(next_seq(&mut events).await, 1);
    setup.api.remove("/api/v1/namespaces/acme/pods/refund-1-uid-1");
    setup.put_running_pod(2, &lines[2]);
    assert_eq!((next_seq(&mut events).await, next_seq(&mut events).await), (2, 3));
    assert_eq!(setup.created_pods(), 1);
}

#[tokio::test]
async fn who_may_create_no_pods_has_the_projections() {
    let setup = Setup::new().await;
    setup.put_job(&ended(4));
    setup.api.deny(&["create pods"]);
    let tenant = setup.open("eve").await;
    let error = events(&tenant, 0).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden);
    assert!(error.message.contains("the verb create on pods"), "{error}");
    assert_eq!(tenant.status("refund").await.unwrap().status.log.events, 4);
}

#[tokio::test]
async fn each_subscriber_needs_its_own_rights() {
    let setup = Setup::new().await;
    setup.put_job(&ended(2));
    setup.put_pod(1, &lines(2).concat());
    setup.api.deny(&["get pods/log"]);
    let error = events(&setup.open("eve").await, 0).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden);
    assert!(error.message.contains("the verb get on pods/log"), "{error}");
}

#[tokio::test]
async fn a_subscriber_whose_token_expires_does_not_stop_the_events_of_the_others() {
    let setup = Setup::new().await;
    setup.put_job(&json!({"phase": "Running"}));
    let (ada, eve) = (setup.open("ada").await, setup.open("eve").await);
    let _first = ada.events("refund", Cursor::START).await.unwrap();
    let mut second = eve.events("refund", Cursor::START).await.unwrap();
    setup.api.until_requested("ada WATCH /api/v1/namespaces/acme/pods").await;
    setup.api.expire("ada");
    setup.put_pod(1, &lines(1).concat());
    let event = tokio::time::timeout(TIMEOUT, second.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(event.seq, 1);
    let refused = ada.status("refund").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unauthenticated, "{refused}");
}

#[tokio::test]
async fn all_subscribers_have_one_upstream_which_moves_to_another_one() {
    let setup = Setup::new().await;
    setup.put_job(&json!({"phase": "Running"}));
    let (ada, eve) = (setup.open("ada").await, setup.open("eve").await);
    let mut first = ada.events("refund", Cursor::START).await.unwrap();
    let mut second = eve.events("refund", Cursor::START).await.unwrap();
    setup.api.until_requested("WATCH /api/v1/namespaces/acme/pods").await;
    setup.put_pod(1, &lines(2)[..1].concat());
    let next = async { (first.next().await.unwrap().unwrap().seq, second.next().await.unwrap().unwrap().seq) };
    assert_eq!(tokio::time::timeout(TIMEOUT, next).await.unwrap(), (1, 1));
    let logs = setup.api.requests().iter().filter(|request| request.contains("/log")).count();
    assert_eq!(logs, 1);

    drop(first);
    setup.api.until_requested("eve WATCH /api/v1/namespaces/acme/pods").await;
    setup.put_pod(2, &lines(2)[1..].concat());
    setup.put_job(&ended(2));
    let rest = tokio::time::timeout(TIMEOUT, second.try_collect::<Vec<_>>()).await.unwrap().unwrap();
    assert_eq!(rest.iter().map(|event| event.seq).collect::<Vec<_>>(), [2]);
}
