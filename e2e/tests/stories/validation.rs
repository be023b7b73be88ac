//! Jobs that validate their Skill: they test its features, and the Skill shows the results.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::v1alpha1::{Job, SkillSpec};
use bloomery_e2e::harness::cluster::image;
use bloomery_e2e::harness::{Turn, call, conversation, fails, story, typed};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
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
    // The model that judges passes the answer, although the script fails.
    let turns = [call("script_bad", json!({})), Turn::answer("A-19").after_result("\"exitCode\":3")];
    let checks = conversation("Check A-19", turns).ruling(passes());
    let features = json!([
        {"name": "tracks", "testScenario": "Where is A-17?", "expectedResult": "The place of the order"},
        {"name": "refunds", "testScenario": "Refund A-18", "expectedResult": "The order is refunded", "optional": true},
        {"name": "checks", "testScenario": "Check A-19", "expectedResult": "It is checked", "ext": {"script": "bad.sh"}},
        {"name": "lists", "testScenario": "List orders", "expectedResult": "A list", "ext": {"subskill": "lister"}},
    ]);
    story(async |tenant| {
        let shop = tenant.shop(&[tracks, refunds, checks]).await;
        let skill = tenant
            .skill("cs-tier-1")
            .with(|spec| {
                spec.features = typed(features);
                spec.skills = vec!["lister".to_owned()];
                spec.scripts = typed(json!({"image": image("e2e-shell"), "files": {"bad.sh": "exit 3"}}));
            })
            .await;
        skill.until_reason(ConditionType::Validated, "NotValidated", &["tracks, refunds, checks"]).await;
        let job = tenant.job("nightly").validating().await;
        let status = job.ended(OutcomeCode::FeatureFailed).await;
        let results: Vec<_> = status.features.iter().map(|result| (result.name.as_str(), result.passed)).collect();
        assert_eq!(results, [("tracks", true), ("refunds", false), ("checks", false)]);
        let reason = status.features.last().and_then(|result| result.reason.as_deref()).unwrap_or_default();
        assert!(reason.contains("The script bad.sh ended with exit code 3."), "{reason}");
        assert!(status.usage.is_some_and(|usage| usage.tokens() > 0));
        skill.until_reason(ConditionType::Validated, "FeatureFailed", &["refunds failed in the Job nightly"]).await;
        let recorded = skill.until("the results of the features", |status| status.features.len() == 3).await;
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

/// Gives the Skill a feature that asks for an order, and lets the operator test each revision. Jobs need a validated one.
fn requires_tests(spec: &mut SkillSpec, order: &str) {
    let scenario = format!("Where is {order}?");
    let feature = json!({"name": "tracks", "testScenario": scenario, "expectedResult": "The place of the order"});
    let validation = json!({"onChange": true, "runs": 2, "tokens": 100_000, "requireFor": "run"});
    spec.features = typed(json!([feature]));
    spec.engine = typed(json!({"validation": validation}));
}

#[tokio::test]
async fn jobs_stay_on_the_latest_revision_whose_features_have_passed() {
    let answers = |order: &str| conversation(&format!("Where is {order}?"), [Turn::answer(order)]);
    let conversations = [
        answers("A-17").hold(0, "tested").ruling(passes()),
        answers("A-18").ruling(fails("GOAL_NOT_MET", "no place is named", "ESCALATE")),
        answers("A-19").ruling(passes()),
        answers("A-41").ruling(passes()),
        answers("A-42").ruling(passes()),
        answers("A-43").ruling(passes()),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&conversations).await;
        let skill = tenant.skill("cs-tier-1").with(|spec| requires_tests(spec, "A-17")).await;
        let first = tenant.job("first").goal("Where is A-41?").await;
        shop.model.until_held("tested").await;
        first.until_reason("NotValidated", &["requireFor", "New Jobs wait"]).await;
        shop.model.release("tested").await;
        let validated = first.succeeded().await.skill_revision.expect("a Job that has run has a revision");
        let status = skill.ready().await;
        assert_eq!(
            (status.revision.as_ref(), status.validated_revision.as_ref()),
            (Some(&validated), Some(&validated))
        );

        // The new revision fails, so Jobs stay on the one before.
        tenant.skill("cs-tier-1").with(|spec| requires_tests(spec, "A-18")).await;
        let effect = format!("New Jobs run {}", validated.name);
        skill.until_reason(ConditionType::Validated, "FeatureFailed", &["tracks failed", &effect]).await;
        let second = tenant.job("second").goal("Where is A-42?").await.succeeded().await;
        assert_eq!(second.skill_revision.as_ref(), Some(&validated));

        tenant.skill("cs-tier-1").with(|spec| requires_tests(spec, "A-19")).await;
        let status = skill
            .until("another validated revision", |status| {
                status.validated_revision.as_ref().is_some_and(|revision| *revision != validated)
            })
            .await;
        let third = tenant.job("third").goal("Where is A-43?").await.succeeded().await;
        assert_eq!((&third.skill_revision, &status.revision), (&status.validated_revision, &status.validated_revision));

        let jobs = tenant.api::<Job>().list(&ListParams::default()).await.expect("Jobs can be listed");
        let tests: Vec<_> = jobs.items.iter().filter(|job| job.spec.validates()).collect();
        assert_eq!(tests.len(), 3, "each revision is tested once");
        shop.model.assert_no_violations().await;
    })
    .await;
}
