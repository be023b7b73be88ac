//! Tests of Skills that name other Skills.

use super::super::{fixtures, named_skills};
use super::{SKILL, conditions, provisioned, put, reason, reconcile_once, writes};
use crate::caches::Guarded;
use crate::job::fixtures::api::FakeApi;
use bloomery_crds::conditions::{ConditionType, find, is_true};
use bloomery_crds::v1alpha1::Skill;
use kube::ResourceExt;
use rstest::rstest;
use serde_json::json;

/// Returns a Skill that may invoke these Skills, and has a feature for each of these subskills.
fn naming(name: &str, skills: &[&str], subskills: &[&str]) -> Skill {
    let feature = |subskill: &&str| json!({"name": subskill, "testScenario": "x", "expectedResult": "y", "ext": {"subskill": subskill}});
    let mut skill = fixtures::without_server();
    skill.metadata.name = Some(name.to_owned());
    skill.metadata.uid = Some(format!("u-{name}"));
    skill.spec.skills = skills.iter().map(|skill| (*skill).to_owned()).collect();
    skill.spec.features = serde_json::from_value(subskills.iter().map(feature).collect()).unwrap();
    skill
}

/// Stores a Skill that is not reconciled.
fn put_other(api: &FakeApi, skill: &Skill) {
    api.put(&path(&skill.name_any()), serde_json::to_value(skill).unwrap());
}

fn path(name: &str) -> String {
    SKILL.replace("/orders", &format!("/{name}"))
}

#[tokio::test]
async fn a_skill_in_a_cycle_of_subskills_is_not_accepted_until_another_one_breaks_the_cycle() {
    let api = FakeApi::default();
    put(&api, &naming("orders", &["stock"], &["stock"]));
    put_other(&api, &naming("stock", &["*"], &["refunds"]));
    put_other(&api, &naming("refunds", &["orders"], &["orders"]));
    reconcile_once(&api).await;
    let accepted = find(&conditions(&api), ConditionType::Accepted).unwrap().clone();
    assert_eq!((accepted.status.as_str(), accepted.reason.as_str()), ("False", "SubskillCycle"));
    assert!(accepted.message.contains("a cycle, orders -> stock -> refunds -> orders: "), "{}", accepted.message);
    assert!(is_true(&conditions(&api), ConditionType::Stalled));
    assert_eq!(reason(&api, ConditionType::Ready), "SubskillCycle");
    writes(&api);
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [""; 0]);
    put_other(&api, &naming("refunds", &["orders"], &[]));
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::Accepted), "Compiled");
    assert_eq!(reason(&api, ConditionType::Ready), "Ready");
}

#[rstest]
#[case::itself(&["orders"], "orders -> orders")]
#[case::once_more(&["stock", "orders"], "orders -> orders")]
#[tokio::test]
async fn a_skill_that_names_itself_as_a_subskill_is_not_accepted(#[case] subskills: &[&str], #[case] cycle: &str) {
    let api = provisioned(&naming("orders", &["*"], subskills)).await;
    assert_eq!(reason(&api, ConditionType::Accepted), "SubskillCycle");
    let message = find(&conditions(&api), ConditionType::Accepted).unwrap().message.clone();
    assert!(message.contains(cycle), "{message}");
}

#[tokio::test]
async fn a_skill_that_leads_to_a_cycle_of_others_is_accepted() {
    let api = FakeApi::default();
    put(&api, &naming("orders", &["stock"], &["stock"]));
    put_other(&api, &naming("stock", &["refunds"], &["refunds"]));
    put_other(&api, &naming("refunds", &["stock"], &["stock"]));
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::Accepted), "Compiled");
}

#[rstest]
#[case::subskill(naming("orders", &["refnuds"], &["refnuds"]))]
#[case::subskill_of_every_skill(naming("orders", &["*"], &["refnuds"]))]
#[case::allowed(naming("orders", &["refnuds", "refunds"], &[]))]
#[tokio::test]
async fn a_missing_skill_is_named_and_stops_no_job(#[case] skill: Skill) {
    let api = FakeApi::default();
    put_other(&api, &naming("refunds", &[], &[]));
    put(&api, &skill);
    reconcile_once(&api).await;
    let missing = find(&conditions(&api), ConditionType::SubskillsFound).unwrap().clone();
    assert_eq!((missing.status.as_str(), missing.reason.as_str()), ("False", "SubskillMissing"));
    let expected = "There is no Skill \"refnuds\" in the namespace (did you mean \"refunds\"?): create it, or correct spec.skills and spec.features.";
    assert_eq!(missing.message, expected);
    assert!(is_true(&conditions(&api), ConditionType::Ready));
    writes(&api);
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [""; 0]);
    put_other(&api, &naming("refnuds", &[], &[]));
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [format!("status {SKILL}")]);
    assert_eq!(find(&conditions(&api), ConditionType::SubskillsFound), None);
}

/// The names of the Skills that a change of `changed` wakes.
async fn woken(api: &FakeApi, changed: &Skill) -> Vec<String> {
    let context = api.operator().await;
    let wakes = named_skills::invokers(context.caches.skills.store(), &Guarded(Ok(changed.clone())));
    wakes.into_iter().map(|wake| wake.name).collect()
}

#[tokio::test]
async fn a_change_of_a_skill_wakes_all_that_lead_to_it_and_a_change_of_its_status_none() {
    let api = FakeApi::default();
    let mut stock = naming("stock", &["refunds"], &["refunds"]);
    for skill in
        [&naming("orders", &["stock"], &[]), &naming("refunds", &["*"], &["stock"]), &naming("mail", &["*"], &[])]
    {
        put_other(&api, skill);
    }
    assert_eq!(woken(&api, &stock).await, ["orders", "refunds"], "it does not exist");
    put_other(&api, &stock);
    assert_eq!(woken(&api, &stock).await, ["orders", "refunds", "stock"], "it was created or changed");
    stock.status = Some(serde_json::from_value(json!({"observedGeneration": stock.metadata.generation})).unwrap());
    assert_eq!(woken(&api, &stock).await, [""; 0], "its status was written");
    stock.metadata.namespace = Some("other".into());
    assert_eq!(woken(&api, &stock).await, [""; 0]);
}
