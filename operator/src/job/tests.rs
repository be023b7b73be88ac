//! Tests of single reconciles with an API server in memory. Each operator has just started, as after a crash.

use super::fixtures::api::FakeApi;
use super::fixtures::{UID, ended_pod, message, sealed};
use super::*;
use bloomery_crds::names;
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::{ParkReason, PodEnd};
use bloomery_crds::run::{self, Revision};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::reflector::ObjectRef;
use serde_json::{Value, json};

const JOB: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund";
const CONTINUED: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund-0";
const SKILL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/cs-tier-1";
const MODEL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/models/default";
const REVISION: &str = "cs-tier-1-4f1c9a2e";
const POD_1: &str = "/api/v1/namespaces/acme/pods/refund-1-01234";
const POD_2: &str = "/api/v1/namespaces/acme/pods/refund-2-01234";

fn condition(kind: &str) -> Value {
    json!({ "type": kind, "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

fn resource(kind: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "bloomery.dev/v1alpha1",
        "kind": kind,
        "metadata": { "namespace": "acme", "name": name, "uid": format!("{name}-uid"), "generation": 1 },
        "spec": spec,
        "status": status,
    })
}

fn put_skill(api: &FakeApi) {
    put_skill_of(api, "refunds", REVISION);
}

fn put_skill_of(api: &FakeApi, statement: &str, name: &str) {
    put_skill_with(api, &json!({ "problem": { "statement": statement } }), name);
}

fn put_skill_with(api: &FakeApi, spec: &Value, name: &str) {
    let compiled = Revision::new("cs-tier-1", serde_json::from_value(spec.clone()).unwrap(), None);
    let sealed = run::seal(&compiled).unwrap();
    let conditions = ["Accepted", "MemoryReady", "McpAvailable"].map(condition);
    let revision = json!({ "name": name, "digest": sealed.digest });
    let status = json!({ "observedGeneration": 1, "revision": revision, "conditions": conditions });
    api.put(SKILL, resource("Skill", "cs-tier-1", spec, &status));
    let stored = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "acme", "name": name, "uid": "map-uid" },
        "data": { "revision.json": sealed.text },
    });
    api.put(&format!("/api/v1/namespaces/acme/configmaps/{name}"), stored);
}

fn put_model(api: &FakeApi) {
    let spec = json!({ "provider": "openai", "model": "gpt-5-mini", "baseUrl": "https://x/v1" });
    let status = json!({ "observedGeneration": 1, "conditions": [condition("Ready")] });
    api.put(MODEL, resource("Model", "default", &spec, &status));
}

fn put_job(api: &FakeApi) {
    let job = json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": { "namespace": "acme", "name": "refund", "uid": UID, "generation": 1 },
        "spec": { "skill": "cs-tier-1", "goal": "Refund order A-17" },
        // The default of the CRD.
        "status": { "observedGeneration": -1 },
    });
    api.put(JOB, job);
}

/// An API server with a Skill, a Model and a Job.
fn tenant() -> FakeApi {
    let api = FakeApi::default();
    put_skill(&api);
    put_model(&api);
    put_job(&api);
    api
}

/// Reconciles the Job once, with an operator that has just started.
async fn reconcile_once(api: &FakeApi) -> Result<Action, Error> {
    let context = api.operator().await;
    let job = serde_json::from_value(api.get(JOB)).unwrap();
    Box::pin(reconcile(job, context, Arc::default())).await
}

/// Stores this status of the Job, with the conditions that follow from it and the current revision.
fn put_status(api: &FakeApi, mut status: JobStatus) {
    status.observed_generation = Some(1);
    status.skill_revision = serde_json::from_value(api.get(SKILL)["status"]["revision"].clone()).unwrap();
    let observations = super::status::phase_health(&status).observations();
    let stamp = StatusStamp { now: Time(fixtures::at(0)), generation: Some(1) };
    let status = super::status::with_conditions(status, observations, &stamp);
    api.change(JOB, |job| job["status"] = serde_json::to_value(status).unwrap());
}

