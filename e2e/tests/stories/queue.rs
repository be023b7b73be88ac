//! Jobs that wait in the queue, within the maxima of a Skill, a namespace and the cluster, and within a quota.

use bloomery_crds::names;
use bloomery_crds::outcome::Phase;
use bloomery_crds::pod;
use bloomery_crds::v1alpha1::{Job, Skill};
use bloomery_e2e::harness::{
    Cluster, Conversation, JobHandle, Tenant, cluster, eventually, operator, refund_of, story, story_alone, typed,
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

/// Returns the conversations about the orders `A-1` to `A-<count>`. Each waits at the hold `busy` before its second turn.
fn busy(count: usize) -> Vec<Conversation> {
    (1..=count).map(|number| refund_of(&format!("A-{number}")).hold(1, "busy")).collect()
}

/// Creates a Job for each of the orders `A-1` to `A-<count>`, one after another.
async fn refunds(tenant: &Tenant, count: usize) -> Vec<JobHandle<'_>> {
    let mut jobs = Vec::new();
    for number in 1..=count {
        jobs.push(tenant.job(&format!("refund-{number}")).goal(&format!("Refund order A-{number}")).await);
    }
    jobs
}

/// Waits until this number of Jobs of the tenant wait in the queue, and this number has a pod that runs.
async fn until_queued(tenant: &Tenant, queued: usize, running: usize) {
    eventually(&format!("{queued} queued and {running} running Jobs"), async || {
        let jobs = tenant.api::<Job>().list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let phases: Vec<_> = jobs.items.into_iter().map(|job| job.status.and_then(|status| status.phase)).collect();
        let count = |phase| phases.iter().filter(|other| **other == Some(phase)).count();
        let seen = (count(Phase::Queued), count(Phase::Running));
        if seen == (queued, running) { Ok(()) } else { Err(format!("{phases:?}")) }
    })
    .await;
}

/// The number of Jobs with which a tenant floods the queue.
const FLOOD: usize = 1_000;

/// Creates the Jobs of the flood, all with one conversation.
async fn flood(tenant: &Tenant) {
    let created = futures::stream::iter((1..=FLOOD).map(|number| async move {
        tenant.job(&format!("flood-{number}")).goal("Refund order A-1").await;
    }));
    created.buffer_unordered(10).for_each(|()| async {}).await;
}

/// Deletes all Jobs of the tenant, and waits until they are gone.
async fn remove_jobs(tenant: &Tenant) {
    let jobs = tenant.api::<Job>();
    jobs.delete_collection(&DeleteParams::default(), &ListParams::default()).await.expect("Jobs can be deleted");
    eventually("no Job to be left", async || {
        let left = jobs.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} Jobs are left")) }
    })
    .await;
}

