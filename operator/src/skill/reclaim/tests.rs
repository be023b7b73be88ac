//! Tests of single reconciles with an API server in memory. Each operator has just started, as after a crash.

use super::super::{fixtures, reconcile, skill_of_memory_fault, skills_of_pod};
use super::*;
use crate::caches::Guarded;
use crate::job::fixtures::api::FakeApi;
use axum::http::StatusCode;
use bloomery_crds::conditions::{ConditionType, find};
use bloomery_testkit::api_server::refusal;
use serde_json::{Value, json};
use std::sync::Arc;

const SKILL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/orders";
const MODEL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/models/default";
const JOB: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund";
const CLAIM: &str = "/api/v1/namespaces/acme/persistentvolumeclaims/bloomery-memory";
const WORKER: &str = "/api/v1/namespaces/acme/pods/refund-1-01234";
const POD: &str = "/api/v1/namespaces/acme/pods/orders-memory-u-ski";
const NAMESPACE: &str = "/api/v1/namespaces/acme";

/// A tenant with a bound memory and a Skill with this policy.
fn tenant(policy: &str) -> FakeApi {
    let api = FakeApi::default();
    api.put(MODEL, serde_json::to_value(fixtures::model("default")).unwrap());
    api.put(
        CLAIM,
        json!({
            "metadata": {"namespace": "acme", "name": "bloomery-memory", "uid": "u-claim"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}, "status": {"phase": "Bound"},
        }),
    );
    let mut skill = serde_json::to_value(fixtures::without_server()).unwrap();
    skill["spec"]["memory"] = json!({"reclaimPolicy": policy});
    skill["status"] = json!({"observedGeneration": -1});
    api.put(SKILL, skill);
    api
}

/// A tenant whose Skill with the policy `Delete` was deleted this number of seconds ago.
fn deleted(seconds: i64) -> FakeApi {
    let api = tenant("Delete");
    let deleted = Timestamp::now() - k8s_openapi::jiff::SignedDuration::from_secs(seconds);
    api.change(SKILL, |skill| {
        skill["metadata"]["finalizers"] = json!(["foregroundDeletion", FINALIZER_MEMORY]);
        skill["metadata"]["deletionTimestamp"] = json!(deleted.to_string());
    });
    api
}

fn put_pod(api: &FakeApi, path: &str, component: &str, phase: &str) {
    let (_, name) = path.rsplit_once('/').unwrap();
    api.put(path, json!({
        "metadata": {
            "namespace": "acme", "name": name, "uid": format!("u-{name}"),
            "labels": {
                names::LABEL_MANAGED_BY: names::MANAGER, names::LABEL_COMPONENT: component, names::LABEL_SKILL: "orders",
            },
        },
        "status": {"phase": phase},
    }));
}

async fn reconcile_once(api: &FakeApi) -> Action {
    let skill = serde_json::from_value(api.get(SKILL)).unwrap();
    Box::pin(reconcile(skill, api.operator().await, std::sync::Arc::default())).await.unwrap()
}

fn finalizers(api: &FakeApi) -> Value {
    api.get(SKILL)["metadata"]["finalizers"].clone()
}

/// The number of Events. The tests of the decision check their texts.
fn events(api: &FakeApi) -> usize {
    api.requests().iter().filter(|request| request.ends_with("/events")).count()
}

/// Checks that the finalizer is gone, and the others are not.
fn assert_released(api: &FakeApi, action: &Action) {
    assert_eq!((finalizers(api), action), (json!(["foregroundDeletion"]), &Action::await_change()));
}

#[tokio::test]
async fn only_a_skill_with_the_policy_delete_has_the_finalizer() {
    let api = tenant("Delete");
    reconcile_once(&api).await;
    assert_eq!(finalizers(&api), json!([FINALIZER_MEMORY]));
    assert_eq!(api.writes().into_iter().filter(|write| write == &format!("patch {SKILL}")).count(), 1);
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [""; 0]);

    api.change(SKILL, |skill| skill["spec"]["memory"]["reclaimPolicy"] = json!("Retain"));
    reconcile_once(&api).await;
    assert_eq!(finalizers(&api), json!([]));
    let retained = tenant("Retain");
    reconcile_once(&retained).await;
    assert!(retained.writes().iter().all(|write| !write.starts_with("patch")));
}

#[tokio::test]
async fn a_pod_removes_the_directory_once_the_workers_have_ended_and_then_the_skill_goes() {
    let api = deleted(1);
    put_pod(&api, WORKER, "worker", "Running");
    assert_eq!(reconcile_once(&api).await, Action::requeue(CHECK_INTERVAL));
    assert_eq!(api.writes(), [""; 0]);
    put_pod(&api, WORKER, "worker", "Succeeded");
    reconcile_once(&api).await;
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [format!("create {POD}")]);
    api.change(POD, |pod| pod["status"] = json!({"phase": "Succeeded"}));
    let action = reconcile_once(&api).await;
    assert_released(&api, &action);
    assert_eq!(api.writes(), [format!("delete {POD}"), format!("patch {SKILL}")]);
    assert_eq!(events(&api), 0);
}

#[tokio::test]
async fn a_skill_that_is_gone_but_still_cached_gets_no_other_pod() {
    let api = deleted(1);
    let skill = serde_json::from_value(api.get(SKILL)).unwrap();
    let operator = api.operator().await;
    api.remove(SKILL);
    assert_eq!(Box::pin(reconcile(skill, operator, Arc::default())).await.unwrap(), Action::await_change());
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_started_job_without_a_pod_ends_first() {
    let api = deleted(1);
    api.put(JOB, json!({
        "metadata": {"namespace": "acme", "name": "refund", "uid": "u-job"},
        "spec": {"skill": "orders", "goal": "Refund"},
        "status": {"phase": "AwaitingApproval", "skillRevision": {"name": "r", "digest": format!("sha256:{}", "0".repeat(64))}},
    }));
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [""; 0]);
    api.change(JOB, |job| job["status"]["phase"] = json!("Failed"));
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [format!("create {POD}")]);
}

