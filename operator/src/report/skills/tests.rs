use super::*;
use crate::job::fixtures::api::FakeApi;
use crate::job::fixtures::{self, pod_uid, status};
use bloomery_crds::outcome::Phase;
use bloomery_crds::run::{self, Revision};
use serde_json::json;

const BLOOMERY: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme";

/// Stores a Skill whose condition `Ready` has this status.
fn put_skill(api: &FakeApi, name: &str, ready: &str) {
    let condition = json!({
        "type": "Ready", "status": ready, "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let skill = json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill",
        "metadata": { "name": name, "namespace": "acme", "uid": format!("{name}-uid"), "generation": 1 },
        "spec": {
            "displayName": "Reviewer", "problem": { "statement": "reviews" },
            "resources": [
                { "name": "docs", "type": "api_endpoint", "required": true }, { "name": "shop", "type": "api_endpoint" },
            ],
        },
        "status": { "observedGeneration": 1, "conditions": [condition] },
    });
    api.put(&format!("{BLOOMERY}/skills/{name}"), skill);
}

/// A running Job whose revision may invoke these Skills.
fn invoking(skills: &[&str]) -> FakeApi {
    let api = FakeApi::default();
    let spec = json!({ "problem": { "statement": "refunds" }, "skills": skills });
    let sealed = run::seal(&Revision::new("cs-tier-1", serde_json::from_value(spec).unwrap(), None)).unwrap();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "acme", "name": "cs-tier-1-1", "uid": "map-uid" },
        "data": { "revision.json": sealed.text },
    });
    api.put("/api/v1/namespaces/acme/configmaps/cs-tier-1-1", map);
    let mut job = fixtures::job();
    let mut running = status(1, Phase::Running);
    running.skill_revision =
        Some(bloomery_crds::v1alpha1::RevisionRef { name: "cs-tier-1-1".into(), digest: sealed.digest });
    job.status = Some(running);
    api.put(&format!("{BLOOMERY}/skilljobs/refund"), serde_json::to_value(&job).unwrap());
    api
}

fn caller(namespace: &str, pod_uid: &str) -> Caller {
    Caller { namespace: namespace.into(), pod_uid: pod_uid.into() }
}

async fn names(api: &FakeApi, after: &str) -> (Vec<String>, Option<String>) {
    let page = page(&*api.operator().await, &caller("acme", &pod_uid(1)), after).await.unwrap();
    (page.skills.into_iter().map(|skill| skill.name).collect(), page.next)
}

#[tokio::test]
async fn a_job_sees_the_ready_skills_that_its_revision_names_except_its_own() {
    let api = invoking(&["reviewer", "auditor", "absent", "cs-tier-1", "broken"]);
    for (name, ready) in
        [("reviewer", "True"), ("auditor", "True"), ("cs-tier-1", "True"), ("broken", "False"), ("secret", "True")]
    {
        put_skill(&api, name, ready);
    }
    assert_eq!(names(&api, "").await, (vec!["auditor".into(), "reviewer".into()], None));
    assert_eq!(names(&api, "auditor").await.0, ["reviewer"]);
    let page = page(&*api.operator().await, &caller("acme", &pod_uid(1)), "").await.unwrap();
    let expected = VisibleSkill {
        name: "auditor".into(),
        description: "Reviewer: reviews".into(),
        resources: vec!["docs".into()],
    };
    assert_eq!(page.skills[0], expected);
    assert_eq!(names(&invoking(&[]), "").await.0, [""; 0]);
}

#[tokio::test]
async fn a_page_is_limited_and_names_where_the_next_one_begins() {
    let api = invoking(&["*"]);
    for number in 0..=MAX_PAGE {
        put_skill(&api, &format!("s-{number:03}"), "True");
    }
    let (first, next) = names(&api, "").await;
    assert_eq!((first.len(), next.as_deref()), (MAX_PAGE, Some("s-063")));
    assert_eq!(names(&api, "s-063").await, (vec!["s-064".into()], None));
}

#[tokio::test]
async fn only_the_recorded_pod_of_a_job_may_ask() {
    let api = invoking(&["*"]);
    for (namespace, pod) in [("acme", pod_uid(2)), ("globex", pod_uid(1))] {
        let refused = page(&*api.operator().await, &caller(namespace, &pod), "").await.unwrap_err();
        assert!(matches!(refused, Refusal::TooEarly(_)), "{refused}");
    }
}