/// The reason of the condition `Ready` of the Job.
fn reason(api: &FakeApi) -> String {
    let conditions = api.get(JOB)["status"]["conditions"].clone();
    let ready = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "Ready").unwrap();
    ready["reason"].as_str().unwrap().to_owned()
}

fn stored(pod: &Pod) -> Value {
    serde_json::to_value(pod).unwrap()
}

#[tokio::test]
async fn a_job_starts_with_two_writes_and_then_costs_none() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_1}"), format!("status {JOB}")]);
    let status = &api.get(JOB)["status"];
    assert_eq!((&status["phase"], &status["attempt"]["podUID"]), (&json!("Starting"), &json!("pod-uid-1")));
    assert_eq!(status["skillRevision"]["name"], REVISION);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_limit_above_that_of_the_skill_is_named_in_a_condition() {
    let api = tenant();
    let engine = json!({ "limits": { "steps": 80, "toolCalls": 30 } });
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "engine": engine }), REVISION);
    api.change(JOB, |job| job["spec"]["limits"] = json!({ "steps": 90, "toolCalls": 20 }));
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
    let conditions = api.get(JOB)["status"]["conditions"].clone();
    let conditions = conditions.as_array().unwrap();
    let limits = conditions.iter().find(|condition| condition["type"] == "LimitsAsWritten").unwrap();
    assert_eq!((&limits["status"], &limits["reason"]), (&json!("False"), &json!("AboveSkill")));
    assert_eq!(limits["message"], "spec.limits.steps is 90, and the Skill allows 80: 80 applies.");
}

#[tokio::test]
async fn a_revision_is_read_once_for_the_jobs_that_start_on_it() {
    const AGAIN: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/again";
    let api = tenant();
    api.put(AGAIN, resource("Job", "again", &json!({ "skill": "cs-tier-1", "goal": "Refund" }), &Value::Null));
    api.change(&format!("/api/v1/namespaces/acme/configmaps/{REVISION}"), |map| {
        map["immutable"] = json!(true);
        map["metadata"]["labels"] =
            json!({ (names::LABEL_MANAGED_BY): names::MANAGER, (names::LABEL_COMPONENT): "revision" });
    });
    let context = api.operator().await;
    api.reads();
    for job in [JOB, AGAIN] {
        let job = serde_json::from_value(api.get(job)).unwrap();
        Box::pin(reconcile(job, context.clone(), Arc::default())).await.unwrap();
    }
    assert_eq!(api.get(AGAIN)["status"]["skillRevision"]["name"], REVISION);
    let reads = api.reads();
    assert_eq!(reads.iter().filter(|read| read.contains(REVISION)).count(), 1, "{reads:?}");
}

#[tokio::test]
async fn a_pod_that_was_created_before_a_crash_is_adopted() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    api.change(JOB, |job| job["status"] = Value::Null);
    // The Skill was edited meanwhile. The Job stays on the revision of its pod.
    put_skill_of(&api, "returns", "cs-tier-1-edited");
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_1}"), format!("status {JOB}")]);
    let status = &api.get(JOB)["status"];
    assert_eq!(
        (&status["attempt"]["podUID"], &status["skillRevision"]["name"]),
        (&json!("pod-uid-1"), &json!(REVISION))
    );
}

#[tokio::test]
async fn a_job_waits_for_its_skill_and_its_model() {
    let api = FakeApi::default();
    put_job(&api);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "SkillNotFound");
    put_skill(&api);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "ModelNotFound");
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes().len(), 2, "a wait is written once");
    put_model(&api);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

/// A tenant whose Skill declares a file system, which the Job binds to the claim `src`.
fn tenant_with_a_claim(declared: &Value) -> FakeApi {
    let api = tenant();
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "resources": declared }), REVISION);
    api.change(JOB, |job| {
        job["spec"]["resources"] = json!({ "codebase": { "persistentVolumeClaim": { "claimName": "src" } } });
    });
    api
}

