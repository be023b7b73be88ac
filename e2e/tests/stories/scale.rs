//! Benchmarks with thousands of Jobs. They need a quiet machine and several minutes. `make bench-cluster` runs them, and each fails if
//! its goal is missed.

use std::time::Duration;

use bloomery_crds::v1alpha1::{Job, Skill};
use bloomery_e2e::harness::fake_nodes::{memory_for_fake_nodes, with_fake_nodes};
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{Cluster, Tenant, audit, benchmark, cluster, figure, operator, refund_of, refunds};
use futures::StreamExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::Instant;

use crate::makespan;
use crate::numbers::{kib, ms};

/// The number of Jobs that start at once on fake nodes.
const AT_ONCE: usize = 5_000;

/// The number of batch/v1 Jobs. Their rate does not depend on their number.
const BATCH: usize = 300;

/// The number of fake nodes. Each has room for 1,000 pods.
const NODES: usize = 12;

/// The largest number of writes for each Job, from its creation to its end.
const MAX_WRITES: f64 = 6.0;

/// The number of namespaces with Jobs that have ended, and the number of Jobs and Skills in each.
const NAMESPACES: usize = 10;
const ENDED: usize = 1_000;
const SKILLS: usize = 100;

/// The limits of the operator's memory, in KiB.
const MAX_IDLE_KIB: u64 = 24 * 1024;
const MAX_FULL_KIB: u64 = 64 * 1024;

/// The longest time from the request to stop the operator to the readiness of the next one, which has synced its caches then.
const MAX_RESTART: Duration = Duration::from_secs(20);

/// The time for which the operator must write nothing.
const QUIET: Duration = Duration::from_mins(2);

/// The number of objects that a story creates concurrently.
const CREATIONS: usize = 32;

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn five_thousand_jobs_take_little_longer_than_their_pods_and_a_tenth_of_batch_jobs() {
    benchmark(async |tenant| {
        if !cluster::is_local_or_skips("fake nodes") {
            return;
        }
        memory_for_fake_nodes(tenant).await;
        tenant.model("default").await;
        tenant.skill_of("cs-tier-1", refunds()).await.ready().await;
        with_fake_nodes(&tenant.cluster, NODES, async || measure_throughput(tenant).await).await;
    })
    .await;
}

async fn measure_throughput(tenant: &Tenant) {
    let first = tenant.job("first").await;
    first.succeeded().await;
    let worker = first.pod(1).await;
    let bare = rate(AT_ONCE, makespan::of_pods(tenant, &worker, AT_ONCE).await);
    let (writes, events) = (audit::operator_writes(&tenant.namespace).len(), audit::operator_events(&tenant.namespace));
    let jobs = rate(AT_ONCE, makespan::of_jobs(tenant, AT_ONCE).await);
    let each = |count: usize| count_of(count) / count_of(AT_ONCE);
    let writes = each(audit::operator_writes(&tenant.namespace).len() - writes);
    let events = each(audit::operator_events(&tenant.namespace) - events);
    let memory = Process::find(&operator::ready_pod(&tenant.cluster).await, operator::PROGRAM).await.anonymous_kib();
    let batch = rate(BATCH, makespan::of_batch_jobs(tenant, &worker, BATCH).await);
    figure("5,000 bare pods on fake nodes, per minute", format!("{bare:.0}"));
    figure("5,000 Jobs on fake nodes, per minute", format!("{jobs:.0}"));
    figure("of the bare pods (at least 0.8)", format!("{:.2}", jobs / bare));
    figure("300 batch/v1 Jobs on fake nodes, per minute", format!("{batch:.0}"));
    figure("times the batch/v1 Jobs (at least 10)", format!("{:.1}", jobs / batch));
    figure("the operator's writes for each Job, without Events (at most 6)", format!("{writes:.2}"));
    figure("the operator's Events for each Job", format!("{events:.2}"));
    figure("the operator's anonymous memory at the end", format!("{memory} KiB"));
    assert!(writes <= MAX_WRITES, "{writes:.2} writes for each Job");
    assert!(jobs >= 0.8 * bare, "{jobs:.0} Jobs and {bare:.0} bare pods per minute");
    assert!(jobs >= 10.0 * batch, "{jobs:.0} Jobs and {batch:.0} batch/v1 Jobs per minute");
}

