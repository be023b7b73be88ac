//! One look at a time, over an API server in memory; each operator starts anew, as after a crash.

use super::fixtures::api::FakeApi;
use super::fixtures::{UID, ended_pod, message};
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
const BEFORE: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund-0";
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
    let compiled = Revision {
        version: run::VERSION,
        skill: "cs-tier-1".into(),
        spec: serde_json::from_value(spec.clone()).unwrap(),
        mcp: None,
    };
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
    });
    api.put(JOB, job);
}

fn tenant() -> FakeApi {
    let api = FakeApi::default();
    put_skill(&api);
    put_model(&api);
    put_job(&api);
    api
}

/// A new operator looks at the Job once.
async fn look(api: &FakeApi) -> Result<Action, Error> {
    let context = api.operator().await;
    let job = serde_json::from_value(api.get(JOB)).unwrap();
    reconcile(job, context, Arc::default()).await
}

/// The Job rests in this status, of the current revision, as its worker has told.
fn rests(api: &FakeApi, mut rests: JobStatus) {
    rests.observed_generation = Some(1);
    rests.skill_revision = serde_json::from_value(api.get(SKILL)["status"]["revision"].clone()).unwrap();
    let told = status::phase_health(&rests).observations();
    let rests = status::with_conditions(rests, told, &StatusStamp { now: Time(fixtures::at(0)), generation: Some(1) });
    api.change(JOB, |job| job["status"] = serde_json::to_value(rests).unwrap());
}

fn reason(api: &FakeApi) -> String {
    let conditions = api.get(JOB)["status"]["conditions"].clone();
    let ready = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "Ready").unwrap();
    ready["reason"].as_str().unwrap().to_owned()
}

fn stored(pod: &Pod) -> Value {
    serde_json::to_value(pod).unwrap()
}

#[tokio::test]
async fn a_job_starts_with_two_writes_and_then_there_are_none() {
    let api = tenant();
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_1}"), format!("status {JOB}")]);
    let status = &api.get(JOB)["status"];
    assert_eq!((&status["phase"], &status["attempt"]["podUID"]), (&json!("Starting"), &json!("pod-uid-1")));
    assert_eq!(status["skillRevision"]["name"], REVISION);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_crash_before_the_status_leaves_a_pod_that_is_taken_over() {
    let api = tenant();
    look(&api).await.unwrap();
    api.change(JOB, |job| job["status"] = Value::Null);
    // Meanwhile the Skill was edited: the Job stays on what its pod was made with.
    put_skill_of(&api, "returns", "cs-tier-1-edited");
    api.writes();
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_1}"), format!("status {JOB}")]);
    let status = &api.get(JOB)["status"];
    assert_eq!(
        (&status["attempt"]["podUID"], &status["skillRevision"]["name"]),
        (&json!("pod-uid-1"), &json!(REVISION))
    );
}

#[tokio::test]
async fn what_is_missing_is_named_and_healed() {
    let api = FakeApi::default();
    put_job(&api);
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "SkillNotFound");
    put_skill(&api);
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "ModelNotFound");
    look(&api).await.unwrap();
    assert_eq!(api.writes().len(), 2, "a wait is told once");
    put_model(&api);
    look(&api).await.unwrap();
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
async fn a_claim_that_is_missing_is_named_and_healed_and_mounted() {
    let api = tenant_with_a_claim(&json!([{ "name": "codebase", "type": "filesystem" }]));
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "ResourceNotFound");
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "namespace": "acme", "name": "src", "uid": "src" },
        "spec": { "accessModes": ["ReadWriteMany"] },
    });
    api.put("/api/v1/namespaces/acme/persistentvolumeclaims/src", claim);
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
    let volumes = api.get(POD_1)["spec"]["volumes"].clone();
    let bound = volumes.as_array().unwrap().iter().find(|volume| volume["name"] == "claim-0").unwrap();
    assert_eq!(bound["persistentVolumeClaim"], json!({ "claimName": "src", "readOnly": true }));
}

