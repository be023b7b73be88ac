use super::*;
use crate::job::fixtures::{self, api::FakeApi, at};
use serde_json::{Value, json};

const JOBS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs";
const SKILL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/cs-tier-1";

/// The time of the measurement, in seconds.
const MEASURED: i64 = 100;

fn put_skill(api: &FakeApi, bytes: u64) {
    api.put(
        SKILL,
        json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill",
            "metadata": {"namespace": "acme", "name": "cs-tier-1", "uid": "u-skill", "generation": 1},
            "spec": {"problem": {"statement": "help"}, "memory": {"softLimit": "1Ki"}},
            "status": {"observedGeneration": 1, "memory": {
                "bytes": bytes, "directories": [{"name": "jobs", "bytes": bytes}], "measured": at(MEASURED).to_string(),
            }},
        }),
    );
}

fn put_job(api: &FakeApi, name: &str, created: i64, status: &Value) {
    let mut job = serde_json::to_value(fixtures::job()).unwrap();
    job["metadata"]["name"] = json!(name);
    job["metadata"]["uid"] = json!(format!("u-{name}"));
    job["metadata"]["creationTimestamp"] = json!(at(created).to_string());
    job["status"] = status.clone();
    api.put(&format!("{JOBS}/{name}"), job);
}

fn waiting() -> Value {
    let condition = json!({
        "type": "Reconciling", "status": "True", "reason": "SoftLimitReached", "message": "",
        "lastTransitionTime": at(0).to_string(),
    });
    json!({"phase": "Pending", "conditions": [condition]})
}

fn running(since: i64) -> Value {
    json!({"phase": "Running", "attempt": {"number": 1, "pod": "p"}, "startTime": at(since).to_string()})
}

/// Returns the wait of the stored Job `refund`.
async fn wait_of_refund(api: &FakeApi, now: i64) -> Option<Wait> {
    let context = api.operator().await;
    let job = serde_json::from_value(api.get(&format!("{JOBS}/refund"))).unwrap();
    let fetched = crate::job::fetch::fetch(&context, job, at(now)).await.unwrap().unwrap();
    wait(&context.caches, &fetched, at(now))
}

#[tokio::test]
async fn a_new_job_waits_while_the_directory_is_larger_than_the_soft_limit() {
    let api = FakeApi::default();
    put_job(&api, "refund", 0, &json!({}));
    put_skill(&api, 1024);
    assert_eq!(wait_of_refund(&api, MEASURED).await, None);
    put_skill(&api, 1536);
    let found = wait_of_refund(&api, MEASURED + 60).await.unwrap();
    assert_eq!((found.reason, found.retry), (Reason::SoftLimitReached, Some(SignedDuration::from_secs(540))));
    for part in ["cs-tier-1 has 1.5 KiB (jobs 1.5 KiB)", "softLimit of 1.0 KiB", "delete finished Jobs"] {
        assert!(found.message.contains(part), "{}", found.message);
    }
}

#[tokio::test]
async fn a_job_that_has_started_continues() {
    let api = FakeApi::default();
    put_skill(&api, 4096);
    put_job(&api, "refund", 0, &running(0));
    assert_eq!(wait_of_refund(&api, MEASURED).await, None);
}

#[tokio::test]
async fn after_ten_minutes_the_job_that_has_waited_longest_starts_alone() {
    let later = MEASURED + 601;
    let api = FakeApi::default();
    put_skill(&api, 4096);
    put_job(&api, "refund", 7, &waiting());
    put_job(&api, "newer", 9, &waiting());
    put_job(&api, "long", 1, &running(50));
    put_job(&api, "ended", 1, &json!({"phase": "Succeeded", "startTime": at(later).to_string()}));
    put_job(&api, "other-wait", 1, &json!({"phase": "Pending"}));
    assert_eq!(wait_of_refund(&api, later).await, None);
    put_job(&api, "older", 5, &waiting());
    assert_eq!(wait_of_refund(&api, later).await.unwrap().retry, Some(RETRY_INTERVAL));
    put_job(&api, "older", 5, &running(later));
    assert_eq!(wait_of_refund(&api, later).await.unwrap().retry, Some(RETRY_INTERVAL));
}