#[tokio::test]
async fn a_job_waits_for_a_missing_claim_and_then_mounts_it() {
    let api = tenant_with_a_claim(&json!([{ "name": "codebase", "type": "filesystem" }]));
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "ResourceNotFound");
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "namespace": "acme", "name": "src", "uid": "src" },
        "spec": { "accessModes": ["ReadWriteMany"] },
    });
    api.put("/api/v1/namespaces/acme/persistentvolumeclaims/src", claim);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
    let volumes = api.get(POD_1)["spec"]["volumes"].clone();
    let bound = volumes.as_array().unwrap().iter().find(|volume| volume["name"] == "claim-0").unwrap();
    assert_eq!(bound["persistentVolumeClaim"], json!({ "claimName": "src", "readOnly": true }));
}

#[tokio::test]
async fn an_invalid_binding_waits_without_a_revision_and_ends_the_job_with_one() {
    let api = tenant_with_a_claim(&json!([{ "name": "codebase", "type": "credential" }]));
    reconcile_once(&api).await.unwrap();
    assert_eq!((reason(&api).as_str(), &api.get(JOB)["status"]["phase"]), ("ResourcesInvalid", &json!("Pending")));
    let revision = api.get(SKILL)["status"]["revision"].clone();
    let filesystem = json!([{ "name": "codebase", "type": "filesystem" }]);
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "resources": filesystem }), REVISION);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "ResourceNotFound", "the binding is valid now, and its claim is missing");
    // With a revision this happens only after an upgrade to an operator with stricter rules.
    let broken = tenant_with_a_claim(&json!([{ "name": "codebase", "type": "credential" }]));
    let status =
        json!({ "phase": "Queued", "skillRevision": revision, "attempt": { "number": 1, "pod": "refund-1-01234" } });
    broken.change(JOB, |job| job["status"] = status);
    reconcile_once(&broken).await.unwrap();
    let status = &broken.get(JOB)["status"];
    assert_eq!((&status["phase"], &status["outcome"]["code"]), (&json!("Escalated"), &json!("UserNeeded")));
    let message = status["outcome"]["message"].as_str().unwrap();
    assert!(message.contains("spec.resources.codebase: ") && message.contains(REVISION), "{message}");
}

#[tokio::test]
async fn a_job_waits_for_every_model_of_its_skill() {
    let api = tenant();
    let engine = json!({ "finalizationGate": { "model": "fast" } });
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "engine": engine }), REVISION);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "ModelNotFound");
    let mut fast = api.get(MODEL);
    fast["metadata"]["name"] = json!("fast");
    api.put(&MODEL.replace("default", "fast"), fast);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

#[tokio::test]
async fn a_held_call_that_only_the_termination_message_shows_is_reported_again() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    let termination = message(1, PodEnd::Parked(ParkReason::Approval), None);
    let mut ended = stored(&ended_pod(1, 0, Some(termination)));
    ended["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = json!("2020-01-01T00:00:00Z");
    api.put(POD_1, ended);
    api.change(JOB, |job| job["status"]["phase"] = json!("Running"));
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "AwaitingApproval"));
    // No report has described the call, so the next worker reports it.
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1}"), format!("create {POD_2}"), format!("status {JOB}")]);
}

#[tokio::test]
async fn a_refused_deletion_of_a_pod_keeps_no_job_from_its_next_attempt() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    park_without_report(&api, ParkReason::Approval, &[]);
    api.change(JOB, |job| job["status"]["phase"] = json!("Running"));
    reconcile_once(&api).await.unwrap();
    api.writes();
    api.refuse_deletes();
    let action = reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1}"), format!("create {POD_2}"), format!("status {JOB}")]);
    assert_ne!(action, Action::await_change());
}

