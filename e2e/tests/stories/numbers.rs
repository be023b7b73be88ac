//! Benchmarks of waiting and resuming. They need a quiet machine and several minutes. `make bench-cluster` runs them, and
//! each fails if its goal is missed.

use std::time::Duration;

use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::Job;
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{
    Cluster, JobHandle, Shop, Tenant, Turn, audit, benchmark, call, cluster, conversation, eventually, figure,
    operator, refund_of, supervised,
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{ListParams, LogParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::deciding::{large_refund, parked_approval, supervisor};
use crate::makespan;

/// The orders of the measurements, one for each. The median of the measurements counts.
const ROUNDS: [&str; 5] = ["A-443", "A-543", "A-643", "A-743", "A-843"];

/// The number of waiting Jobs.
const WAITING: usize = 5_000;

/// The limit of the operator's memory for each waiting Job, in KiB.
const MAX_KIB_PER_JOB: f64 = 6.0;

/// The time for which the operator must write nothing while the Jobs wait.
const QUIET: Duration = Duration::from_mins(1);

/// The time limit for the end of a cancelled Job.
const CANCELLED: Duration = Duration::from_secs(10);

/// The number of objects that the story creates concurrently.
const AT_ONCE: usize = 16;

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn a_decision_leads_to_a_request_in_the_start_time_of_a_pod() {
    benchmark(async |tenant| {
        if !cluster::is_local_or_skips("one clock") {
            return;
        }
        let shop = tenant.shop(&ROUNDS.map(large_refund)).await;
        tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
        let jane = supervisor(tenant, "jane@acme.io").await;
        let mut waiting = Vec::new();
        for order in ROUNDS {
            let job = tenant.job(&order.to_lowercase()).goal(&format!("Refund order {order}")).await;
            let approval = parked_approval(tenant, &job).await;
            waiting.push((job, approval));
        }
        let (mut bare, mut decided) = (Vec::new(), Vec::new());
        for (job, approval) in waiting {
            bare.push(bare_pod(tenant, &job).await);
            let from = Timestamp::now();
            jane.decide(&approval, "Approve", "").await.expect("the decision is accepted");
            decided.push(since(from, asked_at(tenant, &shop, &job, 2).await));
            job.succeeded().await;
        }
        shop.model.assert_no_violations().await;
        let (bare, decided) = (median(bare), median(decided));
        let goal = bare.mul_f64(1.3) + Duration::from_millis(100);
        figure("from the creation of a bare pod like a worker's to its first output (median of 5)", ms(bare));
        figure("from a decision to the next request to the model (median of 5)", ms(decided));
        figure("the goal: 1.3 times the bare pod, plus 100 ms", ms(goal));
        assert!(decided <= goal, "{} is more than {}", ms(decided), ms(goal));
    })
    .await;
}

/// Returns the time from the creation of a pod like the Job's next one to its first output.
pub async fn bare_pod(tenant: &Tenant, job: &JobHandle<'_>) -> Duration {
    let name = format!("bare-{}", job.name);
    let pod = makespan::bare(&job.pod(1).await, &name);
    let from = Timestamp::now();
    tenant.create(pod).await;
    let first = eventually("the first byte of the bare pod", async || {
        let log = timed_log(tenant, &name).await.map_err(|error| error.to_string())?;
        log.lines().find_map(at).ok_or_else(|| "no output yet".to_owned())
    });
    since(from, first.await)
}

/// Returns the time at which the model received the request for a turn of a Job.
pub async fn asked_at(tenant: &Tenant, shop: &Shop, job: &JobHandle<'_>, turn: usize) -> Timestamp {
    shop.model.until_asked(&job.uid, turn, 1).await;
    eventually("the request in the model's log", async || {
        let log = timed_log(tenant, "model").await.map_err(|error| error.to_string())?;
        let asked = log.lines().filter(|line| line.contains(&job.uid) && line.contains("place=\"turn "));
        asked.filter_map(at).nth(turn).ok_or(log)
    })
    .await
}

/// Returns the log of a pod with the time of each line.
pub async fn timed_log(tenant: &Tenant, pod: &str) -> kube::Result<String> {
    let timed = LogParams { timestamps: true, ..LogParams::default() };
    tenant.api::<Pod>().logs(pod, &timed).await
}

/// Returns the time of a line.
pub fn at(line: &str) -> Option<Timestamp> {
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the time between two points of time.
pub fn since(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Returns the median.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns a time as text.
pub fn ms(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn a_cancelled_job_ends_within_ten_seconds() {
    benchmark(async |tenant| {
        let orders = ["HOLD-7", "A-17", "A-443"];
        let refunds = [refund_of(orders[0]), refund_of(orders[1]).hold(3, "thinking"), large_refund(orders[2])];
        let shop = tenant.shop(&refunds).await;
        tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
        let [calls, thinks, waits] = orders.map(|order| (order.to_lowercase(), format!("Refund order {order}")));
        let calls = tenant.job(&calls.0).goal(&calls.1).await;
        shop.ledger.until_refunded(orders[0]).await;
        let thinks = tenant.job(&thinks.0).goal(&thinks.1).await;
        shop.model.until_held("thinking").await;
        let waits = tenant.job(&waits.0).goal(&waits.1).await;
        parked_approval(tenant, &waits).await;
        let queued = tenant.job("queued").for_skill("not-there").await;
        queued.until_reason("SkillNotFound", &[]).await;
        for (what, job) in
            [("within a call", calls), ("while its model thinks", thinks), ("parked", waits), ("queued", queued)]
        {
            let from = Timestamp::now();
            job.cancel().await;
            job.ended(OutcomeCode::Cancelled).await;
            let took = since(from, Timestamp::now());
            figure(&format!("from a cancel to the end, {what} (at most 10 s)"), ms(took));
            assert!(took <= CANCELLED, "{what} it took {}", ms(took));
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn five_thousand_waiting_jobs_need_no_pod_no_write_and_little_memory() {
    benchmark(async |tenant| {
        if !cluster::is_local_or_skips("the operator's memory") {
            return;
        }
        let turns = [call("ask_user", json!({"text": "Which order?"})), Turn::answer("A-17")];
        tenant.shop(&[conversation("my money", turns)]).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").goal("I want my money back").await;
        job.until_phase(Phase::AwaitingReply).await;
        job.pods_have_ended().await;
        operator::with_replicas(&tenant.cluster, 0, async || {}).await;
        let before = anonymous_kib(tenant, &tenant.cluster).await;

        operator::with_replicas(&tenant.cluster, 0, async || create_copies(tenant, "refund").await).await;
        let from = audit::operator_writes(&tenant.namespace).len();
        let writes = audit::until_quiet(&tenant.namespace, QUIET, QUIET * 3).await;
        let after = anonymous_kib(tenant, &tenant.cluster).await;
        let pods = tenant.api::<Pod>().list(&ListParams::default().labels("bloomery.dev/job")).await;
        let pods =
            pods.expect("pods can be listed").items.into_iter().filter(|pod| pod.name_any() != job_pod(&job)).count();
        let each = kib(after.saturating_sub(before)) / kib(WAITING as u64);
        figure("waiting Jobs", WAITING);
        figure("the operator's anonymous memory before", format!("{before} KiB"));
        figure("the operator's anonymous memory with them", format!("{after} KiB"));
        figure("for each waiting Job (at most 6 KiB)", format!("{each:.1} KiB"));
        figure("pods of the waiting Jobs", pods);
        figure("writes while they wait", writes.len() - from);
        assert_eq!((pods, audit::list(&writes[from..])), (0, String::new()), "waiting costs nothing");
        assert!(each <= MAX_KIB_PER_JOB, "each takes {each:.1} KiB");
    })
    .await;
}

fn job_pod(job: &JobHandle<'_>) -> String {
    bloomery_crds::names::worker_pod(&job.name, 1, &job.uid)
}

/// Creates [`WAITING`] Jobs with the spec and the status of this waiting Job.
async fn create_copies(tenant: &Tenant, name: &str) {
    let jobs = tenant.api::<Job>();
    let job = jobs.get(name).await.expect("the Job exists");
    let status = json!({"status": job.status});
    let (jobs, spec, status) = (&jobs, &job.spec, &status);
    let made = futures::stream::iter(0..WAITING).map(|n| async move {
        let name = format!("waits-{n:04}");
        jobs.create(&PostParams::default(), &Job::new(&name, spec.clone())).await.expect("a Job is made");
        let written = jobs.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
        written.expect("its status is written");
    });
    made.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

/// Returns the operator's anonymous memory in KiB, after it has processed all objects.
async fn anonymous_kib(tenant: &Tenant, cluster: &Cluster) -> u64 {
    audit::until_quiet(&tenant.namespace, QUIET, QUIET * 3).await;
    Process::find(&operator::ready_pod(cluster).await, operator::PROGRAM).await.anonymous_kib()
}

/// Returns a number for a figure.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub fn kib(number: u64) -> f64 {
    number as f64
}