#[tokio::test]
async fn a_binding_that_does_not_fit_waits_for_another_skill_until_the_job_has_a_revision() {
    let api = tenant_with_a_claim(&json!([{ "name": "codebase", "type": "credential" }]));
    look(&api).await.unwrap();
    assert_eq!((reason(&api).as_str(), &api.get(JOB)["status"]["phase"]), ("ResourcesInvalid", &json!("Pending")));
    let revision = api.get(SKILL)["status"]["revision"].clone();
    let filesystem = json!([{ "name": "codebase", "type": "filesystem" }]);
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "resources": filesystem }), REVISION);
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "ResourceNotFound", "what it binds fits, and is not there yet");
    // Only an operator with stricter rules finds that: both sides are immutable.
    let broken = tenant_with_a_claim(&json!([{ "name": "codebase", "type": "credential" }]));
    let status =
        json!({ "phase": "Queued", "skillRevision": revision, "attempt": { "number": 1, "pod": "refund-1-01234" } });
    broken.change(JOB, |job| job["status"] = status);
    look(&broken).await.unwrap();
    let status = &broken.get(JOB)["status"];
    assert_eq!((&status["phase"], &status["outcome"]["code"]), (&json!("Escalated"), &json!("UserNeeded")));
    let message = status["outcome"]["message"].as_str().unwrap();
    assert!(message.contains("spec.resources.codebase: ") && message.contains(REVISION), "{message}");
}

#[tokio::test]
async fn every_model_of_the_skill_is_needed() {
    let api = tenant();
    let engine = json!({ "finalizationGate": { "model": "fast" } });
    put_skill_with(&api, &json!({ "problem": { "statement": "refunds" }, "engine": engine }), REVISION);
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "ModelNotFound");
    let mut fast = api.get(MODEL);
    fast["metadata"]["name"] = json!("fast");
    api.put(&MODEL.replace("default", "fast"), fast);
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

#[tokio::test]
async fn a_held_call_that_only_the_pod_told_is_told_again() {
    let api = tenant();
    look(&api).await.unwrap();
    let told = message(1, PodEnd::Parked(ParkReason::Approval), None);
    let mut ended = stored(&ended_pod(1, 0, Some(told)));
    ended["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = json!("2020-01-01T00:00:00Z");
    api.put(POD_1, ended);
    api.change(JOB, |job| job["status"]["phase"] = json!("Running"));
    api.writes();
    look(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "AwaitingApproval"));
    // No report told which call it is: the next worker tells it again.
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1}"), format!("create {POD_2}"), format!("status {JOB}")]);
}

