//! What a Skill says about itself: its features, its documentation and its notes.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::v1alpha1::{CoreNote, SkillSpec};
use bloomery_e2e::harness::{call, conversation, say, story, typed};
use serde_json::json;

/// Adds features, documentation and notes to a Skill. One feature refers to the section `reference`.
fn describe(spec: &mut SkillSpec, reference: &str) {
    spec.docs = Some("# Refunds\nWithin 30 days.\n## Limits\nAt most 500.\n".to_owned());
    spec.features = typed(json!([
        {"name": "refund", "testScenario": "Given an order, then it is refunded", "expectedResult": "The order is named"},
        {
            "name": "express", "testScenario": "Given a hurry, then it is faster", "expectedResult": "The money arrives today",
            "optional": true, "ext": {"skillMdRef": reference},
        },
    ]));
    let notes = json!({"projectbrief": "Orders are shipped once.\n", "progress": "Nothing is done yet.\n"});
    spec.memory = Some(typed(json!({"notes": notes, "scope": ["projectbrief", "progress"]})));
}

#[tokio::test]
async fn the_agent_knows_the_features_the_documentation_and_the_notes_of_its_skill() {
    let fields = json!({"order_id": "A-17", "status": "refunded", "next_steps": ["wait"]});
    let turns = [
        call("apply_feature", json!({"feature": "express"})).offered(&["apply_feature", "skill_doc", "memory_read"]),
        call("skill_doc", json!({"section": "#refunds/limits"})).after_result("Expected: The money arrives today."),
        say(&format!("Done.\n```json\n{fields}\n```")).after_result("At most 500."),
    ];
    let conversation = conversation("A-17", turns)
        .expect_system("Orders are shipped once.")
        .expect_absent(&["Nothing is done yet.", "At most 500."]);
    story(async |tenant| {
        let shop = tenant.shop(&[conversation]).await;
        tenant.skill("cs-tier-1").with(|spec| describe(spec, "#refunds")).await;
        tenant.job("described").reading(&[CoreNote::Projectbrief]).await.succeeded().await;
        shop.model.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_reference_to_nothing_and_a_scope_beyond_that_of_the_skill_are_named() {
    story(async |tenant| {
        tenant.shop(&[]).await;
        let skill = tenant.skill("cs-tier-1").with(|spec| describe(spec, "#refnuds")).await;
        let near = "did you mean \"#refunds\"?";
        skill.until_reason(ConditionType::Accepted, "Invalid", &["spec.features[1].ext.skillMdRef", near]).await;
        tenant.skill("cs-tier-1").with(|spec| describe(spec, "#refunds")).await;
        let job = tenant.job("too-much").reading(&[CoreNote::Progress, CoreNote::TechContext]).await;
        job.until_reason("ResourcesInvalid", &["spec.memoryScope[1]", "projectbrief, progress"]).await;
    })
    .await;
}
