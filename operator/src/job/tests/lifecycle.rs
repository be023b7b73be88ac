//! Tests of cancelled Jobs, suspended namespaces, deleted Skills and the time to live.

use super::approvals::awaiting_approval;
use super::*;
use crate::job::fixtures::open::{approval_path, open_approval, put_approval};
use crate::job::fixtures::{decided, pod};
use bloomery_crds::v1alpha1::ApprovalVerdict;

const NAMESPACE: &str = "/api/v1/namespaces/acme";

fn cancel(api: &FakeApi) {
    api.change(JOB, |job| job["spec"]["cancel"] = json!(true));
}

fn suspend(api: &FakeApi, value: &str) {
    annotate_namespace(api, &json!({ names::ANNOTATION_SUSPEND: value }));
}

fn annotate_namespace(api: &FakeApi, annotations: &Value) {
    let metadata = json!({ "name": "acme", "uid": "acme-uid", "annotations": annotations });
    api.put(NAMESPACE, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
}

fn status(api: &FakeApi) -> Value {
    api.get(JOB)["status"].clone()
}

/// A Job with a running pod, in this phase.
async fn with_pod(phase: &str) -> FakeApi {
    let api = tenant();
    reconcile_once(&api).await.unwrap();
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
async fn the_tool_policy_of_the_namespace_reaches_the_worker_in_its_part() {
    let api = tenant();
    annotate_namespace(&api, &json!({ names::ANNOTATION_ALLOWED_TOOLS: "get_*, send_mail" }));
    reconcile_once(&api).await.unwrap();
    let pod = api.get(POD_1);
    let part = pod["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap();
    let part: Value = serde_json::from_str(part).unwrap();
    assert_eq!(part["tenantTools"], json!({ "allowed": ["get_*", "send_mail"] }));
}

#[tokio::test]
async fn a_job_that_has_not_started_is_cancelled_with_one_write() {
    let waits_for_its_skill = FakeApi::default();
    put_job(&waits_for_its_skill);
    reconcile_once(&waits_for_its_skill).await.unwrap();
    waits_for_its_skill.writes();
    for api in [waits_for_its_skill, tenant()] {
        cancel(&api);
        reconcile_once(&api).await.unwrap();
        assert_eq!(api.writes(), [format!("status {JOB}")]);
        assert_cancelled(&api);
        reconcile_once(&api).await.unwrap();
        assert_eq!(api.writes(), [""; 0]);
    }
}

#[tokio::test]
async fn a_parked_job_is_cancelled_with_one_write() {
    let api = with_pod("Queued").await;
    api.remove(POD_1);
    cancel(&api);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_cancelled(&api);
    assert_eq!(status(&api)["outcome"]["message"], "The Job was cancelled.");
}

#[tokio::test]
async fn the_pod_of_a_worker_that_has_not_reported_is_deleted_first() {
    let api = with_pod("Starting").await;
    cancel(&api);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1} within 8 s"), format!("status {JOB}")]);
    // The fake API server deletes the pod at once.
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")]);
    assert_cancelled(&api);
    let message = status(&api)["outcome"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("before the worker of attempt 1 reported"), "{message}");
}

#[tokio::test]
async fn a_cancelled_job_waits_for_its_worker_and_keeps_the_outcome_of_the_worker() {
    let api = with_pod("Running").await;
    cancel(&api);
    let action = reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "Cancelling"));
    assert_eq!(action, Action::requeue(Duration::from_secs(30)));
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0], "the wait is written once");
    let termination = message(1, PodEnd::Finished, Some(bloomery_crds::outcome::OutcomeCode::Succeeded));
    api.put(POD_1, stored(&ended_pod(1, 0, Some(termination))));
    reconcile_once(&api).await.unwrap();
    assert_eq!((&status(&api)["phase"], reason(&api).as_str()), (&json!("Succeeded"), "Succeeded"));
}

#[tokio::test]
async fn a_job_whose_skill_was_deleted_ends_even_if_the_skill_is_created_again() {
    let api = with_pod("Running").await;
    api.remove(SKILL);
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "SkillDeleted"));
    put_skill(&api);
    reconcile_once(&api).await.unwrap();
    assert_eq!(
        (api.writes(), reason(&api).as_str()),
        (vec![], "SkillDeleted"),
        "the worker may have received the directive"
    );
    let termination = message(1, PodEnd::Finished, Some(bloomery_crds::outcome::OutcomeCode::SkillDeleted));
    api.put(POD_1, stored(&ended_pod(1, 0, Some(termination))));
    reconcile_once(&api).await.unwrap();
    assert_eq!((&status(&api)["phase"], &status(&api)["outcome"]["code"]), (&json!("Failed"), &json!("SkillDeleted")));
}

