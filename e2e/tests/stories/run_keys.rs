//! Jobs that are created again with the run key of an earlier run, as by GitOps or a restore.

use bloomery_crds::names;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::Job;
use bloomery_e2e::harness::{refund_of, story};
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// An order whose refund needs an approval.
const LARGE_ORDER: &str = "A-443";

#[tokio::test]
async fn a_job_that_is_created_again_takes_over_the_outcome_of_its_run() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        let first = tenant.job("refund").with_run_key("refund-a-17").await;
        let ended = first.succeeded().await;
        first.delete().await;
        first.gone().await;
        let again = tenant.job("refund").with_run_key("refund-a-17").await;
        let status = again.succeeded().await;
        assert_ne!(first.uid, again.uid);
        assert_eq!((status.result, status.outcome), (ended.result, ended.outcome));
        assert_eq!(status.log.map(|log| log.path).as_deref(), Some("jobs/refund-a-17"));
        shop.assert_refunded_once("A-17").await;

        let other = tenant.job("other").with_run_key("refund-a-17").goal("Refund order B-2").await;
        let refused = other.ended(OutcomeCode::UserNeeded).await;
        assert_eq!(refused.result, None);
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn a_job_with_the_key_of_an_unfinished_run_asks_its_approvers_again_and_refunds_once() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of(LARGE_ORDER)]).await;
        tenant.skill("cs-tier-1").tier_one().await;
        let draft = || tenant.job("refund").with_run_key("large").goal(&format!("Refund order {LARGE_ORDER}"));
        let first = draft().await;
        first.until_phase(Phase::AwaitingApproval).await;
        let second = tenant.job("second").with_run_key("large").goal(&format!("Refund order {LARGE_ORDER}")).await;
        second.until_reason("RunKeyInUse", &["large", "the Job refund"]).await;
        first.delete().await;
        first.gone().await;
        second.until_phase(Phase::AwaitingApproval).await;
        tenant.grant_approval("jane@acme.io", &["supervisor"]).await;
        let approval = tenant.approval_for(&second, "supervisor").await;
        tenant.person("jane@acme.io").await.decide(&approval, "Approve", "").await.expect("the decision is accepted");
        second.succeeded().await;
        shop.assert_refunded_once(LARGE_ORDER).await;
    })
    .await;
}

#[tokio::test]
async fn a_restored_job_waits_until_it_names_the_run_that_it_continues() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        let first = tenant.job("refund").await;
        first.succeeded().await;
        first.delete().await;
        first.gone().await;
        let restored = tenant.job("refund").labelled(names::LABEL_RESTORED, "monday").await;
        restored.until_reason("RestoredWithoutRunKey", &["monday", "spec.runKey"]).await;
        let key = Patch::Merge(json!({"spec": {"runKey": first.uid}}));
        let set = tenant.api::<Job>().patch("refund", &PatchParams::default(), &key).await;
        set.unwrap_or_else(|error| panic!("the run key cannot be set: {error}"));
        restored.succeeded().await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}
