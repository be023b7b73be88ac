//! Jobs that invoke other Jobs with the core tool `use_skill`.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::outcome::{OutcomeCode, Phase};
use bloomery_crds::v1alpha1::{Job, JobStatus, SkillSpec};
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{
    Conversation, JobHandle, Refusal, Shop, Tenant, call, cluster, conversation, operator, refund_of, say, story,
    story_alone, supervised, typed,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use crate::deciding::{approve_as_supervisor, large_refund, parked_approval};
use crate::faults::WORKER;
use crate::parked;
use crate::takeover::kill_leader;

/// The Skill of the parents, which may invoke `cs-tier-1`.
pub(crate) const DESK: &str = "desk";

/// Returns the spec of the Skill of the parents.
pub(crate) fn desk() -> SkillSpec {
    typed(json!({"problem": {"statement": "Settle complaints of customers."}, "skills": ["cs-tier-1"]}))
}

/// Returns the conversation of a parent that invokes `cs-tier-1` for an order, and reads its answer.
pub(crate) fn complaint(order: &str) -> Conversation {
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
pub(crate) async fn child_of<'t>(tenant: &'t Tenant, parent: &JobHandle<'_>) -> JobHandle<'t> {
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

/// Starts a parent whose child has made its refund of A-17, and whose model works on its answer until `release_child`.
async fn start_with_working_child(tenant: &Tenant) -> (Shop, JobHandle<'_>, JobHandle<'_>) {
    let (shop, parent) = start_complaint(tenant, "A-17", refund_of("A-17").hold(3, "answering")).await;
    let child = child_of(tenant, &parent).await;
    shop.model.until_held("answering").await;
    (shop, parent, child)
}

async fn release_child(shop: &Shop) {
    shop.model.release("answering").await;
}

/// Waits until a parent and its child have succeeded. Checks that the parent had only this child, that the order was refunded once, and that
/// no turn of the parent was requested twice.
async fn succeed_once(tenant: &Tenant, shop: &Shop, parent: &JobHandle<'_>, child: &JobHandle<'_>) {
    child.succeeded().await;
    let status = parent.succeeded().await;
    let children: Vec<_> = status.children.iter().filter_map(|child| child.name.as_deref()).collect();
    assert_eq!(children, [child.name.as_str()]);
    let jobs = tenant.api::<Job>().list(&ListParams::default()).await.expect("Jobs can be listed").items;
    let mut uids: Vec<_> = jobs.iter().filter_map(ResourceExt::uid).collect();
    uids.sort_unstable();
    let mut expected = vec![parent.uid.clone(), child.uid.clone()];
    expected.sort_unstable();
    assert_eq!(uids, expected, "no Job was created again");
    shop.assert_refunded_once("A-17").await;
    parked::assert_asked_once(shop, parent).await;
}

/// Kills the worker of the first attempt of a Job with its pod, and waits for the second attempt.
async fn kill_first_pod(tenant: &Tenant, job: &JobHandle<'_>) {
    let pod = job.pod(1).await;
    if cluster::is_local() {
        Process::find(&pod, WORKER).await.kill();
    }
    let at_once = DeleteParams::default().grace_period(0);
    tenant.api::<Pod>().delete(&pod.name_any(), &at_once).await.expect("the pod is deleted");
    job.until("a second attempt", |status| status.attempt.as_ref().is_some_and(|attempt| attempt.number > 1)).await;
}

#[tokio::test]
async fn a_parent_whose_pod_is_killed_takes_the_result_of_the_same_child() {
    story(async |tenant| {
        let (shop, parent) = start_complaint(tenant, "A-17", refund_of("A-17").hold(1, "answering")).await;
        // The parent has just asked for its child, so its worker still waits.
        let child = child_of(tenant, &parent).await;
        kill_first_pod(tenant, &parent).await;
        shop.model.until_held("answering").await;
        release_child(&shop).await;
        succeed_once(tenant, &shop, &parent, &child).await;
    })
    .await;
}

#[tokio::test]
async fn a_child_whose_pod_is_killed_goes_on_for_the_same_parent() {
    story(async |tenant| {
        let (shop, parent, child) = start_with_working_child(tenant).await;
        kill_first_pod(tenant, &child).await;
        release_child(&shop).await;
        succeed_once(tenant, &shop, &parent, &child).await;
    })
    .await;
}

/// Starts a parent that waits without a pod, because its child waits for the approval of a large refund.
async fn start_with_parked_child(tenant: &Tenant) -> (Shop, JobHandle<'_>, JobHandle<'_>) {
    let (shop, parent) = start_complaint(tenant, "A-443", large_refund("A-443")).await;
    let child = child_of(tenant, &parent).await;
    parked_approval(tenant, &child).await;
    parent.until_phase(Phase::AwaitingJob).await;
    (shop, parent, child)
}

#[tokio::test]
async fn a_child_that_is_deleted_before_its_end_asks_a_person() {
    story(async |tenant| {
        let (shop, parent, child) = start_with_parked_child(tenant).await;
        child.delete().await;
        let asked = parent.until_questions(1).await;
        assert!(asked[0].text.contains("use_skill"), "the call should be named: {}", asked[0].text);
        parent.reply(Some("q-1"), "stop").await;
        parent.ended(OutcomeCode::ToolIndeterminate).await;
        assert_eq!(shop.ledger.summary().await.effects, 0);
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
        let (shop, parent, child) = start_with_parked_child(tenant).await;
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

/// Returns the spec of a Skill with a feature that another Skill implements.
fn delegating(subskill: &str) -> SkillSpec {
    let test = "When asked, then refund";
    let feature =
        json!({"name": "refunds", "testScenario": test, "expectedResult": "A refund", "ext": {"subskill": subskill}});
    typed(json!({"problem": {"statement": "Refund orders."}, "skills": [subskill], "features": [feature]}))
}

#[tokio::test]
async fn skills_that_are_subskills_of_each_other_are_not_accepted_until_one_of_them_is_changed() {
    story(async |tenant| {
        tenant.model("default").await;
        let first = tenant.skill_of("first", delegating("second")).await;
        first.until_reason(ConditionType::SubskillsFound, "SubskillMissing", &["\"second\""]).await;
        first.ready().await;
        let second = tenant.skill_of("second", delegating("first")).await;
        first.until_reason(ConditionType::Accepted, "SubskillCycle", &["first -> second -> first"]).await;
        second.until_reason(ConditionType::Accepted, "SubskillCycle", &["second -> first -> second"]).await;
        tenant.skill_of("second", typed(json!({"problem": {"statement": "Refund orders."}}))).await;
        let status = first.ready().await;
        assert_eq!(conditions::find(&status.conditions, ConditionType::SubskillsFound), None);
        second.ready().await;
    })
    .await;
}

/// These disturb all stories. `hack/e2e` runs them one by one, after the others.
mod alone {
    use super::*;

    #[tokio::test]
    async fn a_leader_that_is_killed_while_a_child_runs_repeats_nothing() {
        story_alone(async |tenant| {
            let (shop, parent, child) = start_with_working_child(tenant).await;
            kill_leader(&tenant.cluster).await;
            release_child(&shop).await;
            operator::until_rolled_out(&tenant.cluster).await;
            succeed_once(tenant, &shop, &parent, &child).await;
        })
        .await;
    }
}
