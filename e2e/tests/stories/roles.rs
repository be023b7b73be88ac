//! The roles of people: what each of them may do, as the API server decides.

use bloomery_crds::outcome::Phase;
use bloomery_e2e::harness::{Turn, call, conversation, story, supervised};
use serde_json::json;

const READ: &str = "get list watch";
const WRITE: &str = "get list watch create update patch delete deletecollection";

/// The kinds that people write.
const WRITTEN: &str = "skills skilljobs models";

/// The rights of each `ClusterRole`: resources, and the verbs on them. Everything else is forbidden.
const ROLES: [(&str, &[(&str, &str)]); 7] = [
    ("bloomery-view", &[(WRITTEN, READ), ("approvals", READ)]),
    ("bloomery-edit", &[(WRITTEN, WRITE), ("approvals", READ)]),
    ("bloomery-approver", &[("approvals", "get list watch update patch"), ("approvers", "approve")]),
    (
        "bloomery-admin",
        &[(WRITTEN, WRITE), ("approvals", "get list watch update patch delete"), ("approvers", "approve")],
    ),
    // The roles of Kubernetes.
    ("view", &[(WRITTEN, READ), ("approvals", READ)]),
    ("edit", &[(WRITTEN, WRITE), ("approvals", READ)]),
    ("admin", &[(WRITTEN, WRITE), ("approvals", READ)]),
];

const RESOURCES: [&str; 9] = [
    "skills",
    "skilljobs",
    "models",
    "approvals",
    "approvers",
    "skills/status",
    "skilljobs/status",
    "models/status",
    "approvals/status",
];

#[tokio::test]
async fn each_role_has_its_verbs_and_no_other() {
    story(async |tenant| {
        for (role, granted) in ROLES {
            let person = format!("{role}@acme.io");
            tenant.bind(&person, role, "approvals").await;
            for resource in RESOURCES {
                let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                for verb in WRITE.split(' ').chain(["approve"]) {
                    let asked = json!({
                        "namespace": tenant.namespace, "group": "bloomery.dev", "resource": plural,
                        "subresource": subresource, "verb": verb,
                    });
                    let has = |list: &str, wanted: &str| list.split(' ').any(|word| word == wanted);
                    let expected =
                        granted.iter().any(|(resources, verbs)| has(resources, resource) && has(verbs, verb));
                    let allowed = tenant.is_allowed(&person, &asked).await;
                    assert_eq!(allowed, expected, "{role}: {verb} {resource}");
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn only_the_approver_decides_and_only_the_editor_writes() {
    const ORDER: &str = "A-443";
    story(async |tenant| {
        let turns = [
            call("check_eligibility", json!({"order_id": ORDER})),
            call("process_refund", json!({"order_id": ORDER, "amount": 901.9})),
            Turn::answer(ORDER).after_result("refunded"),
        ];
        let shop = tenant.shop(&[conversation(ORDER, turns)]).await;
        for role in ["view", "edit", "approver"] {
            tenant.bind(&format!("{role}@acme.io"), &format!("bloomery-{role}"), "approvals").await;
        }
        let skill = json!({"problem": {"statement": "p"}});
        let by = async |role: &str| tenant.seen_by(&format!("{role}@acme.io"), &[]).await;
        by("edit").await.skills().accepts("written", &skill).await;
        for role in ["view", "approver"] {
            let refusal = by(role).await.skills().refuses("written", &skill).await;
            assert!(refusal.contains("cannot create resource \"skills\""), "{role}: {refusal}");
        }

        tenant.skill_of("cs-tier-1", supervised()).with_orders().await;
        let job = tenant.job("large-refund").goal(&format!("Refund order {ORDER}")).await;
        job.until_phase(Phase::AwaitingApproval).await;
        let approval = tenant.approval_for(&job, "supervisor").await;
        for role in ["view", "edit"] {
            let person = tenant.person(&format!("{role}@acme.io")).await;
            let refusal = person.decide(&approval, "Approve", "it is mine").await.expect_err("it may not decide");
            assert!(refusal.contains("cannot patch resource \"approvals\""), "{role}: {refusal}");
        }
        let approver = tenant.person("approver@acme.io").await;
        let label = json!({"metadata": {"labels": {"team": "a"}}});
        let refusal = approver.change(&approval, &label).await.expect_err("it may only decide");
        assert!(refusal.contains("only the operator may change the labels"), "{refusal}");
        approver.decide(&approval, "Approve", "the photo shows it").await.expect("it decides");
        job.succeeded().await;
        shop.assert_refunded_once(ORDER).await;
    })
    .await;
}