#[tokio::test]
async fn without_a_skill_a_new_job_waits_and_a_started_job_ends() {
    let api = tenant();
    api.remove(SKILL);
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "SkillNotFound");
    let api = with_pod("Queued").await;
    api.remove(POD_1);
    api.remove(SKILL);
    reconcile_once(&api).await.unwrap();
    let outcome = status(&api)["outcome"].clone();
    let message = "The Job ended because the Skill was deleted. Create the Skill again, and then another Job.";
    assert_eq!(outcome, json!({ "code": "SkillDeleted", "message": message }));
}

#[tokio::test]
async fn a_worker_that_does_not_stop_in_time_is_deleted() {
    let api = with_pod("Running").await;
    cancel(&api);
    let context = api.operator().await;
    let state = Arc::new(ControllerState::default());
    state.ending.first_seen(UID, Timestamp::now() - SignedDuration::from_secs(31));
    reconcile(serde_json::from_value(api.get(JOB)).unwrap(), context, state).await.unwrap();
    assert_eq!(api.writes(), [format!("delete {POD_1}"), format!("status {JOB}")]);
    reconcile_once(&api).await.unwrap();
    assert_cancelled(&api);
    let message = status(&api)["outcome"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("may have been in progress") && message.contains("refund-1-01234"), "{message}");
}

#[tokio::test]
async fn approvals_of_a_cancelled_job_are_withdrawn_and_decisions_recorded_as_late() {
    let api = awaiting_approval();
    let (supervisor, finance) = (open_approval("supervisor"), open_approval("finance"));
    put_approval(&api, &supervisor);
    put_approval(&api, &decided(finance.clone(), ApprovalVerdict::Approve));
    cancel(&api);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("status {JOB}")], "the decision of finance does not count any more");
    assert_cancelled(&api);
    reconcile_once(&api).await.unwrap();
    let written = ["replace", "status"].map(|verb| format!("{verb} {}", approval_path(&supervisor)));
    let mut writes = api.writes();
    writes.sort();
    assert_eq!(writes, [written[0].clone(), format!("status {}", approval_path(&finance)), written[1].clone()]);
    let withdrawn = api.get(&approval_path(&supervisor));
    assert_eq!(withdrawn["spec"]["decision"]["verdict"], "Expired");
    assert_eq!(withdrawn["spec"]["decision"]["reason"], "the Job was cancelled");
    let late = api.get(&approval_path(&finance));
    assert_eq!(
        (&late["spec"]["decision"]["by"], &late["status"]["counted"]["verdict"]),
        (&json!("jane@acme.io"), &json!("Expired"))
    );
    let message = late["status"]["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(message, "the Job was cancelled: the decision of jane@acme.io came too late, and the call is not made");
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_withdrawal_keeps_a_concurrent_decision() {
    let api = awaiting_approval();
    let supervisor = open_approval("supervisor");
    put_approval(&api, &supervisor);
    cancel(&api);
    reconcile_once(&api).await.unwrap();
    let context = api.operator().await;
    put_approval(&api, &decided(supervisor.clone(), ApprovalVerdict::Approve));
    api.writes();
    reconcile(serde_json::from_value(api.get(JOB)).unwrap(), context, Arc::default()).await.unwrap();
    assert_eq!(api.writes(), [format!("status {}", approval_path(&supervisor))]);
}

#[tokio::test]
async fn no_pod_starts_in_a_namespace_until_it_is_resumed() {
    let api = tenant();
    suspend(&api, "true");
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "Suspended"));
    assert_eq!(status(&api)["phase"], "Pending");
    let message = status(&api)["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("kubectl annotate namespace acme bloomery.dev/suspend-"), "{message}");
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [""; 0]);
    for resumed in ["false", ""] {
        let api = api.clone();
        suspend(&api, resumed);
        api.change(JOB, |job| job["status"] = Value::Null);
        let _ = reconcile_once(&api).await.unwrap();
        assert_eq!(reason(&api), "Starting", "{resumed:?}");
        api.remove(POD_1);
    }
}