/// The pod of the attempt that is recorded has parked, and none of its reports arrived.
fn parks_unheard(api: &FakeApi, why: ParkReason, questions: &[bloomery_crds::v1alpha1::AskedQuestion]) {
    let recorded = &api.get(JOB)["status"]["attempt"];
    let attempt = u32::try_from(recorded["number"].as_u64().unwrap()).unwrap();
    let mut told = message(attempt, PodEnd::Parked(why), None);
    told.questions = questions.to_vec();
    let mut ended = stored(&ended_pod(attempt, 0, Some(told)));
    ended["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = json!("2020-01-01T00:00:00Z");
    api.put(&format!("/api/v1/namespaces/acme/pods/{}", recorded["pod"].as_str().unwrap()), ended);
}

/// Whatever keeps the reports away: the Job is not restarted without end.
#[tokio::test]
async fn a_job_whose_workers_park_and_are_never_heard_ends_with_the_third() {
    for (why, what) in [(ParkReason::Approval, "a call"), (ParkReason::Reply, "a question")] {
        let api = tenant();
        look(&api).await.unwrap();
        let mut pods = 0;
        for _ in 0..12 {
            let status = api.get(JOB)["status"].clone();
            if status["phase"] == "Starting" {
                pods += 1;
                parks_unheard(&api, why, &[]);
            }
            look(&api).await.unwrap();
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
async fn questions_that_only_the_pod_told_are_asked_and_answered_without_another_pod_for_it() {
    let api = tenant();
    look(&api).await.unwrap();
    parks_unheard(&api, ParkReason::Reply, &fixtures::asked(0).questions);
    api.writes();
    for _ in 0..3 {
        look(&api).await.unwrap();
    }
    let rests = api.get(JOB)["status"].clone();
    assert_eq!((&rests["phase"], &rests["waitingFor"]["questions"][1]["id"]), (&json!("AwaitingReply"), &json!("q-2")));
    assert!(!api.writes().contains(&format!("create {POD_2}")));
    api.change(JOB, |job| job["spec"]["replies"] = json!([{ "question": "q-2", "text": "Mill Lane" }]));
    look(&api).await.unwrap();
    assert!(api.writes().contains(&format!("create {POD_2}")));
}

#[tokio::test]
async fn what_the_operator_itself_misses_is_named_and_healed() {
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
async fn jobs_are_not_looked_at_before_the_operator_is_ready_for_their_reports() {
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
async fn a_pod_of_somebody_else_is_left_alone() {
    let api = tenant();
    let mut foreign = stored(&ended_pod(1, 0, None));
    foreign["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    api.put(POD_1, foreign);
    let action = look(&api).await.unwrap();
    assert_eq!((reason(&api).as_str(), action), ("NameTaken", Action::requeue(Duration::from_mins(1))));
}

#[tokio::test]
async fn a_refused_pod_is_named() {
    let api = tenant();
    let message = "exceeded quota: pods=10";
    api.refuse_creates(Some(json!({ "kind": "Status", "code": 403, "reason": "Forbidden", "message": message })));
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "PodNotStarting");
    api.refuse_creates(None);
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "Starting");
}

#[tokio::test]
async fn nothing_starts_for_a_job_that_changed_since_it_was_read() {
    let api = tenant();
    let context = api.operator().await;
    let job: Job = serde_json::from_value(api.get(JOB)).unwrap();
    api.change(JOB, |job| job["status"] = json!({ "phase": "Succeeded" }));
    let action = reconcile(job, context, Arc::default()).await.unwrap();
    assert_eq!((action, api.writes()), (Action::requeue(Duration::from_secs(1)), vec![]));
}

#[tokio::test]
async fn a_pod_that_the_cache_does_not_know_yet_is_not_taken_for_gone() {
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
async fn a_pod_whose_owners_were_removed_is_not_taken_for_gone() {
    let api = tenant();
    look(&api).await.unwrap();
    api.change(POD_1, |pod| pod["metadata"]["ownerReferences"] = Value::Null);
    api.writes();
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_pod_whose_labels_were_removed_is_not_taken_for_gone() {
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
async fn a_lost_attempt_is_followed_by_the_next_and_then_its_pod_goes() {
    let api = tenant();
    look(&api).await.unwrap();
    let mut ended = stored(&ended_pod(1, 0, None));
    ended["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = json!("2020-01-01T00:00:00Z");
    api.put(POD_1, ended);
    api.change(JOB, |job| job["status"]["phase"] = json!("Running"));
    api.writes();
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    assert_eq!(api.get(JOB)["status"]["attempt"]["number"], 2);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1}")]);
}

#[tokio::test]
async fn a_deleted_skill_ends_the_pod_that_has_not_reported_and_then_its_job() {
    let api = tenant();
    look(&api).await.unwrap();
    api.remove(SKILL);
    api.writes();
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1} within 8 s"), format!("status {JOB}")]);
    assert_eq!(reason(&api), "SkillDeleted");
    look(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "Failed"));
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_job_on_its_way_out_is_left_to_the_garbage_collector() {
    let api = tenant();
    api.change(JOB, |job| job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    assert_eq!(look(&api).await.unwrap(), Action::await_change());
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_follow_up_waits_for_the_end_of_what_it_follows_up_and_remembers_which_it_was() {
    let api = tenant();
    api.change(JOB, |job| job["spec"]["continues"] = json!("refund-0"));
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "ContinuedNotEnded");
    let before = |skill: &str, phase: &str| {
        resource("Job", "refund-0", &json!({"skill": skill, "goal": "Refund"}), &json!({ "phase": phase }))
    };
    for unfit in [before("cs-tier-1", "Running"), before("cs-tier-2", "Succeeded")] {
        api.put(BEFORE, unfit);
        look(&api).await.unwrap();
        assert_eq!(reason(&api), "ContinuedNotEnded");
    }
    api.put(BEFORE, before("cs-tier-1", "Failed"));
    look(&api).await.unwrap();
    assert_eq!(api.get(JOB)["status"]["continuedUID"], "refund-0-uid");
    let part = |pod: &str| {
        let part = api.get(pod)["metadata"]["annotations"]["bloomery.dev/job-part"].as_str().unwrap().to_owned();
        serde_json::from_str::<Value>(&part).unwrap()["continues"].clone()
    };
    assert_eq!(part(POD_1), json!({"name": "refund-0", "runKey": "refund-0-uid"}));
    // It is gone, and so is the pod: the next one knows it as well.
    api.remove(BEFORE);
    api.remove(POD_1);
    api.change(JOB, |job| job["status"]["phase"] = json!("Queued"));
    look(&api).await.unwrap();
    assert_eq!(part(POD_2), json!({"name": "refund-0", "runKey": "refund-0-uid"}));
}

mod approvals;
mod replies;
mod wanted;
