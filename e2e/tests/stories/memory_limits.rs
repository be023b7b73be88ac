//! The size of a Skill's directory: what is measured, what stops new Jobs, what is pruned, and claims that cannot be used.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Memory, SkillSpec};
use bloomery_e2e::harness::{cluster, eventually, machine, refund_of, story, typed};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::json;

/// A bound of logs that is larger than the default age of the chart.
const OLD: Duration = Duration::from_hours(1000);

fn soft_limit(size: &str) -> impl FnOnce(&mut SkillSpec) {
    let memory = Memory { soft_limit: Some(size.to_owned()), ..Memory::default() };
    move |spec| spec.memory = Some(memory)
}

#[tokio::test]
async fn a_directory_above_its_soft_limit_stops_new_jobs_until_the_limit_is_raised() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("a file in the volume") {
            return;
        }
        let shop = tenant.shop(&["A-1", "A-2", "A-3"].map(refund_of)).await;
        let skill = tenant.skill("cs-tier-1").with(soft_limit("1Mi")).await;
        tenant.job("first").goal("Refund order A-1").await.succeeded().await;
        skill.until("a measured size", |status| status.memory.is_some()).await;
        let file = machine::memory(tenant).await.join("cs-tier-1/large");
        fs::write(&file, vec![0; 2 << 20]).expect("the file is written");
        tenant.job("second").goal("Refund order A-2").await.succeeded().await;
        let is_measured = |bytes: u64| bytes > 2 << 20;
        skill
            .until("the new size", |status| status.memory.as_ref().is_some_and(|memory| is_measured(memory.bytes)))
            .await;
        let third = tenant.job("third").goal("Refund order A-3").await;
        third.until_reason("SoftLimitReached", &["2.", "other 2.0 MiB", "softLimit of 1.0 MiB", "free memory"]).await;
        assert!(third.pods().await.is_empty(), "a Job that waits has no pod");
        tenant.skill("cs-tier-1").with(soft_limit("1Gi")).await;
        third.succeeded().await;
        shop.assert_refunded_once("A-3").await;
    })
    .await;
}

/// Sets the end of a run, according to its record.
fn set_ended(jobs: &Path, key: &str, ended: SystemTime) {
    let record = fs::File::options().append(true).open(jobs.join(format!("{key}.json"))).expect("the record exists");
    record.set_modified(ended).expect("its time is set");
}

#[tokio::test]
async fn the_old_log_of_a_deleted_job_is_pruned_and_its_key_still_takes_over_the_outcome() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("the times of files in the volume") {
            return;
        }
        let shop = tenant.shop(&["A-1", "A-2", "A-3"].map(refund_of)).await;
        tenant.skill("cs-tier-1").await;
        let gone = tenant.job("gone").with_run_key("refund-a-1").goal("Refund order A-1").await;
        let kept = tenant.job("kept").goal("Refund order A-2").await;
        let ended = gone.succeeded().await;
        kept.succeeded().await;
        let jobs = machine::memory(tenant).await.join("cs-tier-1/jobs");
        for key in ["refund-a-1", kept.uid.as_str()] {
            set_ended(&jobs, key, SystemTime::now() - OLD);
        }
        gone.delete().await;
        gone.gone().await;
        tenant.job("next").goal("Refund order A-3").await.succeeded().await;
        eventually("the log of the deleted Job to be pruned", async || {
            if jobs.join("refund-a-1").exists() { Err(()) } else { Ok(()) }
        })
        .await;
        assert!(jobs.join("refund-a-1.json").is_file(), "the outcome record stays");
        assert!(jobs.join(&kept.uid).is_dir(), "the log of a Job that exists stays");
        let again = tenant.job("gone").with_run_key("refund-a-1").goal("Refund order A-1").await;
        let status = again.succeeded().await;
        assert_eq!((status.result, status.outcome), (ended.result, ended.outcome));
        shop.assert_refunded_once("A-1").await;
    })
    .await;
}

fn claim(mode: &str, class: Option<&str>) -> PersistentVolumeClaim {
    typed(json!({
        "metadata": {"name": names::MEMORY_CLAIM},
        "spec": {"accessModes": [mode], "storageClassName": class, "resources": {"requests": {"storage": "50Mi"}}},
    }))
}

#[tokio::test]
async fn a_claim_that_cannot_be_bound_is_named_with_its_class() {
    story(async |tenant| {
        tenant.create(claim("ReadWriteOnce", Some("no-such-class"))).await;
        let _shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").await;
        job.until_reason("Unschedulable", &["PersistentVolumeClaim"]).await;
        let parts = ["no-such-class", "kubectl describe pvc bloomery-memory"];
        skill.until_reason(ConditionType::MemoryReady, "ClaimPending", &parts).await;
    })
    .await;
}

#[tokio::test]
async fn a_claim_for_one_pod_is_named_with_the_remedy() {
    story(async |tenant| {
        tenant.create(claim("ReadWriteOncePod", None)).await;
        tenant.model("default").await;
        let skill = tenant.skill("cs-tier-1").await;
        skill.until_reason(ConditionType::MemoryReady, "SinglePodClaim", &["ReadWriteOnce or ReadWriteMany"]).await;
        let job = tenant.job("refund").await;
        job.until_reason("SkillNotReady", &["SinglePodClaim"]).await;
    })
    .await;
}