#[tokio::test]
async fn a_failed_pod_is_created_again() {
    let api = deleted(1);
    put_pod(&api, POD, "reclaim", "Failed");
    reconcile_once(&api).await;
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [format!("delete {POD}"), format!("create {POD}")]);
}

#[tokio::test]
async fn after_five_minutes_the_skill_goes_and_an_event_says_what_stays() {
    let api = deleted(301);
    put_pod(&api, POD, "reclaim", "Pending");
    let action = reconcile_once(&api).await;
    assert_released(&api, &action);
    assert!(api.find(POD).is_none());
    assert_eq!(events(&api), 1);
}

#[tokio::test]
async fn a_refused_pod_keeps_the_skill_until_the_time_is_over() {
    let api = deleted(1);
    api.refuse_creates(Some(refusal(StatusCode::FORBIDDEN, "Forbidden", "exceeded quota")));
    assert_eq!(reconcile_once(&api).await, Action::requeue(CHECK_INTERVAL));
    assert_eq!(finalizers(&api), json!(["foregroundDeletion", FINALIZER_MEMORY]));
}

#[tokio::test]
async fn a_refused_deletion_of_the_pod_does_not_keep_the_skill() {
    let api = deleted(1);
    put_pod(&api, POD, "reclaim", "Succeeded");
    api.refuse_deletes();
    let action = reconcile_once(&api).await;
    assert_released(&api, &action);
    assert_eq!(events(&api), 1);
}

#[tokio::test]
async fn without_the_claim_the_skill_goes_at_once_and_an_event_says_so() {
    let api = deleted(1);
    api.remove(CLAIM);
    let action = reconcile_once(&api).await;
    assert_released(&api, &action);
    assert_eq!(events(&api), 1);
}

#[tokio::test]
async fn in_a_terminating_namespace_the_skill_goes_at_once() {
    let api = deleted(1);
    api.put(
        NAMESPACE,
        json!({"metadata": {"name": "acme", "uid": "u-ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    );
    put_pod(&api, WORKER, "worker", "Running");
    let action = reconcile_once(&api).await;
    assert_released(&api, &action);
}

#[tokio::test]
async fn a_namespace_that_the_cache_does_not_show_as_terminating_lets_the_skill_go() {
    let api = deleted(1);
    let mut status = refusal(StatusCode::FORBIDDEN, "Forbidden", "the namespace is being terminated");
    status["details"] = json!({"causes": [{"reason": "NamespaceTerminating", "message": "terminating", "field": "metadata.namespace"}]});
    api.refuse_creates(Some(status));
    let action = reconcile_once(&api).await;
    assert_released(&api, &action);
}

#[tokio::test]
async fn a_memory_that_a_worker_cannot_write_stalls_no_job_silently() {
    let api = tenant("Retain");
    reconcile_once(&api).await;
    let mut job = json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": {"namespace": "acme", "name": "refund", "uid": "u-job"},
        "spec": {"skill": "orders", "goal": "Refund"},
        "status": {"phase": "Queued", "attempt": {"number": 1, "pod": "refund-1", "memoryFault": "NotWritable: ask the admin"}},
    });
    let read = |job: &Value| serde_json::from_value::<Guarded<Job>>(job.clone()).unwrap();
    let memory_ready = |api: &FakeApi| {
        let skill: Skill = serde_json::from_value(api.get(SKILL)).unwrap();
        let found = find(&skill.status.unwrap().conditions, ConditionType::MemoryReady).unwrap().clone();
        (found.status, found.reason, found.message)
    };
    assert_eq!(skill_of_memory_fault(api.operator().await.caches.skills.store(), &read(&job)).len(), 1);
    api.put(JOB, job.clone());
    reconcile_once(&api).await;
    assert_eq!(memory_ready(&api), ("False".into(), "NotWritable".into(), "NotWritable: ask the admin".into()));
    assert_eq!(skill_of_memory_fault(api.operator().await.caches.skills.store(), &read(&job)), []);
    job["status"]["attempt"].as_object_mut().unwrap().remove("memoryFault");
    assert_eq!(skill_of_memory_fault(api.operator().await.caches.skills.store(), &read(&job)).len(), 1);
    api.put(JOB, job);
    reconcile_once(&api).await;
    assert_eq!(memory_ready(&api).1, "Bound");
}

#[tokio::test]
async fn pods_wake_the_skills_that_depend_on_them() {
    let wakes = async |api: &FakeApi, path: &str| {
        let pod: Pod = serde_json::from_value(api.get(path)).unwrap();
        let operator = api.operator().await;
        skills_of_pod(operator.caches.skills.store(), operator.caches.models.store(), &pod).len()
    };
    let (kept, deleted) = (tenant("Delete"), deleted(1));
    for api in [&kept, &deleted] {
        put_pod(api, WORKER, "worker", "Running");
        put_pod(api, POD, "reclaim", "Running");
    }
    assert_eq!((wakes(&kept, WORKER).await, wakes(&deleted, WORKER).await), (0, 1));
    assert_eq!((wakes(&kept, POD).await, wakes(&deleted, POD).await), (1, 1));
    let message = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
    kept.change(WORKER, |pod| {
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False", "message": message}]);
    });
    assert_eq!(wakes(&kept, WORKER).await, 1);
}
