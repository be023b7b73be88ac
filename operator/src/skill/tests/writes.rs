//! The number of writes for a Skill.

use super::super::write;
use super::*;
use crate::first_seen::FirstSeen;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::SkillStatus;
use k8s_openapi::jiff::SignedDuration;

const SERVER: &str = "/api/v1/namespaces/acme/pods/orders-mcp-1";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/acme/endpointslices/orders-mcp-1";

/// A pod of the MCP server that has started, and accepts no connections yet.
fn starting_server() -> Value {
    let labels =
        json!({names::LABEL_MANAGED_BY: names::MANAGER, names::LABEL_COMPONENT: "mcp", names::LABEL_SKILL: "orders"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "acme", "name": "orders-mcp-1", "uid": "u-server", "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [{"name": "mcp", "image": "localhost/orders:3"}]},
        "status": {"containerStatuses": [{
            "name": "mcp", "image": "localhost/orders:3", "imageID": "sha256:1", "ready": false, "restartCount": 0,
            "started": false, "state": {"running": {}},
        }]},
    })
}

/// Reconciles the Skill with network policies, and returns the writes. The operator has known since `differs_since` that the Skill differs
/// from its status.
async fn writes_of_reconcile(api: &FakeApi, differs_since: &Arc<FirstSeen>) -> Vec<String> {
    let skill = serde_json::from_value(api.get(SKILL)).unwrap();
    Box::pin(reconcile(skill, isolating_operator(api).await, differs_since.clone())).await.unwrap();
    writes(api)
}

/// Records the findings of the probe in this pod, as the report endpoint does, and returns the writes.
async fn writes_of_report(api: &FakeApi, pod: &str) -> Vec<String> {
    let skill: Skill = serde_json::from_value(api.get(SKILL)).unwrap();
    let part = api.get(pod)["metadata"]["annotations"][ANNOTATION_PROBE_PART].clone();
    let part: ProbePart = serde_json::from_str(part.as_str().unwrap()).unwrap();
    let report = fixtures::probe_report(&skill, &part.subject, &[("refund", "Refunds an order")]);
    let status = crate::report::probe::record(&skill, &report, Time(Timestamp::now())).unwrap();
    api.operator().await.statuses.replace(&skill, status).await.unwrap();
    writes(api)
}

#[tokio::test]
async fn a_new_skill_whose_server_starts_soon_costs_fourteen_writes_and_the_memory_claim() {
    let (api, differs_since) = (FakeApi::default(), Arc::default());
    put(&api, &fixtures::with_container());
    let mut all = writes_of_reconcile(&api, &differs_since).await;
    assert_eq!(reason(&api, ConditionType::Ready), "Progressing");

    api.put(SERVER, starting_server());
    assert_eq!(writes_of_reconcile(&api, &differs_since).await, [""; 0], "the server starts");
    api.change(SERVER, |pod| {
        pod["status"]["containerStatuses"][0]["started"] = json!(true);
        pod["status"]["containerStatuses"][0]["ready"] = json!(true);
    });
    assert_eq!(writes_of_reconcile(&api, &differs_since).await, [""; 0], "the Deployment does not show it yet");
    api.change(DEPLOYMENT, |deployment| {
        deployment["status"] =
            json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
    });
    assert_eq!(writes_of_reconcile(&api, &differs_since).await, [""; 0], "the Service does not show it yet");
    api.put(SLICE, json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"namespace": "acme", "name": "orders-mcp-1", "labels": {"kubernetes.io/service-name": "orders-mcp"}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
    }));
    let started = writes_of_reconcile(&api, &differs_since).await;
    assert!(started.len() == 1 && started[0].starts_with("create /api/v1/namespaces/acme/pods/"), "{started:?}");
    let probe = started[0].strip_prefix("create ").unwrap();
    api.change(probe, |pod| pod["metadata"]["creationTimestamp"] = json!(Timestamp::now().to_string()));
    assert_eq!(writes_of_reconcile(&api, &differs_since).await, [""; 0], "the probe runs");

    let reported = writes_of_report(&api, probe).await;
    assert_eq!(reported, [format!("status {SKILL}")]);
    let ready = writes_of_reconcile(&api, &differs_since).await;
    assert_eq!(ready, [format!("delete {probe}"), format!("status {SKILL}")]);
    assert_eq!(reason(&api, ConditionType::Ready), "Ready");
    assert_eq!(api.get(SKILL)["status"]["mcp"]["imageID"], "sha256:1");
    all.extend(started.iter().chain(&reported).chain(&ready).cloned());
    let of_claim = all.iter().filter(|write| write.ends_with(CLAIM)).count();
    assert_eq!((all.len(), of_claim), (14 + 1, 1), "{all:?}");
}

/// A tenant whose Skill waits for its server, and the Skill.
async fn waiting() -> (FakeApi, Skill) {
    let api = provisioned(&fixtures::with_container()).await;
    let skill = serde_json::from_value(api.get(SKILL)).unwrap();
    (api, skill)
}

/// The status of the Skill after a change of this condition.
fn status_with(skill: &Skill, kind: ConditionType, change: fn(&mut Condition)) -> SkillStatus {
    let mut status = skill.status.clone().unwrap();
    let name = kind.to_string();
    status.conditions.iter_mut().filter(|condition| condition.type_ == name).for_each(change);
    status
}

#[tokio::test]
async fn a_change_of_a_wait_is_written_after_ten_seconds_and_not_if_it_passes_before() {
    let (api, skill) = waiting().await;
    let (context, differs_since, start) = (api.operator().await, FirstSeen::default(), Timestamp::now());
    let other = status_with(&skill, ConditionType::Reconciling, |condition| condition.message = "other".to_owned());
    let same = skill.status.clone().unwrap();
    let steps = [(0, &other, Some(10)), (9, &other, Some(1)), (9, &same, None), (10, &other, Some(10))];
    for (second, status, expected) in steps {
        let now = start + SignedDuration::from_secs(second);
        let left = write::write(&context, &differs_since, &skill, status, now).await.unwrap();
        assert_eq!((left, writes(&api)), (expected.map(SignedDuration::from_secs), vec![]), "second {second}");
    }
    let now = start + SignedDuration::from_secs(20);
    assert_eq!(write::write(&context, &differs_since, &skill, &other, now).await.unwrap(), None);
    assert_eq!(writes(&api), [format!("status {SKILL}")]);
}

#[rstest]
#[case::no_wait(|status: &mut SkillStatus| status.conditions.retain(|condition| condition.type_ != "Reconciling"))]
#[case::spec(|status: &mut SkillStatus| status.observed_generation = Some(9))]
#[case::revision(|status: &mut SkillStatus| status.revision = None)]
#[tokio::test]
async fn a_change_that_is_no_other_wait_is_written_at_once(#[case] change: fn(&mut SkillStatus)) {
    let (api, skill) = waiting().await;
    let mut status = skill.status.clone().unwrap();
    change(&mut status);
    let context = api.operator().await;
    let left = write::write(&context, &FirstSeen::default(), &skill, &status, Timestamp::now()).await.unwrap();
    assert_eq!((left, writes(&api)), (None, vec![format!("status {SKILL}")]));
}
