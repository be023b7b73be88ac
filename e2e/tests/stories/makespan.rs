//! The time that many Jobs, bare pods or batch/v1 Jobs take that are created at once.

use std::time::Duration;

use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Job, JobStatus};
use bloomery_e2e::harness::Tenant;
use bloomery_testkit::json::typed;
use futures::StreamExt;
use k8s_openapi::api::batch::v1::Job as BatchJob;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, ObjectMeta};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// The number of objects that are created concurrently.
const AT_ONCE: usize = 32;

/// The time limit of a measurement.
const LIMIT: Duration = Duration::from_mins(30);

/// The interval between two requests for an unfinished object, for each object that was created. The API server needs 50 ms to find one
/// among 5,000.
const INTERVAL_FOR_EACH: Duration = Duration::from_micros(500);

/// The label of what this module creates.
const LABEL: &str = "bloomery.dev/e2e-batch";

/// Returns a pod like a worker's that does nothing, and belongs to no Job.
pub fn bare(worker: &Pod, name: &str) -> Pod {
    let mut spec = worker.spec.clone().expect("a pod has a spec");
    spec.node_name = None;
    // The affinity selects pods by a label that the bare pod lacks.
    spec.affinity = None;
    spec.containers[0].args = Some(vec!["--help".to_owned()]);
    let labels = Some([(LABEL.to_owned(), "bare".to_owned())].into());
    let annotations = worker.metadata.annotations.clone();
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels, annotations, ..ObjectMeta::default() };
    Pod { metadata, spec: Some(spec), status: None }
}

/// Returns the time from the creation of pods like a worker's until all have succeeded.
pub async fn of_pods(tenant: &Tenant, worker: &Pod, count: usize) -> Duration {
    let from = Instant::now();
    let created = futures::stream::iter(0..count)
        .map(|number| async move { tenant.create(bare(worker, &format!("bare-{number}"))).await });
    created.buffer_unordered(AT_ONCE).for_each(|_| async {}).await;
    let live = live_pods(&format!("{LABEL}=bare"));
    patiently(count, "the pods to end", async || has_none(tenant, &live).await.then_some(())).await;
    let took = from.elapsed();
    let all = ListParams::default().labels(&format!("{LABEL}=bare"));
    let at_once = DeleteParams::default().grace_period(0);
    // The API server ends a request after a minute, and has deleted some of the pods until then.
    let pods = tenant.api::<Pod>();
    patiently(count, "the pods to be deleted", async || pods.delete_collection(&at_once, &all).await.ok()).await;
    took
}

/// Returns the time from the creation of Jobs until all have succeeded.
pub async fn of_jobs(tenant: &Tenant, count: usize) -> Duration {
    let from = Instant::now();
    let created = futures::stream::iter(0..count)
        .map(|number| async move { tenant.job(&format!("many-{number}")).labelled(LABEL, "job").await });
    created.buffer_unordered(AT_ONCE).for_each(|_| async {}).await;
    let (live, ours) = (live_pods(names::LABEL_JOB), ListParams::default().labels(&format!("{LABEL}=job")));
    let jobs = patiently(count, "the Jobs to end", async || {
        // The API server selects the live pods. Only if there are none, all Jobs are listed.
        if !has_none(tenant, &live).await {
            return None;
        }
        let jobs = tenant.api::<Job>().list(&ours).await.expect("Jobs can be listed").items;
        let has_ended = |job: &Job| job.status.as_ref().is_some_and(JobStatus::is_terminal);
        (jobs.len() == count && jobs.iter().all(has_ended)).then_some(jobs)
    })
    .await;
    let took = from.elapsed();
    let phase = |job: &Job| job.status.as_ref().and_then(|status| status.phase).unwrap_or_default().to_string();
    let failed: Vec<String> = jobs.iter().map(phase).filter(|phase| phase != "Succeeded").collect();
    assert_eq!(failed, [""; 0], "all Jobs succeed");
    took
}

/// Returns the time from the creation of batch/v1 Jobs with pods like a worker's until all have succeeded.
pub async fn of_batch_jobs(tenant: &Tenant, worker: &Pod, count: usize) -> Duration {
    let template = bare(worker, "batch");
    let job = |name: &str| -> BatchJob {
        let pod = json!({"metadata": {"annotations": template.metadata.annotations}, "spec": template.spec});
        typed(json!({
            "metadata": {"name": name, "labels": {LABEL: "batch"}}, "spec": {"backoffLimit": 0, "template": pod},
        }))
    };
    let from = Instant::now();
    let jobs: Vec<BatchJob> = (0..count).map(|number| job(&format!("batch-{number}"))).collect();
    let created = futures::stream::iter(jobs).map(|job| tenant.create(job));
    created.buffer_unordered(AT_ONCE).for_each(|_| async {}).await;
    let ours = ListParams::default().labels(&format!("{LABEL}=batch"));
    patiently(count, "the batch/v1 Jobs to end", async || {
        let jobs = tenant.api::<BatchJob>().list(&ours).await.expect("batch/v1 Jobs can be listed").items;
        let ended = |job: &BatchJob| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
        jobs.iter().all(ended).then_some(())
    })
    .await;
    from.elapsed()
}

/// Selects the pods with a label that have not ended.
fn live_pods(label: &str) -> ListParams {
    ListParams::default().labels(label).fields("status.phase!=Succeeded,status.phase!=Failed").limit(1)
}

async fn has_none(tenant: &Tenant, selected: &ListParams) -> bool {
    tenant.api::<Pod>().list_metadata(selected).await.expect("pods can be listed").items.is_empty()
}

/// Polls `ask` about this number of objects until it returns a value.
async fn patiently<T>(count: usize, what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let from = Instant::now();
    let interval = INTERVAL_FOR_EACH * u32::try_from(count).unwrap_or(u32::MAX);
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(from.elapsed() < LIMIT, "waited {LIMIT:?} for {what}");
        sleep(interval).await;
    }
}