/// Ends the pod of the recorded attempt with a termination message that it parked. No report of it has arrived.
fn park_without_report(api: &FakeApi, why: ParkReason, questions: &[bloomery_crds::v1alpha1::AskedQuestion]) {
    let recorded = &api.get(JOB)["status"]["attempt"];
    let attempt = u32::try_from(recorded["number"].as_u64().unwrap()).unwrap();
    let mut termination = message(attempt, PodEnd::Parked(why), None);
    termination.questions = questions.to_vec();
    let mut ended = stored(&ended_pod(attempt, 0, Some(termination)));
    ended["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = json!("2020-01-01T00:00:00Z");
    api.put(&format!("/api/v1/namespaces/acme/pods/{}", recorded["pod"].as_str().unwrap()), ended);
}

#[tokio::test]
async fn a_job_ends_after_three_workers_that_parked_without_a_report() {
    for (why, what) in [(ParkReason::Approval, "a call"), (ParkReason::Reply, "a question")] {
        let api = tenant();
        reconcile_once(&api).await.unwrap();
        let mut pods = 0;
        for _ in 0..12 {
            let status = api.get(JOB)["status"].clone();
            if status["phase"] == "Starting" {
                pods += 1;
                park_without_report(&api, why, &[]);
            }
            reconcile_once(&api).await.unwrap();
        }
        let status = &api.get(JOB)["status"];
        assert_eq!(
            (pods, &status["phase"], &status["outcome"]["code"]),
            (3, &json!("Escalated"), &json!("UserNeeded"))
        );
        let message = status["outcome"]["message"].as_str().unwrap();
        assert!(message.starts_with(what) && message.contains("kubectl logs refund-3-01234"), "{message}");
    }
}

#[tokio::test]
async fn questions_in_the_termination_message_need_no_further_pod_to_be_asked() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    park_without_report(&api, ParkReason::Reply, &fixtures::asked(0).questions);
    api.writes();
    for _ in 0..3 {
        reconcile_once(&api).await.unwrap();
    }
    let status = api.get(JOB)["status"].clone();
    assert_eq!(
        (&status["phase"], &status["waitingFor"]["questions"][1]["id"]),
        (&json!("AwaitingReply"), &json!("q-2"))
    );
    assert!(!api.writes().contains(&format!("create {POD_2}")));
    api.change(JOB, |job| job["spec"]["replies"] = json!([{ "question": "q-2", "text": "Mill Lane" }]));
    reconcile_once(&api).await.unwrap();
    assert!(api.writes().contains(&format!("create {POD_2}")));
}

