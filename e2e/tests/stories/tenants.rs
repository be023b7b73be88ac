//! Objects that exist in a tenant before the operator's, and volumes that refuse a write.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::names;
use bloomery_e2e::harness::{cluster, machine, refund_of, story, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event, PersistentVolumeClaim, Service};
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

fn object<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).expect("an object")
}

#[tokio::test]
async fn an_existing_memory_claim_is_used_unchanged() {
    story(async |tenant| {
        let claim = tenant
            .create::<PersistentVolumeClaim>(object(json!({
                "metadata": {"name": names::MEMORY_CLAIM, "labels": {"team": "support"}},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "50Mi"}}},
            })))
            .await;
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        let after = tenant.api::<PersistentVolumeClaim>().get(names::MEMORY_CLAIM).await.expect("the claim stays");
        assert_eq!(after.uid(), claim.uid());
        assert_eq!(after.labels(), claim.labels());
        assert!(after.owner_references().is_empty(), "it belongs to the tenant alone");
    })
    .await;
}

#[tokio::test]
async fn an_object_of_another_owner_is_not_changed() {
    story(async |tenant| {
        let theirs = tenant
            .create::<Service>(object(json!({
                "metadata": {"name": "cs-tier-1-mcp"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "theirs"}},
            })))
            .await;
        tenant.model("default").await;
        let skill = tenant.skill("cs-tier-1").await;
        skill.until_reason(ConditionType::McpAvailable, "NameTaken", &["cs-tier-1-mcp"]).await;
        let after = tenant.api::<Service>().get("cs-tier-1-mcp").await.expect("their Service stays");
        assert_eq!(after.spec, theirs.spec);
        tenant.remove::<Service>("cs-tier-1-mcp").await;
        skill.ready().await;
    })
    .await;
}

#[tokio::test]
async fn changed_and_deleted_objects_of_the_operator_are_restored() {
    story(async |tenant| {
        tenant.model("default").await;
        let skill = tenant.skill("cs-tier-1").await;
        let revision = skill.ready().await.revision.expect("a revision").name;
        tenant.remove::<Service>("cs-tier-1-mcp").await;
        tenant.remove::<ConfigMap>(&revision).await;
        let marked = ListParams::default().labels("bloomery.dev/skill=cs-tier-1");
        bloomery_e2e::harness::eventually("Service and revision to come back", async || {
            let services = tenant.api::<Service>().list(&marked).await.expect("Services can be listed").items.len();
            let maps = tenant.api::<ConfigMap>().list(&marked).await.expect("ConfigMaps can be listed").items.len();
            if (services, maps) == (1, 1) { Ok(()) } else { Err((services, maps)) }
        })
        .await;
        skill.ready().await;
    })
    .await;
}

#[tokio::test]
async fn what_others_add_to_the_server_of_a_skill_is_removed_and_their_labels_and_replicas_stay() {
    story(async |tenant| {
        tenant.model("default").await;
        let skill = tenant.skill("cs-tier-1").await;
        skill.ready().await;
        let (services, deployments) = (tenant.api::<Service>(), tenant.api::<Deployment>());
        let merge = PatchParams::default();
        let service = json!({"metadata": {"labels": {"team": "a"}}, "spec": {"selector": {"team": "a"}}});
        services.patch("cs-tier-1-mcp", &merge, &Patch::Strategic(service)).await.expect("the Service is changed");
        let container = json!({
            "name": "mcp", "env": [{"name": "LD_PRELOAD", "value": "/tmp/x.so"}], "securityContext": {"runAsUser": 10002},
        });
        let deployment = json!({"spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}}});
        deployments.patch("cs-tier-1-mcp", &merge, &Patch::Strategic(deployment)).await.expect("it is changed");
        until(&services, "cs-tier-1-mcp", "the selector without the added key", |service| {
            let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            selector.is_some_and(|selector| !selector.contains_key("team"))
        })
        .await;
        let repaired = until(&deployments, "cs-tier-1-mcp", "the container without the additions", |deployment| {
            let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
            let container = pod.and_then(|pod| pod.containers.first());
            container.is_some_and(|container| {
                let mut env = container.env.iter().flatten();
                let context = container.security_context.as_ref();
                env.all(|variable| variable.name != "LD_PRELOAD")
                    && context.is_some_and(|context| context.run_as_user.is_none())
            })
        })
        .await;
        assert_eq!(repaired.spec.and_then(|spec| spec.replicas), Some(2), "the replicas of others stay");
        let service = services.get("cs-tier-1-mcp").await.expect("the Service stays");
        assert_eq!(service.labels().get("team").map(String::as_str), Some("a"), "the labels of others stay");
        let status = skill.ready().await;
        assert!(conditions::find(&status.conditions, ConditionType::McpAsWritten).is_none());
    })
    .await;
}

#[tokio::test]
async fn a_skill_directory_without_write_access_is_named_and_its_jobs_wait_until_it_is_writable() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("a look at the volume") {
            return;
        }
        let shop = tenant.shop(&["A-1", "A-2", "A-3"].map(refund_of)).await;
        let (_, skill) = tokio::join!(tenant.skill("cs-tier-1").into_future(), tenant.skill("cs-tier-2").into_future());
        tenant.job("first").goal("Refund order A-1").await.succeeded().await;
        // As after a restore by root: the worker's user cannot write to the directory.
        let skill_dir = machine::memory(tenant).await.join("cs-tier-2");
        std::fs::create_dir(&skill_dir).expect("the directory is made");
        std::fs::set_permissions(&skill_dir, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .expect("its mode is set");
        let job = tenant.job("second").for_skill("cs-tier-2").goal("Refund order A-2").await;
        job.until_reason("NotWritable", &["/memory/cs-tier-2", "fsGroup"]).await;
        skill.until_reason(ConditionType::MemoryReady, "NotWritable", &["/memory/cs-tier-2"]).await;
        let next = tenant.job("third").for_skill("cs-tier-2").goal("Refund order A-3").await;
        next.until_reason("SkillNotReady", &["NotWritable"]).await;
        assert!(next.pods().await.is_empty(), "a Job that waits has no pod");
        std::fs::set_permissions(&skill_dir, std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .expect("its mode is set");
        job.succeeded().await;
        next.succeeded().await;
        skill.ready().await;
        for order in ["A-1", "A-2", "A-3"] {
            shop.assert_refunded_once(order).await;
        }
    })
    .await;
}

#[tokio::test]
async fn events_report_the_progress_of_skills_and_jobs() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        bloomery_e2e::harness::eventually("Events of the Skill and the Job", async || {
            let events = tenant.api::<Event>().list(&ListParams::default()).await.expect("Events can be listed");
            let events: Vec<(String, String)> = events
                .into_iter()
                .map(|event| (event.involved_object.name.unwrap_or_default(), event.reason.unwrap_or_default()))
                .collect();
            let wanted = [("cs-tier-1", "Ready"), ("refund", "Starting"), ("refund", "Succeeded")];
            let is_reported =
                |(name, why): &(&str, &str)| events.iter().any(|(of, reason)| of == name && reason == why);
            if wanted.iter().all(is_reported) { Ok(()) } else { Err(events) }
        })
        .await;
    })
    .await;
}
