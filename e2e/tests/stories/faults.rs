//! Crashes of pods, workers, servers and the operator: no effect is lost or repeated.

use bloomery_crds::names;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_e2e::harness::machine::{self, Process};
use bloomery_e2e::harness::{
    JobHandle, Shop, Tenant, cluster, eventually, operator, refund_of, story, story_alone, typed,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, EvictParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::memory;

/// The name of the worker's program in its pod.
pub const WORKER: &str = "bloomery-worker";

/// Starts a Job, and waits until its model works on the last answer, after all tool calls.
async fn thinking(tenant: &Tenant) -> (Shop, JobHandle<'_>) {
    let shop = tenant.shop(&[refund_of("A-17").hold(3, "thinking")]).await;
    tenant.skill("cs-tier-1").await;
    let job = tenant.job("refund").await;
    shop.model.until_held("thinking").await;
    (shop, job)
}

/// Releases the model's last answer to the second attempt. Checks that the Job then succeeds, with one refund, and that no
/// answered turn was requested again.
async fn resumes_in_attempt_two(shop: &Shop, job: &JobHandle<'_>) {
    job.until("a second attempt", |status| status.attempt.as_ref().is_some_and(|attempt| attempt.number == 2)).await;
    // The second attempt has claimed the log and asked the model, so an answer to the first attempt is ignored.
    shop.model.until_asked(&job.uid, 3, 2).await;
    shop.model.release("thinking").await;
    let status = job.succeeded().await;
    let attempt = status.attempt.expect("a Job that ran has an attempt");
    assert_eq!((attempt.number, attempt.epoch), (2, Some(2)));
    shop.assert_refunded_once("A-17").await;
    let asked = shop.model.asked_by(&job.uid).await;
    for turn in 0..3 {
        assert_eq!(asked.by_position.get(&turn), Some(&1), "turn {turn} was answered and logged before: {asked:?}");
    }
    assert!((4..=5).contains(&asked.answered), "the last turn at most twice: {asked:?}");
    let usage = status.usage.expect("a Job has spent something");
    assert_eq!((usage.llm_calls.plan, usage.tool_calls), (5, 3), "a lost request also counts");
}

#[tokio::test]
async fn a_pod_deleted_while_the_model_thinks_loses_nothing() {
    story(async |tenant| {
        let (shop, job) = thinking(tenant).await;
        let before = log_lines(tenant, &job).await;
        tenant.remove::<Pod>(&job.pod(1).await.name_any()).await;
        resumes_in_attempt_two(&shop, &job).await;
        assert_begins_with(&log_lines(tenant, &job).await, &before);
    })
    .await;
}

#[tokio::test]
async fn an_evicted_pod_parks_and_its_job_resumes() {
    story(async |tenant| {
        let (shop, job) = thinking(tenant).await;
        let before = log_lines(tenant, &job).await;
        let evicted = tenant.api::<Pod>().evict(&job.pod(1).await.name_any(), &EvictParams::default()).await;
        evicted.expect("the eviction is accepted");
        resumes_in_attempt_two(&shop, &job).await;
        assert_begins_with(&log_lines(tenant, &job).await, &before);
        assert_parked(tenant, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_preempted_pod_parks_and_its_job_resumes() {
    story(async |tenant| {
        let (shop, job) = thinking(tenant).await;
        let before = log_lines(tenant, &job).await;
        let classes = Api::<PriorityClass>::all(tenant.cluster.client.clone());
        let class: PriorityClass = typed(json!({"metadata": {"name": tenant.namespace}, "value": 1000}));
        classes.create(&PostParams::default(), &class).await.expect("the priority class is created");
        let urgent = urgent_pod(&tenant.namespace, &job.name, &job.pod(1).await);
        // The API server may not know the new class yet.
        eventually("the urgent pod to be accepted", async || {
            tenant.api::<Pod>().create(&PostParams::default(), &urgent).await
        })
        .await;
        // The scheduler deletes the worker's pod, and the next one waits until the urgent pod has left the node.
        job.until_reason("Unschedulable", &["anti-affinity"]).await;
        tenant.remove::<Pod>(&urgent.name_any()).await;
        classes.delete(&tenant.namespace, &DeleteParams::default()).await.expect("the priority class is deleted");
        resumes_in_attempt_two(&shop, &job).await;
        assert_begins_with(&log_lines(tenant, &job).await, &before);
        assert_parked(tenant, &job).await;
    })
    .await;
}

/// Returns a pod of this priority class that must run on the node of a worker, without workers of its Job. So the scheduler preempts
/// this worker and no other pod, however much room the node has.
fn urgent_pod(class: &str, job: &str, worker: &Pod) -> Pod {
    let node = worker.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).expect("the worker runs on a node");
    typed(json!({
        "metadata": {"name": "urgent"},
        "spec": {
            "priorityClassName": class,
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
                ]}},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                    "labelSelector": {"matchLabels": {(names::LABEL_JOB): job}}, "topologyKey": "kubernetes.io/hostname",
                }]},
            },
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "urgent", "image": cluster::image("e2e-ledger"),
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    }))
}

