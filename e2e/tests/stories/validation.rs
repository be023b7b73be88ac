//! Jobs that validate their Skill: they test its features, and the Skill shows the results.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_e2e::harness::{Turn, call, conversation, fails, story, typed};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

/// Returns a ruling that passes a draft.
fn passes() -> Value {
    json!({"passed": true, "score": 0.9, "reasons": []})
}

#[tokio::test]
async fn the_features_of_a_skill_are_tested_and_its_status_has_the_results() {
    let tracks = conversation("Where is A-17?", [Turn::answer("A-17")]).ruling(passes());
    // The tool has an effect, and the feature does not allow it.
    let turns = [
        call("process_refund", json!({"order_id": "A-18", "amount": 5})),
        Turn::answer("A-18").after_result("features[].allow"),
    ];
    let refunds = conversation("Refund A-18", turns).ruling(fails("GOAL_NOT_MET", "no refund was made", "ESCALATE"));
    let features = json!([
        {"name": "tracks", "testScenario": "Where is A-17?", "expectedResult": "The place of the order"},
        {"name": "refunds", "testScenario": "Refund A-18", "expectedResult": "The order is refunded", "optional": true},
        {"name": "lists", "testScenario": "List orders", "expectedResult": "A list", "ext": {"subskill": "lister"}},
    ]);
    story(async |tenant| {
        let shop = tenant.shop(&[tracks, refunds]).await;
        let skill = tenant
            .skill("cs-tier-1")
            .with(|spec| {
                spec.features = typed(features);
                spec.skills = vec!["lister".to_owned()];
            })
            .await;
        skill.until_reason(ConditionType::Validated, "NotValidated", &["tracks, refunds"]).await;
        let job = tenant.job("nightly").validating().await;
        let status = job.ended(OutcomeCode::FeatureFailed).await;
        let results: Vec<_> = status.features.iter().map(|result| (result.name.as_str(), result.passed)).collect();
        assert_eq!(results, [("tracks", true), ("refunds", false)]);
        assert!(status.usage.is_some_and(|usage| usage.tokens() > 0));
        skill.until_reason(ConditionType::Validated, "FeatureFailed", &["refunds failed in the Job nightly"]).await;
        let recorded = skill.until("the results of the features", |status| status.features.len() == 2).await;
        let revision = recorded.revision.expect("the Skill has a revision").name;
        for result in &recorded.features {
            assert_eq!((result.job.as_str(), result.revision.as_str()), ("nightly", revision.as_str()));
        }
        assert_eq!(shop.ledger.summary().await.effects, 0, "a call that no feature allows is not made");
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_killed_worker_tests_no_feature_twice() {
    let first = conversation("Where is A-17?", [Turn::answer("A-17")]).ruling(passes());
    let second = conversation("Where is A-18?", [Turn::answer("A-18")]).hold(0, "second").ruling(passes());
    let feature = |name: &str, order: &str| json!({"name": name, "testScenario": format!("Where is {order}?"), "expectedResult": "The place of the order"});
    let features = json!([feature("first", "A-17"), feature("second", "A-18")]);
    story(async |tenant| {
        let shop = tenant.shop(&[first, second]).await;
        let skill = tenant.skill("cs-tier-1").with(|spec| spec.features = typed(features)).await;
        let job = tenant.job("nightly").validating().await;
        shop.model.until_held("second").await;
        let pod = job.pod(1).await.name_any();
        let now = DeleteParams::default().grace_period(0);
        tenant.api::<Pod>().delete(&pod, &now).await.expect("the pod can be deleted");
        shop.model.release("second").await;
        let status = job.succeeded().await;
        assert_eq!(status.features.len(), 2);
        let requests = status.usage.expect("the tests have consumed something").llm_calls;
        assert_eq!((requests.plan, requests.finalization), (2, 2), "the result of the first feature is kept");
        skill.until_reason(ConditionType::Validated, "FeaturesPassed", &["all 2 features passed"]).await;
    })
    .await;
}
