//! Deletion of Skills, Jobs and namespaces in use: nothing hangs, and only the memory remains.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::names;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_e2e::harness::{JobHandle, Shop, SkillHandle, Tenant, eventually, refund_of, story};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service, ServiceAccount};
use kube::api::ListParams;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// Starts a Job, and waits until its model works on an answer.
async fn at_work(tenant: &Tenant) -> (Shop, SkillHandle<'_>, JobHandle<'_>) {
    let shop = tenant.shop(&[refund_of("A-17").hold(1, "thinking")]).await;
    let skill = tenant.skill("cs-tier-1").await;
    let job = tenant.job("refund").await;
    shop.model.until_held("thinking").await;
    (shop, skill, job)
}

#[tokio::test]
async fn a_running_job_that_is_deleted_leaves_only_the_memory() {
    story(async |tenant| {
        let (_shop, skill, job) = at_work(tenant).await;
        job.delete().await;
        job.gone().await;
        eventually("the Job's pods to go", async || match job.pods().await.as_slice() {
            [] => Ok(()),
            left => Err(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>()),
        })
        .await;
        skill.ready().await;
        assert_memory_stays(tenant).await;
    })
    .await;
}

#[tokio::test]
async fn deleting_a_skill_ends_its_running_job_and_leaves_only_the_memory() {
    story(async |tenant| {
        let (_shop, skill, job) = at_work(tenant).await;
        skill.delete().await;
        skill.gone().await;
        job.ended(OutcomeCode::SkillDeleted).await;
        until_operator_objects_are_gone(tenant).await;
        assert_memory_stays(tenant).await;
    })
    .await;
}

#[tokio::test]
async fn a_skill_whose_server_never_answered_can_be_deleted() {
    story(async |tenant| {
        tenant.shop(&[]).await;
        let skill = tenant.skill("cs-tier-1").with_server_env("SILENT", "true").with_reclaimed_memory().await;
        skill.until_finalizer().await;
        skill.until_reason(ConditionType::McpVerified, "ProbeFailed", &["cannot be listed"]).await;
        skill.delete().await;
        skill.gone().await;
        until_operator_objects_are_gone(tenant).await;
    })
    .await;
}

#[tokio::test]
async fn a_job_that_has_not_started_waits_after_its_skill_is_deleted() {
    story(async |tenant| {
        // There is no Model, so that the Job cannot start.
        let skill = tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").await;
        job.until_reason("ModelNotFound", &["default"]).await;
        skill.delete().await;
        skill.gone().await;
        job.until_reason("SkillNotFound", &[]).await;
    })
    .await;
}

#[tokio::test]
async fn a_namespace_with_a_running_job_can_be_deleted() {
    story(async |tenant| {
        at_work(tenant).await;
        tenant.delete().await;
        tenant.gone().await;
    })
    .await;
}

async fn assert_memory_stays(tenant: &Tenant) {
    let claim = tenant.api::<PersistentVolumeClaim>().get(names::MEMORY_CLAIM).await;
    assert!(claim.is_ok_and(|claim| claim.metadata.deletion_timestamp.is_none()), "the memory should stay");
}

/// Waits until none of the operator's objects remain, except ended worker pods: `kubectl logs` needs those.
async fn until_operator_objects_are_gone(tenant: &Tenant) {
    eventually("the objects of the operator to be deleted", async || {
        let mut left = Vec::new();
        left.extend(operator_objects::<ConfigMap>(tenant).await);
        left.extend(operator_objects::<ServiceAccount>(tenant).await);
        left.extend(operator_objects::<Service>(tenant).await);
        left.extend(operator_objects::<Deployment>(tenant).await);
        left.extend(operator_objects::<ReplicaSet>(tenant).await);
        left.extend(pods(tenant).await);
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

/// Returns the operator's pods that have not ended.
async fn pods(tenant: &Tenant) -> Vec<String> {
    let with_skill_label = ListParams::default().labels(names::LABEL_SKILL);
    let found = tenant.api::<Pod>().list(&with_skill_label).await.expect("pods can be listed");
    let has_ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    found.iter().filter(|pod| !has_ended(pod)).map(|pod| format!("Pod {}", pod.name_any())).collect()
}

/// Returns the objects of a kind that the operator created for a Skill.
async fn operator_objects<K>(tenant: &Tenant) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let with_skill_label = ListParams::default().labels(names::LABEL_SKILL);
    let found = tenant.api::<K>().list(&with_skill_label).await.expect("objects can be listed");
    found.iter().map(|object| format!("{} {}", K::kind(&()), object.name_any())).collect()
}
