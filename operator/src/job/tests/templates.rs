//! Tests of Skills that are created from templates.

use super::*;
use futures::future::join_all;

const SKILLS: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills";

/// Changes the Job to one of this Skill, with or without the annotation that asks for it.
fn ask_for(api: &FakeApi, skill: &str, has_annotation: bool) {
    api.change(JOB, |job| {
        job["spec"]["skill"] = json!(skill);
        if has_annotation {
            job["metadata"]["annotations"] = json!({ names::ANNOTATION_BOOTSTRAP: "true" });
        }
    });
}

fn message_of(api: &FakeApi) -> String {
    let conditions = api.get(JOB)["status"]["conditions"].clone();
    let ready = conditions.as_array().unwrap().iter().find(|condition| condition["type"] == "Ready").unwrap();
    ready["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_job_without_a_skill_creates_the_default_skill() {
    let api = FakeApi::default();
    put_job(&api);
    api.change(JOB, |job| {
        job["spec"].as_object_mut().unwrap().remove("skill");
    });
    reconcile_once(&api).await.unwrap();
    let path = format!("{SKILLS}/sw-dev-agent");
    assert_eq!(api.writes(), [format!("create {path}")], "the created Skill wakes the Job");
    let skill = api.get(&path);
    assert_eq!(skill["metadata"]["labels"], json!({ names::LABEL_TEMPLATE: "sw-dev-agent" }));
    assert_eq!(skill["metadata"]["ownerReferences"], Value::Null, "the Skill outlives the Job");
    assert_eq!(skill["spec"]["resources"][0]["name"], "codebase");
    reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "SkillNotReady", "the Skill controller has not seen the Skill yet");
}

#[tokio::test]
async fn ten_jobs_at_the_same_moment_create_one_skill_and_an_existing_one_is_not_changed() {
    let api = FakeApi::default();
    put_job(&api);
    ask_for(&api, "cs-tier-1", true);
    let job = api.get(JOB);
    let jobs: Vec<Job> = (0..10)
        .map(|nth| {
            let mut job = job.clone();
            job["metadata"]["name"] = json!(format!("refund-{nth}"));
            job["metadata"]["uid"] = json!(format!("{nth}{}", &UID[1..]));
            api.put(&format!("{JOB}-{nth}"), job.clone());
            serde_json::from_value(job).unwrap()
        })
        .collect();
    let context = api.operator().await;
    let reconciles = jobs.iter().map(|job| reconcile(job.clone(), context.clone(), Arc::default()));
    for reconciled in join_all(reconciles).await {
        reconciled.unwrap();
    }
    let created = api.get(SKILL);
    assert_eq!(created["spec"]["policy"]["tools"]["blocked"], json!(["delete_customer"]));
    api.change(SKILL, |skill| skill["spec"]["version"] = json!(7));
    // This operator's cache does not have the Skill yet.
    reconcile(jobs[0].clone(), context, Arc::default()).await.unwrap();
    assert_eq!(api.get(SKILL)["spec"]["version"], 7);
    assert_eq!(api.get(SKILL)["metadata"]["uid"], created["metadata"]["uid"]);
    let writes = api.writes();
    assert!(writes.iter().all(|write| write == &format!("create {SKILL}")), "{writes:?}");
}

#[tokio::test]
async fn a_job_without_a_template_or_without_the_annotation_waits_for_its_skill() {
    for (skill, has_annotation, says) in
        [("no-such", true, "the installation has no template no-such"), ("cs-tier-1", false, "create it")]
    {
        let api = FakeApi::default();
        put_job(&api);
        ask_for(&api, skill, has_annotation);
        reconcile_once(&api).await.unwrap();
        assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "SkillNotFound"));
        assert!(message_of(&api).contains(says), "{}", message_of(&api));
    }
}

#[tokio::test]
async fn a_skill_that_the_api_server_refuses_is_a_wait() {
    let api = FakeApi::default();
    put_job(&api);
    ask_for(&api, "cs-tier-1", true);
    let quota = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "exceeded quota: count/skills.bloomery.dev",
    });
    api.refuse_creates(Some(quota));
    let action = reconcile_once(&api).await.unwrap();
    assert_eq!(reason(&api), "SkillNotFound");
    assert!(message_of(&api).contains("exceeded quota"), "{}", message_of(&api));
    assert_eq!(action, Action::requeue(Duration::from_mins(1)));
    api.refuse_creates(None);
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.get(SKILL)["metadata"]["name"], "cs-tier-1");
}

#[tokio::test]
async fn a_started_job_whose_skill_was_deleted_does_not_create_it_again() {
    let api = tenant();
    ask_for(&api, "cs-tier-1", true);
    reconcile_once(&api).await.unwrap();
    api.change(POD_1, |pod| pod["status"]["phase"] = json!("Failed"));
    api.remove(SKILL);
    api.writes();
    reconcile_once(&api).await.unwrap();
    assert_eq!(api.get(JOB)["status"]["outcome"]["code"], "SkillDeleted");
    let writes = api.writes();
    assert!(!writes.iter().any(|write| write.starts_with("create")), "{writes:?}");
}

#[tokio::test]
async fn no_skill_is_created_in_a_suspended_namespace() {
    let api = FakeApi::default();
    put_job(&api);
    ask_for(&api, "cs-tier-1", true);
    let annotations = json!({ names::ANNOTATION_SUSPEND: "true" });
    let metadata = json!({ "name": "acme", "uid": "acme-uid", "annotations": annotations });
    api.put("/api/v1/namespaces/acme", json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
    reconcile_once(&api).await.unwrap();
    assert_eq!((api.writes(), reason(&api).as_str()), (vec![format!("status {JOB}")], "Suspended"));
}
