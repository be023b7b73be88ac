//! What people want of a Job: that it is cancelled, that nothing of its namespace runs, that it goes after a time.

use super::approvals::waiting;
use super::*;
use crate::job::fixtures::open::{open, path, put};
use crate::job::fixtures::{decided, pod};
use bloomery_crds::v1alpha1::ApprovalVerdict;

const NAMESPACE: &str = "/api/v1/namespaces/acme";

fn cancel(api: &FakeApi) {
    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
}

fn suspend(api: &FakeApi, value: &str) {
    let annotations = json!({ names::ANNOTATION_SUSPEND: value });
    let metadata = json!({ "name": "acme", "uid": "acme-uid", "annotations": annotations });
    api.put(NAMESPACE, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
}

fn status(api: &FakeApi) -> Value {
    api.get(JOB)["status"].clone()
}

/// A Job with a pod, in a phase.
async fn with_pod(phase: &str) -> FakeApi {
    let api = tenant();
    look(&api).await.unwrap();
    let mut running = stored(&pod(1, "Running"));
    running["metadata"]["creationTimestamp"] = json!("2027-01-15T08:00:00Z");
    api.put(POD_1, running);
    api.change(JOB, |job| job["status"]["phase"] = json!(phase));
    api.writes();
    api
}

fn assert_cancelled(api: &FakeApi) {
    let status = status(api);
    assert_eq!((&status["phase"], &status["outcome"]["code"]), (&json!("Cancelled"), &json!("Cancelled")));
    assert_eq!(reason(api), "Cancelled");
    let conditions = status["conditions"].as_array().unwrap();
    let is = |kind: &str, status: &str| conditions.iter().any(|c| c["type"] == kind && c["status"] == status);
    assert!(is("Ready", "True") && !is("Reconciling", "True") && !is("Stalled", "True"), "{conditions:?}");
}

#[tokio::test]
async fn a_job_that_has_not_begun_is_cancelled_with_one_write() {
    let waits_for_its_skill = FakeApi::default();
    put_job(&waits_for_its_skill);
    look(&waits_for_its_skill).await.unwrap();
    waits_for_its_skill.writes();
    for api in [waits_for_its_skill, tenant()] {
        cancel(&api);
        look(&api).await.unwrap();
        assert_eq!(api.writes(), [format!("status {JOB}")]);
        assert_cancelled(&api);
        look(&api).await.unwrap();
        assert_eq!(api.writes(), [""; 0]);
    }
}

#[tokio::test]
async fn a_parked_job_is_cancelled_with_one_write() {
    let api = with_pod("Queued").await;
    api.remove(POD_1);
    cancel(&api);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_cancelled(&api);
    assert_eq!(status(&api)["outcome"]["message"], "The Job was cancelled.");
}

#[tokio::test]
async fn the_pod_of_a_worker_that_has_not_reported_is_deleted_first() {
    let api = with_pod("Starting").await;
    cancel(&api);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1} within 8 s"), format!("status {JOB}")]);
    // The fake gives nobody time: the pod is gone.
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_cancelled(&api);
    let message = status(&api)["outcome"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("before the worker of attempt 1 reported"), "{message}");
}

#[tokio::test]
async fn a_worker_at_work_is_waited_for_and_its_outcome_stands() {
    let api = with_pod("Running").await;
    cancel(&api);
    let action = look(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "Cancelling"));
    assert_eq!(action, Action::requeue(Duration::from_secs(30)));
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0], "it is told once");
    let told = message(1, PodEnd::Finished, Some(bloomery_crds::outcome::OutcomeCode::Succeeded));
    api.put(POD_1, stored(&ended_pod(1, 0, Some(told))));
    look(&api).await.unwrap();
    assert_eq!((&status(&api)["phase"], reason(&api).as_str()), (&json!("Succeeded"), "Succeeded"));
}

#[tokio::test]
async fn a_worker_at_work_whose_skill_is_deleted_is_waited_for_whatever_becomes_of_the_skill() {
    let api = with_pod("Running").await;
    api.remove(SKILL);
    look(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "SkillDeleted"));
    put_skill(&api);
    look(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![], "SkillDeleted"), "its worker may have heard it");
    let told = message(1, PodEnd::Finished, Some(bloomery_crds::outcome::OutcomeCode::SkillDeleted));
    api.put(POD_1, stored(&ended_pod(1, 0, Some(told))));
    look(&api).await.unwrap();
    assert_eq!((&status(&api)["phase"], &status(&api)["outcome"]["code"]), (&json!("Failed"), &json!("SkillDeleted")));
}

