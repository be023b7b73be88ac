//! The revisions of a Skill that changes, also while one of its Jobs runs.

use std::collections::BTreeSet;

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::v1alpha1::SkillStatus;
use bloomery_e2e::harness::{call, conversation, eventually, is_gone, refund_of, refunds, story};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use serde_json::json;

#[tokio::test]
async fn a_job_ends_on_the_revision_that_it_began_with() {
    let new_rules = [
        call("process_refund", json!({"order_id": "A-2", "amount": 1.0})).not_offered(&["process_refund"]),
        bloomery_e2e::harness::Turn::answer("A-2").after_result("Denied"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-1").hold(2, "thinking"), conversation("A-2", new_rules)]).await;
        let skill = tenant.skill("cs-tier-1").await;
        let old = tenant.job("old").goal("Refund order A-1").await;
        shop.model.until_held("thinking").await;
        let first = skill.ready().await.revision.expect("a Skill that is ready has a revision");

        // The running Job keeps what its revision allows. Only `blocked` would reach it.
        tenant.skill("cs-tier-1").allowing_only("track_order").await;
        let changed =
            |status: &bloomery_crds::v1alpha1::SkillStatus| status.revision.as_ref().is_some_and(|it| *it != first);
        let second = skill.until("another revision", changed).await.revision.expect("a revision");
        let new = tenant.job("new").goal("Refund order A-2").await.succeeded().await;
        assert_eq!(new.skill_revision, Some(second));

        shop.model.release("thinking").await;
        assert_eq!(old.succeeded().await.skill_revision.as_ref(), Some(&first));
        shop.assert_refunded_once("A-1").await;
        assert_eq!(shop.ledger.summary().await.effects, 1, "the refund that is not allowed now was not made");

        tenant.skill("cs-tier-1").await;
        let back = |status: &bloomery_crds::v1alpha1::SkillStatus| status.revision.as_ref() == Some(&first);
        skill.until("the first revision again", back).await;
    })
    .await;
}

#[tokio::test]
async fn a_replaced_revision_is_reported_and_created_again_after_its_deletion() {
    story(async |tenant| {
        tenant.model("default").await;
        let skill = tenant.skill("cs-tier-1").await;
        let revision = skill.ready().await.revision.expect("a Skill that is ready has a revision");
        let maps = tenant.api::<ConfigMap>();
        let stored = maps.get(&revision.name).await.expect("the revision is there");
        let mut forged = stored.clone();
        (forged.metadata.uid, forged.metadata.resource_version) = (None, None);
        forged.data = Some([("revision.json".to_owned(), "{}".to_owned())].into());
        // The operator creates a deleted revision again, so this can need several tries.
        eventually("the forged revision to be created before the operator's", async || {
            tenant.remove::<ConfigMap>(&revision.name).await;
            maps.create(&PostParams::default(), &forged).await.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
        skill.until_reason(ConditionType::Accepted, "Replaced", &[&revision.name, "kubectl delete"]).await;
        tenant.remove::<ConfigMap>(&revision.name).await;
        skill.ready().await;
        assert_eq!(maps.get(&revision.name).await.expect("it is there again").data, stored.data);
    })
    .await;
}

#[tokio::test]
async fn of_the_revisions_that_no_job_uses_the_newest_two_stay() {
    story(async |tenant| {
        tenant.model("default").await;
        let mut revisions = BTreeSet::new();
        for version in 1..=4 {
            let skill = tenant.skill_of("cs-tier-1", refunds()).with(|spec| spec.version = Some(version)).await;
            let is_new =
                |status: &SkillStatus| status.revision.as_ref().is_some_and(|it| !revisions.contains(&it.name));
            let revision = skill.until("another revision", is_new).await.revision.expect("a revision");
            revisions.insert(revision.name);
        }
        let maps = tenant.api::<ConfigMap>();
        eventually("one of the four revisions to be deleted", async || {
            let mut left = Vec::new();
            for revision in &revisions {
                if !is_gone(&maps, revision).await {
                    left.push(revision);
                }
            }
            if left.len() == 3 { Ok(()) } else { Err(left.len()) }
        })
        .await;
    })
    .await;
}