#[tokio::test]
async fn jobs_over_the_maximum_of_their_skill_wait_in_their_order() {
    story(async |tenant| {
        let shop = tenant.shop(&busy(3)).await;
        tenant.skill("cs-tier-1").with(|spec| spec.max_running_jobs = Some(1)).await.ready().await;
        let jobs = refunds(tenant, 3).await;
        until_queued(tenant, 2, 1).await;
        jobs[2].until_reason("Queued", &["1 of at most 1 Jobs", "the Skill cs-tier-1", "spec.maxRunningJobs"]).await;
        let queued = format!(
            r#"bloomery_jobs_queued{{namespace="{}",skill="cs-tier-1",waits_for="skill"}} 2"#,
            tenant.namespace
        );
        eventually("the number of queued Jobs as a metric", async || {
            let metrics = operator::get(&tenant.cluster, "/metrics").await;
            let series = metrics.lines().filter(|line| line.contains("queue")).map(str::to_owned).collect::<Vec<_>>();
            if series.contains(&queued) { Ok(()) } else { Err(series) }
        })
        .await;
        // A higher maximum starts exactly one more Job. It creates no revision.
        let before =
            tenant.api::<Skill>().get("cs-tier-1").await.expect("the Skill").status.expect("a status").revision;
        let raised = Patch::Merge(json!({"spec": {"maxRunningJobs": 2}}));
        tenant.api::<Skill>().patch("cs-tier-1", &PatchParams::default(), &raised).await.expect("it can be raised");
        until_queued(tenant, 1, 2).await;
        let after = tenant.api::<Skill>().get("cs-tier-1").await.expect("the Skill").status.expect("a status").revision;
        assert_eq!(after, before);
        assert!(jobs[2].pods().await.is_empty(), "the oldest Jobs start first");
        shop.model.release("busy").await;
        for (job, order) in jobs.iter().zip(["A-1", "A-2", "A-3"]) {
            job.succeeded().await;
            shop.assert_refunded_once(order).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_annotation_of_a_namespace_limits_its_jobs() {
    story(async |tenant| {
        let shop = tenant.shop(&busy(2)).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let annotate = async |value: &str| {
            let annotations = json!({names::ANNOTATION_MAX_RUNNING_JOBS: value});
            let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
            let namespaces = Api::<Namespace>::all(tenant.cluster.client.clone());
            namespaces.patch(&tenant.namespace, &PatchParams::default(), &patch).await.expect("it can be annotated");
        };
        annotate("1").await;
        let jobs = refunds(tenant, 2).await;
        until_queued(tenant, 1, 1).await;
        jobs[1].until_reason("Queued", &["of the namespace", names::ANNOTATION_MAX_RUNNING_JOBS]).await;
        annotate("2").await;
        until_queued(tenant, 0, 2).await;
        shop.model.release("busy").await;
        for job in &jobs {
            job.succeeded().await;
        }
    })
    .await;
}

#[tokio::test]
async fn jobs_start_one_after_another_within_a_quota_of_pods() {
    story(async |tenant| {
        let shop = tenant.shop(&busy(3)).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let quota = json!({"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}});
        tenant.create::<ResourceQuota>(typed(quota)).await;
        let used = async || {
            let quota = tenant.api::<ResourceQuota>().get("small").await.map_err(|error| error.to_string())?;
            let used = quota.status.and_then(|status| status.used?.get("pods")?.0.parse::<usize>().ok());
            used.ok_or_else(|| "it is not counted".to_owned())
        };
        eventually("the quota to be counted", async || used().await).await;
        let jobs = refunds(tenant, 3).await;
        for job in &jobs {
            job.until_reason("QuotaExceeded", &["exceeded quota: small"]).await;
        }
        // The pod of the probe may have been counted, and must not end later.
        let used = eventually("the quota to be counted again", async || {
            let pods = tenant.api::<Pod>().list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let alive = pods.iter().filter(|pod| !pod::has_ended(pod)).count();
            let used = used().await?;
            let is_probe = |pod: &&Pod| pod.labels().get(names::LABEL_COMPONENT).is_some_and(|what| what == "probe");
            let probes = pods.iter().filter(is_probe).count();
            if (used, probes) == (alive, 0) { Ok(used) } else { Err(format!("{used} of {alive}, {probes} probes")) }
        })
        .await;
        let one_more = Patch::Merge(json!({"spec": {"hard": {"pods": (used + 1).to_string()}}}));
        let raised = tenant.api::<ResourceQuota>().patch("small", &PatchParams::default(), &one_more).await;
        raised.expect("a quota can be raised");
        shop.model.until_held("busy").await;
        let running = async |job: &JobHandle<'_>| job.pods().await.len();
        let pods = futures::future::join_all(jobs.iter().map(running)).await;
        assert_eq!(pods.iter().sum::<usize>(), 1, "the quota has room for one pod: {pods:?}");
        shop.model.release("busy").await;
        for job in &jobs {
            job.succeeded().await;
        }
    })
    .await;
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn many_jobs_of_one_namespace_do_not_delay_two_of_another() {
        // The maximum of the cluster would delay other stories.
        story_alone(async |tenant| {
            if !cluster::is_local_or_skips("changing the settings of the operator") {
                return;
            }
            let other = Tenant::open(Cluster { client: tenant.cluster.client.clone() }).await;
            let shop = tenant.shop(&busy(1)).await;
            let _others = other.shop(&["A-1", "A-2"].map(refund_of)).await;
            tokio::join!(tenant.skill("cs-tier-1").into_future(), other.skill("cs-tier-1").into_future());
            let env = json!([{"name": "BLOOMERY_MAX_RUNNING_JOBS", "value": "2"}]);
            let change = json!({"spec": {"containers": [{"name": operator::CONTAINER, "env": env}]}});
            operator::with_template(&tenant.cluster, &change, async || {
                flood(tenant).await;
                until_queued(tenant, FLOOD - 2, 2).await;
                let few = refunds(&other, 2).await;
                until_queued(&other, 2, 0).await;
                few[1].until_reason("Queued", &["2 of at most 2 Jobs", "of the cluster", "jobs.maxRunning"]).await;
                shop.model.release("busy").await;
                for job in &few {
                    job.succeeded().await;
                }
                let many = tenant.api::<Job>().list(&ListParams::default()).await.expect("Jobs can be listed");
                let has_started = |job: &&Job| job.status.as_ref().is_some_and(|status| status.attempt.is_some());
                let started = many.iter().filter(has_started).count();
                assert!(
                    started < FLOOD / 10,
                    "{started} of {FLOOD} Jobs started before the two of another namespace ended"
                );
                // Without the maximum, all of them would start at once.
                remove_jobs(tenant).await;
            })
            .await;
            other.delete().await;
        })
        .await;
    }
}