#[tokio::test]
async fn a_job_that_never_had_its_skill_waits_for_it_and_one_that_had_ends() {
    let api = tenant();
    api.remove(SKILL);
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "SkillNotFound");
    let api = with_pod("Queued").await;
    api.remove(POD_1);
    api.remove(SKILL);
    look(&api).await.unwrap();
    let outcome = status(&api)["outcome"].clone();
    let message = "The Job ended because the Skill was deleted. Create the Skill again, and then another Job.";
    assert_eq!(outcome, json!({ "code": "SkillDeleted", "message": message }));
}

#[tokio::test]
async fn a_worker_that_does_not_end_is_deleted_and_what_it_did_is_not_known() {
    let api = with_pod("Running").await;
    cancel(&api);
    let context = api.operator().await;
    let memory = Arc::new(ControllerState::default());
    memory.ending.first_seen(UID, Timestamp::now() - SignedDuration::from_secs(31));
    reconcile(serde_json::from_value(api.get(JOB)).unwrap(), context, memory).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1}"), format!("status {JOB}")]);
    look(&api).await.unwrap();
    assert_cancelled(&api);
    let message = status(&api)["outcome"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("may have been in progress") && message.contains("refund-1-01234"), "{message}");
}

#[tokio::test]
async fn approvals_of_a_cancelled_job_are_withdrawn_and_what_was_decided_is_told_to_be_late() {
    let api = waiting();
    let (supervisor, finance) = (open("supervisor"), open("finance"));
    put(&api, &supervisor);
    put(&api, &decided(finance.clone(), ApprovalVerdict::Approve));
    cancel(&api);
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")], "the decision of the other one does not matter any more");
    assert_cancelled(&api);
    look(&api).await.unwrap();
    let written = ["replace", "status"].map(|verb| format!("{verb} {}", path(&supervisor)));
    let mut writes = api.writes();
    writes.sort();
    assert_eq!(writes, [written[0].clone(), format!("status {}", path(&finance)), written[1].clone()]);
    let withdrawn = api.get(&path(&supervisor));
    assert_eq!(withdrawn["spec"]["decision"]["verdict"], "Expired");
    assert_eq!(withdrawn["spec"]["decision"]["reason"], "the Job was cancelled");
    let late = api.get(&path(&finance));
    assert_eq!(
        (&late["spec"]["decision"]["by"], &late["status"]["counted"]["verdict"]),
        (&json!("jane@acme.io"), &json!("Expired"))
    );
    let said = late["status"]["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(said, "the Job was cancelled: the decision of jane@acme.io came too late, and the call is not made");
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn an_approval_that_is_decided_meanwhile_keeps_its_decision() {
    let api = waiting();
    let supervisor = open("supervisor");
    put(&api, &supervisor);
    cancel(&api);
    look(&api).await.unwrap();
    let context = api.operator().await;
    put(&api, &decided(supervisor.clone(), ApprovalVerdict::Approve));
    api.writes();
    reconcile(serde_json::from_value(api.get(JOB)).unwrap(), context, Arc::default()).await.unwrap();
    assert_eq!(api.writes(), [format!("status {}", path(&supervisor))]);
}

#[tokio::test]
async fn a_suspended_namespace_gets_no_pod_until_that_is_lifted() {
    let api = tenant();
    suspend(&api, "true");
    look(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "Suspended"));
    assert_eq!(status(&api)["phase"], "Pending");
    let told = status(&api)["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(told.contains("kubectl annotate namespace acme bloomery.dev/suspend-"), "{told}");
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
    for lifted in ["false", ""] {
        let api = api.clone();
        suspend(&api, lifted);
        api.change(JOB, |job| job["status"] = Value::Null);
        let _ = look(&api).await.unwrap();
        assert_eq!(reason(&api), "Starting", "{lifted:?}");
        api.remove(POD_1);
    }
}

#[tokio::test]
async fn a_parked_job_of_a_suspended_namespace_waits_and_goes_on() {
    let api = with_pod("Queued").await;
    api.remove(POD_1);
    suspend(&api, "true");
    look(&api).await.unwrap();
    assert_eq!((&status(&api)["phase"], reason(&api).as_str()), (&json!("Queued"), "Suspended"));
    suspend(&api, "false");
    look(&api).await.unwrap();
    assert_eq!((api.get(POD_2)["kind"].clone(), reason(&api).as_str()), (json!("Pod"), "Starting"));
}

#[tokio::test]
async fn a_job_can_be_cancelled_in_a_suspended_namespace() {
    let api = tenant();
    suspend(&api, "true");
    look(&api).await.unwrap();
    cancel(&api);
    look(&api).await.unwrap();
    assert_cancelled(&api);
}

#[tokio::test]
async fn a_decision_that_comes_while_the_namespace_is_suspended_counts_afterwards() {
    let api = waiting();
    suspend(&api, "true");
    for approver in ["supervisor", "finance"] {
        put(&api, &decided(open(approver), ApprovalVerdict::Approve));
    }
    look(&api).await.unwrap();
    look(&api).await.unwrap();
    assert_eq!(reason(&api), "Suspended");
    suspend(&api, "false");
    api.writes();
    look(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    let part = api.get(POD_2)["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap().to_owned();
    let part: Value = serde_json::from_str(&part).unwrap();
    assert_eq!(part["approvals"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_wakes_the_jobs_of_a_namespace_wakes_no_others() {
    let api = tenant();
    let mut over = api.get(JOB);
    over["metadata"]["name"] = json!("over");
    over["status"] = json!({ "phase": "Succeeded" });
    api.put(&JOB.replace("refund", "over"), over);
    let mut other = api.get(JOB);
    other["metadata"]["namespace"] = json!("globex");
    api.put(&JOB.replace("acme", "globex"), other);
    suspend(&api, "true");
    let context = api.operator().await;
    let woken = |name: &str| {
        let namespace = context.caches.namespaces.store().get(&ObjectRef::new(name)).unwrap();
        wake::dependents(context.caches.jobs.store(), wake::is_in_namespace)(&namespace)
    };
    let names: Vec<String> = woken("acme").into_iter().map(|wake| wake.name).collect();
    assert_eq!(names, ["refund"]);
}

async fn finished(ttl: i64, ended: Timestamp) -> FakeApi {
    let api = with_pod("Succeeded").await;
    api.remove(POD_1);
    api.change(JOB, |job| {
        job["spec"]["ttlSecondsAfterFinished"] = json!(ttl);
        job["status"]["completionTime"] = json!(ended.to_string());
        job["status"]["outcome"] = json!({ "code": "Succeeded", "message": "It is done." });
    });
    api
}

#[tokio::test]
async fn a_job_goes_when_its_time_is_over() {
    let api = finished(0, Timestamp::now() - SignedDuration::from_secs(1)).await;
    assert_eq!(look(&api).await.unwrap(), Action::await_change());
    assert_eq!(api.writes(), [format!("delete {JOB}")]);
}

#[tokio::test]
async fn a_job_is_looked_at_again_when_its_time_will_be_over() {
    let api = finished(3600, Timestamp::now()).await;
    let action = format!("{:?}", look(&api).await.unwrap());
    assert!(action.contains("3599") || action.contains("3600"), "{action}");
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_job_that_changed_since_it_was_read_is_not_deleted() {
    let api = finished(0, Timestamp::now() - SignedDuration::from_secs(1)).await;
    let mut kept = api.get(JOB);
    kept["spec"]["ttlSecondsAfterFinished"] = Value::Null;
    api.meanwhile(JOB, kept);
    look(&api).await.unwrap();
    assert_eq!(api.get(JOB)["kind"], "Job");
}

fn follow_up(skill: &str, status: &Value) -> Value {
    let spec = json!({ "skill": skill, "goal": "And the other one?", "continues": "refund" });
    resource("Job", "refund-2", &spec, status)
}

#[tokio::test]
async fn a_job_stays_as_long_as_a_follow_up_waits_for_it() {
    let over = || finished(0, Timestamp::now() - SignedDuration::from_secs(1));
    let path = JOB.replace("refund", "refund-2");
    let waits = json!({ "phase": "Pending" });
    let api = over().await;
    api.put(&path, follow_up("cs-tier-1", &waits));
    assert_eq!(look(&api).await.unwrap(), Action::await_change(), "the follow-up tells when it has begun");
    assert_eq!(api.writes(), [""; 0]);
    let wake = wake::continued_by(&kube::core::DeserializeGuard(
        serde_json::from_value(api.get(&path)).map_err(|_| unreachable!()),
    ));
    assert_eq!(wake, [ObjectRef::new("refund").within("acme")]);
    // One that has begun, has ended, or never can begin, needs it no longer.
    let begun = json!({ "phase": "Running", "continuedUID": UID });
    let ended = json!({ "phase": "Cancelled" });
    for (skill, status) in [("cs-tier-1", &begun), ("cs-tier-1", &ended), ("cs-tier-2", &waits)] {
        let api = over().await;
        api.put(&path, follow_up(skill, status));
        look(&api).await.unwrap();
        assert_eq!(api.writes(), [format!("delete {JOB}")], "{skill} {status}");
    }
}