#[tokio::test]
async fn a_parked_job_waits_in_a_suspended_namespace_and_then_resumes() {
    let api = with_pod("Queued").await;
    api.remove(POD_1);
    suspend(&api, "true");
    reconcile_once(&api).await.unwrap();
    assert_eq!((&status(&api)["phase"], reason(&api).as_str()), (&json!("Queued"), "Suspended"));
    suspend(&api, "false");
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.get(POD_2)["kind"].clone(), reason(&api).as_str()), (json!("Pod"), "Starting"));
}

#[tokio::test]
async fn a_job_can_be_cancelled_in_a_suspended_namespace() {
    let api = tenant();
    suspend(&api, "true");
    reconcile_once(&api).await.unwrap();
    cancel(&api);
    reconcile_once(&api).await.unwrap();
    assert_cancelled(&api);
}

#[tokio::test]
async fn a_decision_during_a_suspension_counts_afterwards() {
    let api = awaiting_approval();
    suspend(&api, "true");
    for approver in ["supervisor", "finance"] {
        put_approval(&api, &decided(open_approval(approver), ApprovalVerdict::Approve));
    }
    reconcile_once(&api).await.unwrap();
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "Suspended");
    suspend(&api, "false");
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.writes(), [format!("create {POD_2}"), format!("status {JOB}")]);
    let part = api.get(POD_2)["metadata"]["annotations"][names::ANNOTATION_JOB_PART].as_str().unwrap().to_owned();
    let part: Value = serde_json::from_str(&part).unwrap();
    assert_eq!(part["approvals"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_suspension_wakes_only_the_unfinished_jobs_of_the_namespace() {
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
    let wakes = |name: &str| {
        let namespace = context.caches.namespaces.store().get(&ObjectRef::new(name)).unwrap();
        wake::dependents(context.caches.jobs.store(), wake::is_in_namespace)(&namespace)
    };
    let names: Vec<String> = wakes("acme").into_iter().map(|wake| wake.name).collect();
    assert_eq!(names, ["refund"]);
}

/// A Job that succeeded at this time, with this time to live in seconds.
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
async fn a_job_is_deleted_at_the_end_of_its_time_to_live() {
    let api = finished(0, Timestamp::now() - SignedDuration::from_secs(1)).await;
    assert_eq!(reconcile_once(&api).await.unwrap(), Action::await_change());
    assert_eq!(api.writes(), [format!("delete {JOB}")]);
}

#[tokio::test]
async fn an_ended_job_is_requeued_for_the_end_of_its_time_to_live() {
    let api = finished(3600, Timestamp::now()).await;
    let action = format!("{:?}", reconcile_once(&api).await.unwrap());
    assert!(action.contains("3599") || action.contains("3600"), "{action}");
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_job_that_changed_since_it_was_read_is_not_deleted() {
    let api = finished(0, Timestamp::now() - SignedDuration::from_secs(1)).await;
    let mut kept = api.get(JOB);
    kept["spec"]["ttlSecondsAfterFinished"] = Value::Null;
    api.meanwhile(JOB, kept);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.get(JOB)["kind"], "Job");
}

fn follow_up(skill: &str, status: &Value) -> Value {
    let spec = json!({ "skill": skill, "goal": "And the other one?", "continues": "refund" });
    resource("Job", "refund-2", &spec, status)
}

#[tokio::test]
async fn a_job_is_kept_while_a_follow_up_waits_for_it() {
    let expired = || finished(0, Timestamp::now() - SignedDuration::from_secs(1));
    let path = JOB.replace("refund", "refund-2");
    let pending = json!({ "phase": "Pending" });
    let api = expired().await;
    api.put(&path, follow_up("cs-tier-1", &pending));
    assert_eq!(reconcile_once(&api).await.unwrap(), Action::await_change(), "the start of the follow-up wakes the Job");
    assert_eq!(api.writes(), [""; 0]);
    let wake =
        wake::continued_by(&crate::caches::Guarded(serde_json::from_value(api.get(&path)).map_err(|_| unreachable!())));
    assert_eq!(wake, [ObjectRef::new("refund").within("acme")]);
    // A follow-up that has started, has ended, or can never start does not need the Job.
    let started = json!({ "phase": "Running", "continuedUID": UID });
    let ended = json!({ "phase": "Cancelled" });
    for (skill, status) in [("cs-tier-1", &started), ("cs-tier-1", &ended), ("cs-tier-2", &pending)] {
        let api = expired().await;
        api.put(&path, follow_up(skill, status));
        reconcile_once(&api).await.unwrap();
        assert_eq!(api.writes(), [format!("delete {JOB}")], "{skill} {status}");
    }
}