/// The number of ends per minute.
fn rate(count: usize, took: Duration) -> f64 {
    count_of(count) * 60.0 / took.as_secs_f64()
}

fn count_of(count: usize) -> f64 {
    kib(count as u64)
}

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn ten_thousand_ended_jobs_and_a_thousand_skills_need_little_memory_and_no_write() {
    benchmark(async |tenant| {
        if !cluster::is_local_or_skips("the operator's memory") {
            return;
        }
        operator::with_replicas(&tenant.cluster, 0, async || {}).await;
        let idle = memory(&tenant.cluster, &[tenant]).await;
        tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        tenant.job("first").await.succeeded().await;
        let ended = tenant.api::<Job>().get("first").await.expect("the Job exists");
        let mut others = Vec::new();
        for _ in 1..NAMESPACES {
            others.push(Tenant::open(tenant.cluster.clone()).await);
        }
        let tenants: Vec<&Tenant> = std::iter::once(tenant).chain(&others).collect();
        operator::with_replicas(&tenant.cluster, 0, async || {
            for tenant in &tenants {
                fill(tenant, &ended).await;
            }
        })
        .await;
        let filled = memory(&tenant.cluster, &tenants).await;
        let before = writes(&tenants);
        let from = Instant::now();
        operator::with_replicas(&tenant.cluster, 0, async || {}).await;
        let restarted = from.elapsed();
        let full = memory(&tenant.cluster, &tenants).await;
        assert_eq!(writes(&tenants), before, "a restart leads to no write");
        figure("the idle operator's anonymous memory (at most 24 MiB)", idle);
        figure("with 10,000 ended Jobs and 1,000 Skills, after it has processed the Skills", filled);
        figure("the same, after a restart (at most 64 MiB)", full);
        figure("from the request to stop the operator to the readiness of the next one", ms(restarted));
        for other in &others {
            other.delete().await;
        }
        for other in &others {
            other.gone().await;
        }
        assert!(filled.anonymous <= MAX_FULL_KIB && full.anonymous <= MAX_FULL_KIB, "{filled}, after a restart {full}");
        assert!(restarted <= MAX_RESTART, "{}", ms(restarted));
        assert!(idle.anonymous <= MAX_IDLE_KIB, "{idle}");
    })
    .await;
}

/// The memory of the operator, in KiB.
#[derive(Clone, Copy)]
struct Memory {
    anonymous: u64,
    resident: u64,
    peak: u64,
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { anonymous, resident, peak } = self;
        write!(f, "{anonymous} KiB (with the pages of its program {resident} KiB, at the peak {peak} KiB)")
    }
}

/// Returns the memory of the operator, after it has written nothing for two minutes.
async fn memory(cluster: &Cluster, tenants: &[&Tenant]) -> Memory {
    let quiet = tenants.iter().map(|tenant| audit::until_quiet(&tenant.namespace, QUIET, QUIET * 4));
    futures::future::join_all(quiet).await;
    let process = Process::find(&operator::ready_pod(cluster).await, operator::PROGRAM).await;
    Memory { anonymous: process.anonymous_kib(), resident: process.resident_kib(), peak: process.peak_kib() }
}

/// Returns the number of the operator's writes in these namespaces.
fn writes(tenants: &[&Tenant]) -> usize {
    tenants.iter().map(|tenant| audit::operator_writes(&tenant.namespace).len()).sum()
}

/// Creates Jobs with the spec and the status of an ended one, and Skills.
async fn fill(tenant: &Tenant, ended: &Job) {
    tenant.model("default").await;
    let (jobs, spec, status) = (&tenant.api::<Job>(), &ended.spec, &json!({"status": ended.status}));
    let made = futures::stream::iter(0..ENDED).map(|number| async move {
        let name = format!("ended-{number}");
        jobs.create(&PostParams::default(), &Job::new(&name, spec.clone())).await.expect("a Job is created");
        let written = jobs.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
        written.expect("its status is written");
    });
    made.buffer_unordered(CREATIONS).for_each(|()| async {}).await;
    let skills = &tenant.api::<Skill>();
    let made = futures::stream::iter(0..SKILLS).map(|number| async move {
        let skill = Skill::new(&format!("skill-{number}"), refunds());
        skills.create(&PostParams::default(), &skill).await.expect("a Skill is created");
    });
    made.buffer_unordered(CREATIONS).for_each(|()| async {}).await;
}
