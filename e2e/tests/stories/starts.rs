//! Benchmarks of starts on the real node, against bare pods of the same template in the same run. They need a quiet machine. `make
//! bench-cluster` runs them, and each fails if its goal is missed.

use std::time::Duration;

use bloomery_crds::names;
use bloomery_e2e::harness::{
    Conversation, SkillHandle, Tenant, Turn, benchmark, cluster, conversation, eventually, figure, refunds, until,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, ObjectMeta};
use tokio::time::Instant;

use crate::children::{DESK, child_of, complaint, desk};
use crate::makespan;
use crate::numbers::{asked_at, at, bare_pod, median, ms, since, timed_log};

/// The number of measurements. The median counts.
const ROUNDS: usize = 7;

/// The number of Jobs that start at once. The node has room for 250 pods.
const MANY: usize = 200;

/// The time from the readiness of a server to that of its Skill: the start of the pod of a probe, and its report.
const PROBE: Duration = Duration::from_millis(1_500);

/// The time of a call that invokes a Skill, beyond the time in which the worker of the child works: the request, the start of a pod, and the
/// answer.
const DELEGATION: Duration = Duration::from_millis(1_500);

/// An answer in the form that the Skill requires, without a call.
fn answers() -> Conversation {
    conversation("A-17", [Turn::answer("A-17")])
}

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn a_job_prints_its_first_line_in_the_start_time_of_a_pod() {
    benchmark(async |tenant| {
        if !cluster::is_local_or_skips("one clock") {
            return;
        }
        tenant.shop(&[answers()]).await;
        tenant.skill_of("cs-tier-1", refunds()).await.ready().await;
        tenant.job("first").await.succeeded().await;
        let (mut bare, mut jobs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let from = Timestamp::now();
            let job = tenant.job(&format!("job-{round}")).await;
            let pod = names::worker_pod(&job.name, 1, &job.uid);
            let first = eventually("the first line of the worker", async || {
                let log = timed_log(tenant, &pod).await.map_err(|error| error.to_string())?;
                log.lines().find_map(at).ok_or_else(|| "no output yet".to_owned())
            });
            jobs.push(since(from, first.await));
            job.succeeded().await;
            bare.push(bare_pod(tenant, &job).await);
        }
        let (bare, jobs) = (median(bare), median(jobs));
        let goal = bare.mul_f64(1.3) + Duration::from_millis(100);
        figure("from the creation of a bare pod like a worker's to its first output (median of 7)", ms(bare));
        figure("from the creation of a Job to the first line of its worker (median of 7)", ms(jobs));
        figure("the goal: 1.3 times the bare pod, plus 100 ms", ms(goal));
        assert!(jobs <= goal, "{} is more than {}", ms(jobs), ms(goal));
    })
    .await;
}

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn a_skill_is_ready_soon_after_its_server() {
    benchmark(async |tenant| {
        tenant.model("default").await;
        let (mut bare, mut skills) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let from = Instant::now();
            let skill = tenant.skill(&format!("skill-{round}")).await;
            skill.ready().await;
            skills.push(from.elapsed());
            bare.push(bare_server(tenant, &skill).await);
            skill.delete().await;
        }
        let (bare, skills) = (median(bare), median(skills));
        let goal = bare + PROBE;
        figure("from the creation of a bare pod with the server of a Skill to its readiness (median of 7)", ms(bare));
        figure("from the creation of a Skill with a container server to its readiness (median of 7)", ms(skills));
        figure("the goal: the bare pod, plus 1,500 ms", ms(goal));
        assert!(skills <= goal, "{} is more than {}", ms(skills), ms(goal));
    })
    .await;
}

/// Returns the time from the creation of a pod like that of a Skill's server to its readiness.
async fn bare_server(tenant: &Tenant, skill: &SkillHandle<'_>) -> Duration {
    let labels = format!("{}={},{}=mcp", names::LABEL_SKILL, skill.name, names::LABEL_COMPONENT);
    let servers = tenant.api::<Pod>().list(&ListParams::default().labels(&labels)).await.expect("pods can be listed");
    let mut spec = servers.items.into_iter().next().and_then(|pod| pod.spec).expect("the server has a pod");
    spec.node_name = None;
    let name = format!("bare-{}", skill.name);
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    let from = Instant::now();
    tenant.create(Pod { metadata, spec: Some(spec), status: None }).await;
    let is_ready = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    until(&tenant.api::<Pod>(), &name, "the bare server to be ready", is_ready).await;
    let took = from.elapsed();
    tenant.remove::<Pod>(&name).await;
    took
}

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn a_delegated_call_takes_little_longer_than_the_work_of_its_child() {
    benchmark(async |tenant| {
        if !cluster::is_local_or_skips("one clock") {
            return;
        }
        let shop = tenant.shop(&[complaint("A-17"), answers()]).await;
        tenant.skill_of("cs-tier-1", refunds()).await.ready().await;
        tenant.skill_of(DESK, desk()).await.ready().await;
        let (mut own, mut extra) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let draft = tenant.job(&format!("complaint-{round}")).for_skill(DESK);
            let parent = draft.goal("Settle the complaint").await;
            let child = child_of(tenant, &parent).await;
            parent.succeeded().await;
            let pod = names::worker_pod(&child.name, 1, &child.uid);
            let log = timed_log(tenant, &pod).await.expect("the log of the child can be read");
            let lines: Vec<Timestamp> = log.lines().filter_map(at).collect();
            let (Some(first), Some(last)) = (lines.first(), lines.last()) else { panic!("the child printed nothing") };
            let asked = asked_at(tenant, &shop, &parent, 0).await;
            let call = since(asked, asked_at(tenant, &shop, &parent, 1).await);
            own.push(since(*first, *last));
            extra.push(call.saturating_sub(since(*first, *last)));
        }
        let (own, extra) = (median(own), median(extra));
        figure("from the first to the last line of the worker of a child (median of 7)", ms(own));
        figure("a delegated call, without this time (median of 7)", ms(extra));
        figure("the goal", ms(DELEGATION));
        assert!(extra <= DELEGATION, "{} is more than {}", ms(extra), ms(DELEGATION));
    })
    .await;
}

#[tokio::test]
#[ignore = "a benchmark for a quiet machine: make bench-cluster"]
async fn two_hundred_jobs_take_little_longer_than_their_pods() {
    benchmark(async |tenant| {
        tenant.shop(&[answers()]).await;
        tenant.skill_of("cs-tier-1", refunds()).await.ready().await;
        let first = tenant.job("first").await;
        first.succeeded().await;
        let worker = first.pod(1).await;
        let bare = makespan::of_pods(tenant, &worker, MANY).await;
        let jobs = makespan::of_jobs(tenant, MANY).await;
        let goal = bare.mul_f64(1.3);
        figure("200 bare pods like a worker's, from the first creation to the last end", ms(bare));
        figure("200 Jobs, each with one request to a model, from the first creation to the last end", ms(jobs));
        figure("the goal: 1.3 times the bare pods", ms(goal));
        assert!(jobs <= goal, "{} is more than {}", ms(jobs), ms(goal));
    })
    .await;
}