#[tokio::test]
async fn a_job_waits_for_the_ca_of_the_report_endpoint() {
    let api = tenant();
    let context = api.replica(/* leads */ true).await;
    let job = || serde_json::from_value(api.get(JOB)).unwrap();
    for _ in 0..2 {
        let action = reconcile(job(), context.clone(), Arc::default()).await.unwrap();
        assert_eq!(action, Action::requeue(Duration::from_secs(5)));
        assert_eq!((&api.get(JOB)["status"]["phase"], reason(&api).as_str()), (&json!("Pending"), "ReportUnavailable"));
    }
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    context.report_ca_bundle.set("-----BEGIN CERTIFICATE-----\n".to_owned());
    reconcile(job(), context, Arc::default()).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

#[tokio::test]
async fn jobs_are_reconciled_only_after_the_ca_is_known() {
    let api = tenant();
    let context = api.replica(/* leads */ true).await;
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(run(context.clone(), shutdown.clone()));
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(api.writes(), [""; 0]);
    context.report_ca_bundle.set("-----BEGIN CERTIFICATE-----\n".to_owned());
    let mut writes = Vec::new();
    while writes.len() < 2 {
        tokio::task::yield_now().await;
        writes.extend(api.writes());
    }
    assert_eq!(writes, [format!("create {POD_1}"), format!("status {JOB}")]);
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_pod_of_another_making_is_left_unchanged_and_the_next_attempt_continues_the_job() {
    let differences =
        ["another owner", "no label of a Job", "the label of another Job", "no seal", "another run document"];
    for foreign in differences {
        let api = tenant();
        // The pod that the operator would create.
        reconcile_once(&api).await.unwrap();
        api.change(JOB, |job| job["status"] = Value::Null);
        let mut pod = api.get(POD_1);
        match foreign {
            "another owner" => pod["metadata"]["ownerReferences"][0]["uid"] = json!("another"),
            "no label of a Job" => {
                pod["metadata"]["labels"].as_object_mut().unwrap().remove(names::LABEL_JOB);
            }
            "the label of another Job" => pod["metadata"]["labels"][names::LABEL_JOB] = json!("another"),
            // It was created while the admission policy was missing.
            "no seal" => {
                pod["metadata"]["annotations"].as_object_mut().unwrap().remove(names::ANNOTATION_SEAL);
            }
            _ => {
                let args = pod["spec"]["containers"][0]["args"].as_array_mut().unwrap();
                let digest = args.iter_mut().find(|arg| arg.as_str().unwrap().starts_with("--job-digest=")).unwrap();
                *digest = json!(format!("--job-digest={}", bloomery_crds::Digest::of_bytes(b"forged")));
            }
        }
        api.put(POD_1, pod.clone());
        reconcile_once(&api).await.unwrap();
        assert_eq!((reason(&api).as_str(), api.get(POD_1)["spec"].clone()), ("NameTaken", pod["spec"].clone()));
        let attempt = api.get(JOB)["status"]["attempt"].clone();
        assert_eq!(
            (&attempt["number"], &attempt["podUID"], &attempt["disrupted"]),
            (&json!(1), &Value::Null, &json!(1))
        );
        // After the pause.
        api.change(JOB, |job| job["status"]["attempt"]["ended"] = json!("2026-01-01T00:00:00Z"));
        reconcile_once(&api).await.unwrap();
        let attempt = api.get(JOB)["status"]["attempt"].clone();
        assert_eq!((&attempt["number"], &attempt["pod"]), (&json!(2), &json!("refund-2-01234")), "{foreign}");
    }
}

#[tokio::test]
async fn a_job_waits_while_its_pod_is_refused() {
    let api = tenant();
    let message = "pods \"refund-1-01234\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=10, limited: pods=10";
    api.refuse_creates(Some(json!({ "kind": "Status", "code": 403, "reason": "Forbidden", "message": message })));
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "QuotaExceeded");
    api.refuse_creates(None);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

#[tokio::test]
async fn a_webhook_that_is_down_or_denies_the_pod_with_any_code_is_named() {
    let down = "Internal error occurred: failed calling webhook \"pods.example.com\": failed to call webhook: connection refused";
    let denied = "admission webhook \"pods.example.com\" denied the request: not now";
    for (code, message) in [(500, down), (409, denied), (429, denied), (503, denied)] {
        let api = tenant();
        api.refuse_creates(Some(json!({ "kind": "Status", "code": code, "reason": "", "message": message })));
        let action = reconcile_once(&api).await.unwrap();
        assert_eq!(
            (reason(&api).as_str(), action),
            ("PodNotStarting", Action::requeue(Duration::from_secs(1))),
            "{code}"
        );
        assert!(api.get(JOB)["status"]["conditions"].to_string().contains("pods.example.com"), "{code}");
        api.refuse_creates(None);
        reconcile_once(&api).await.unwrap();
        assert_eq!(reason(&api), "Starting");
    }
}

#[tokio::test]
async fn an_overloaded_api_server_is_asked_again_without_a_condition() {
    for (code, message) in [(429, "too many requests"), (503, "apiserver is shutting down")] {
        let api = tenant();
        api.refuse_creates(Some(json!({ "kind": "Status", "code": code, "reason": "", "message": message })));
        reconcile_once(&api).await.unwrap_err();
        assert_eq!(api.get(JOB)["status"]["conditions"], Value::Null, "{code}");
    }
}

#[tokio::test]
async fn no_pod_is_created_for_a_job_that_changed_since_it_was_read() {
    let api = tenant();
    let context = api.operator().await;
    let job: Job = serde_json::from_value(api.get(JOB)).unwrap();
    api.change(JOB, |job| job["status"] = json!({ "phase": "Succeeded" }));
    let action = reconcile(job, context, Arc::default()).await.unwrap();
    assert_eq!((action, api.writes()), (Action::requeue(Duration::from_secs(1)), vec![]));
}

#[tokio::test]
async fn a_pod_that_is_not_cached_yet_is_read_from_the_api_server() {
    let api = tenant();
    let context = api.operator().await;
    let first: Job = serde_json::from_value(api.get(JOB)).unwrap();
    reconcile(first, context.clone(), Arc::default()).await.unwrap();
    api.writes();
    let recorded: Job = serde_json::from_value(api.get(JOB)).unwrap();
    reconcile(recorded, context, Arc::default()).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_pod_without_owners_is_still_the_recorded_pod() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    api.change(POD_1, |pod| pod["metadata"]["ownerReferences"] = Value::Null);
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_pod_without_labels_is_still_the_recorded_pod() {
    let api = tenant();
    let context = api.operator().await;
    let first: Job = serde_json::from_value(api.get(JOB)).unwrap();
    reconcile(first, context.clone(), Arc::default()).await.unwrap();
    api.change(POD_1, |pod| pod["metadata"]["labels"] = Value::Null);
    api.writes();
    let recorded: Job = serde_json::from_value(api.get(JOB)).unwrap();
    let action = reconcile(recorded, context, Arc::default()).await.unwrap();
    assert_eq!((action, api.writes()), (Action::requeue(Duration::from_mins(1)), vec![]));
}

#[tokio::test]
async fn a_lost_attempt_is_followed_by_the_next_and_then_its_pod_is_deleted() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    let mut ended = stored(&sealed(ended_pod(1, 0, None)));
    ended["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = json!("2020-01-01T00:00:00Z");
    api.put(POD_1, ended);
    api.change(JOB, |job| job["status"]["phase"] = json!("Running"));
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    assert_eq!(api.get(JOB)["status"]["attempt"]["number"], 2);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1}")]);
}

#[tokio::test]
async fn a_deleted_skill_ends_the_pod_that_has_not_reported_and_then_its_job() {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
    api.remove(SKILL);
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1} within 8 s"), format!("status {JOB}")]);
    assert_eq!(reason(&api), "SkillDeleted");
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "Failed"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_job_that_is_being_deleted_is_ignored() {
    let api = tenant();
    api.change(JOB, |job| job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert_eq!(reconcile_once(&api).await.unwrap(), Action::await_change());
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_follow_up_waits_for_the_end_of_the_continued_job_and_records_its_uid() {
    let api = tenant();
    api.change(JOB, |job| job["spec"]["continues"] = json!("refund-0"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "ContinuedNotEnded");
    let before = |skill: &str, phase: &str| {
        resource("Job", "refund-0", &json!({"skill": skill, "goal": "Refund"}), &json!({ "phase": phase }))
    };
    for unfit in [before("cs-tier-1", "Running"), before("cs-tier-2", "Succeeded")] {
        api.put(CONTINUED, unfit);
        reconcile_once(&api).await.unwrap();
        assert_eq!(reason(&api), "ContinuedNotEnded");
    }
    api.put(CONTINUED, before("cs-tier-1", "Failed"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.get(JOB)["status"]["continuedUID"], "refund-0-uid");
    let part = |pod: &str| {
        let part = api.get(pod)["metadata"]["annotations"]["bloomery.dev/job-part"].as_str().unwrap().to_owned();
        serde_json::from_str::<Value>(&part).unwrap()["continues"].clone()
    };
    assert_eq!(part(POD_1), json!({"name": "refund-0", "runKey": "refund-0-uid"}));
    // The continued Job and the pod are deleted. The next pod still has the recorded UID.
    api.remove(CONTINUED);
    api.remove(POD_1);
    api.change(JOB, |job| job["status"]["phase"] = json!("Queued"));
    reconcile_once(&api).await.unwrap();
    assert_eq!(part(POD_2), json!({"name": "refund-0", "runKey": "refund-0-uid"}));
}

mod approvals;
mod children;
mod lifecycle;
mod logs;
mod network;
mod queued;
mod replies;
mod run_keys;
mod templates;
