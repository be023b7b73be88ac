//! Jobs that invoke other Jobs with the core tool `use_skill`.

use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{Job, JobStatus, SkillSpec};
use bloomery_e2e::harness::{
    Conversation, JobHandle, Refusal, Shop, Tenant, call, conversation, refund_of, say, story, supervised, typed,
};
use kube::ResourceExt;
use serde_json::json;

use crate::deciding::{approve_as_supervisor, large_refund, parked_approval};

/// The Skill of the parents, which may invoke `cs-tier-1`.
const DESK: &str = "desk";

fn desk() -> SkillSpec {
    typed(json!({"problem": {"statement": "Settle complaints of customers."}, "skills": ["cs-tier-1"]}))
}

/// Returns the conversation of a parent that invokes `cs-tier-1` for an order, and reads its answer.
fn complaint(order: &str) -> Conversation {
    let arguments = json!({"action": "invoke", "name": "cs-tier-1", "goal": format!("Refund order {order}")});
    let answer = say("The complaint is settled.").after_result("refunded");
    conversation("Settle the complaint", [call("use_skill", arguments), answer])
}

/// Starts a parent. The Skill of its child makes a large refund only with an approval.
async fn start_complaint<'t>(tenant: &'t Tenant, order: &str, refund: Conversation) -> (Shop, JobHandle<'t>) {
    let shop = tenant.shop(&[complaint(order), refund]).await;
    let child_skill = tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
    child_skill.ready().await;
    tenant.skill_of(DESK, desk()).await;
    let parent = tenant.job("complaint").for_skill(DESK).goal("Settle the complaint").await;
    (shop, parent)
}

/// Waits for the child of a Job, and returns it.
async fn child_of<'t>(tenant: &'t Tenant, parent: &JobHandle<'_>) -> JobHandle<'t> {
    let name = |status: &JobStatus| status.children.first().and_then(|child| child.name.clone());
    let status = parent.until("a child", |status| name(status).is_some()).await;
    let child = tenant.api::<Job>().get(&name(&status).unwrap_or_default()).await.expect("the child exists");
    let named = child.spec.parent.as_ref().expect("a child names its parent");
    assert_eq!((&named.name, &named.uid), (&parent.name, &parent.uid));
    assert_eq!(child.owner_references()[0].uid, parent.uid);
    tenant.existing_job(&child)
}

#[tokio::test]
async fn a_job_invokes_another_one_and_reads_its_answer() {
    story(async |tenant| {
        let (shop, parent) = start_complaint(tenant, "A-17", refund_of("A-17")).await;
        let child = child_of(tenant, &parent).await;
        child.succeeded().await;
        let status = parent.succeeded().await;
        let [record] = &status.children[..] else { panic!("one child: {:?}", status.children) };
        assert_eq!((record.phase, record.settled), (Some(Phase::Succeeded), true));
        shop.assert_refunded_once("A-17").await;
        shop.model.assert_no_violations().await;
        parent.delete().await;
        child.gone().await;
    })
    .await;
}

#[tokio::test]
async fn a_job_waits_without_a_pod_while_its_child_waits_for_an_approval() {
    story(async |tenant| {
        let (shop, parent) = start_complaint(tenant, "A-443", large_refund("A-443")).await;
        let child = child_of(tenant, &parent).await;
        let approval = parked_approval(tenant, &child).await;
        parent.until_reason("AwaitingJob", &[&child.name, "approval"]).await;
        parent.pods_have_ended().await;
        approve_as_supervisor(tenant, &approval).await;
        child.succeeded().await;
        let status = parent.succeeded().await;
        assert!(status.attempt.is_some_and(|attempt| attempt.number > 1), "it parked and resumed");
        shop.assert_refunded_once("A-443").await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn cancelling_a_job_cancels_its_child() {
    story(async |tenant| {
        let (shop, parent) = start_complaint(tenant, "A-443", large_refund("A-443")).await;
        let child = child_of(tenant, &parent).await;
        parked_approval(tenant, &child).await;
        parent.until_phase(Phase::AwaitingJob).await;
        parent.cancel().await;
        parent.ended(OutcomeCode::Cancelled).await;
        child.ended(OutcomeCode::Cancelled).await;
        assert_eq!(shop.ledger.summary().await.effects, 0);
    })
    .await;
}

#[tokio::test]
async fn only_the_operator_sets_the_parent_of_a_job() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        let parent = json!({"name": "complaint", "uid": "u-1", "call": "c-1"});
        let spec = json!({"skill": "absent", "goal": "Refund order A-17", "parent": parent});
        let why = jobs.refuses("forged", &spec).await;
        assert!(why.contains("spec.parent: only the operator sets it"), "{why}");
        jobs.create("own", &json!({"skill": "absent", "goal": "Refund order A-17"})).await;
        let Err(Refusal(why)) = jobs.change("own", &json!({"spec": {"parent": parent}})).await else {
            panic!("it should be refused")
        };
        assert!(why.contains("spec.parent: "), "{why}");
    })
    .await;
}