#[tokio::test]
async fn a_worker_that_outlives_its_deleted_pod_cannot_disturb_the_next_attempt() {
    story(async |tenant| {
        let (shop, job) = thinking(tenant).await;
        let pod = job.pod(1).await;
        // The object is deleted at once. Its container has a minute to end, and may still run.
        let at_once = DeleteParams::default().grace_period(0);
        tenant.api::<Pod>().delete(&pod.name_any(), &at_once).await.expect("the pod is deleted");
        resumes_in_attempt_two(&shop, &job).await;
    })
    .await;
}

#[tokio::test]
async fn a_worker_killed_while_the_model_thinks_loses_nothing() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("SIGKILL of a worker") {
            return;
        }
        let (shop, job) = thinking(tenant).await;
        let before = log_lines(tenant, &job).await;
        Process::find(&job.pod(1).await, WORKER).await.kill();
        resumes_in_attempt_two(&shop, &job).await;
        assert_begins_with(&log_lines(tenant, &job).await, &before);
    })
    .await;
}

#[tokio::test]
async fn a_worker_killed_during_a_call_with_an_effect_asks_a_person() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("SIGKILL of a worker") {
            return;
        }
        let shop = tenant.shop(&[refund_of("HOLD-5")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("Refund order HOLD-5").await;
        shop.ledger.until_refunded("HOLD-5").await;
        Process::find(&job.pod(1).await, WORKER).await.kill();
        let asked = job.until_questions(1).await;
        assert!(asked[0].text.contains("process_refund"), "the call should be named: {}", asked[0].text);
        job.reply(Some("q-1"), "stop").await;
        let status = job.ended(OutcomeCode::ToolIndeterminate).await;
        let message = status.outcome.map(|outcome| outcome.message).unwrap_or_default();
        assert!(message.contains("process_refund"), "the call should be named: {message}");
        shop.assert_refunded_once("HOLD-5").await;
    })
    .await;
}

#[tokio::test]
async fn a_server_killed_during_a_call_with_an_effect_asks_a_person() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("HOLD-6")]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("Refund order HOLD-6").await;
        shop.ledger.until_refunded("HOLD-6").await;
        let at_once = DeleteParams::default().grace_period(0);
        let ours = ListParams::default().labels("bloomery.dev/skill=cs-tier-1,app.kubernetes.io/component=mcp");
        tenant.api::<Pod>().delete_collection(&at_once, &ours).await.expect("the MCP server's pod is deleted");
        job.until_questions(1).await;
        job.reply(Some("q-1"), "stop").await;
        job.ended(OutcomeCode::ToolIndeterminate).await;
        shop.assert_refunded_once("HOLD-6").await;
    })
    .await;
}

async fn succeeded_in_its_first_attempt(shop: &Shop, job: &JobHandle<'_>) {
    let status = job.succeeded().await;
    let attempt = status.attempt.expect("a Job that ran has an attempt");
    assert_eq!((attempt.number, attempt.epoch), (1, Some(1)), "the worker continued without the operator");
    shop.assert_refunded_once("A-17").await;
}

/// Returns the log's lines on the volume, or none where the volume cannot be read.
async fn log_lines(tenant: &Tenant, job: &JobHandle<'_>) -> Vec<String> {
    if !cluster::is_local() {
        return Vec::new();
    }
    memory::log(&machine::memory(tenant).await.join("cs-tier-1"), &job.uid)
}

/// Checks that a worker of the Job parked, where the volume can be read.
async fn assert_parked(tenant: &Tenant, job: &JobHandle<'_>) {
    if cluster::is_local_or_skips("the volume") {
        let log = log_lines(tenant, job).await;
        assert!(log.iter().any(|line| line.contains(r#""type":"parked""#)), "it parked: {log:#?}");
    }
}

fn assert_begins_with(after: &[String], before: &[String]) {
    assert_eq!(after.get(..before.len()), Some(before), "the earlier lines are unchanged");
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn an_operator_killed_while_jobs_run_does_not_affect_them() {
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("SIGKILL of the operator") {
                return;
            }
            let (shop, job) = thinking(tenant).await;
            let operator = operator::ready_pod(&tenant.cluster).await;
            Process::find(&operator, operator::PROGRAM).await.kill();
            shop.model.release("thinking").await;
            operator::until_rolled_out(&tenant.cluster).await;
            succeeded_in_its_first_attempt(&shop, &job).await;
        })
        .await;
    }

    #[tokio::test]
    async fn an_operator_pod_deleted_while_jobs_run_does_not_affect_them() {
        story_alone(async |tenant| {
            let (shop, job) = thinking(tenant).await;
            let operator = operator::ready_pod(&tenant.cluster).await;
            let at_once = DeleteParams::default().grace_period(0);
            operator::api(&tenant.cluster).delete(&operator.name_any(), &at_once).await.expect("the pod is deleted");
            shop.model.release("thinking").await;
            operator::until_rolled_out(&tenant.cluster).await;
            succeeded_in_its_first_attempt(&shop, &job).await;
        })
        .await;
    }
}
