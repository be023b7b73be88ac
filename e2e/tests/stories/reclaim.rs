//! Skills whose directories are removed with them (`memory.reclaimPolicy: Delete`). A deletion always ends.

use bloomery_crds::names;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::Skill;
use bloomery_e2e::harness::{
    JobHandle, Shop, SkillHandle, Tenant, cluster, eventually, is_gone, machine, refund_of, story, until,
};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

/// Starts a Job of a Skill with the policy `Delete`, and waits until its model works on an answer.
async fn at_work(tenant: &Tenant) -> (Shop, SkillHandle<'_>, JobHandle<'_>) {
    let shop = tenant.shop(&[refund_of("A-17").hold(1, "thinking"), refund_of("A-18")]).await;
    let skill = tenant.skill("cs-tier-1").with_reclaimed_memory().await;
    skill.until_finalizer().await;
    let job = tenant.job("refund").await;
    shop.model.until_held("thinking").await;
    (shop, skill, job)
}

#[tokio::test]
async fn a_deleted_skill_ends_its_jobs_and_leaves_no_directory() {
    story(async |tenant| {
        let (_shop, skill, job) = at_work(tenant).await;
        tenant.skill("kept").await;
        tenant.job("other").for_skill("kept").goal("Refund order A-18").await.succeeded().await;
        skill.delete().await;
        skill.gone().await;
        job.ended(OutcomeCode::SkillDeleted).await;
        let reclaim = names::reclaim_pod("cs-tier-1", &skill.uid);
        eventually("the pod that removes the directory to go", async || {
            if is_gone(&tenant.api::<Pod>(), &reclaim).await { Ok(()) } else { Err(()) }
        })
        .await;
        if cluster::is_local_or_skips("a look at the volume") {
            let memory = machine::memory(tenant).await;
            let left: Vec<String> = std::fs::read_dir(&memory)
                .expect("the memory can be read")
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .filter(|name| name != "lost+found")
                .collect();
            assert_eq!(left, ["kept"], "only the directory of the other Skill is left");
        }
        // The name can be used again.
        tenant.skill("cs-tier-1").with_reclaimed_memory().await.ready().await;
    })
    .await;
}

#[tokio::test]
async fn a_skill_whose_policy_is_changed_to_retain_goes_and_keeps_its_directory() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").with_reclaimed_memory().await;
        skill.until_finalizer().await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        let retain = Patch::Merge(json!({"spec": {"memory": {"reclaimPolicy": "Retain"}}}));
        let changed = tenant.api::<Skill>().patch("cs-tier-1", &PatchParams::default(), &retain).await;
        changed.expect("the policy is changed");
        let is_free = |skill: &Skill| skill.finalizers().is_empty();
        until(&tenant.api::<Skill>(), "cs-tier-1", "the finalizer to be removed", is_free).await;
        skill.delete().await;
        skill.gone().await;
        if cluster::is_local_or_skips("a look at the volume") {
            assert!(machine::memory(tenant).await.join("cs-tier-1/jobs").is_dir(), "the directory stays");
        }
    })
    .await;
}

#[tokio::test]
async fn a_deletion_ends_although_the_claim_is_being_deleted_and_an_event_says_what_stays() {
    story(async |tenant| {
        let (_shop, skill, job) = at_work(tenant).await;
        // The running pod keeps the claim from going.
        tenant.remove::<PersistentVolumeClaim>(names::MEMORY_CLAIM).await;
        skill.delete().await;
        skill.gone().await;
        job.ended(OutcomeCode::SkillDeleted).await;
        eventually("an Event that says what stays", async || {
            let events = tenant.api::<Event>().list(&ListParams::default()).await.expect("Events can be listed");
            let notes = events.into_iter().filter(|event| event.reason.as_deref() == Some("DirectoryStays"));
            let notes: Vec<String> = notes.filter_map(|event| event.message).collect();
            let says = |note: &String| note.contains("the directory cs-tier-1") && note.contains(names::MEMORY_CLAIM);
            if notes.iter().any(says) { Ok(()) } else { Err(notes) }
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_namespace_with_such_a_skill_and_a_running_job_can_be_deleted() {
    story(async |tenant| {
        at_work(tenant).await;
        tenant.delete().await;
        tenant.gone().await;
    })
    .await;
}
