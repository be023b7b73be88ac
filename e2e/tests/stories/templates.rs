//! Skills that Jobs create from the templates of the chart.

use bloomery_crds::names;
use bloomery_crds::v1alpha1::{Job, JobSpec, Skill};
use bloomery_e2e::harness::{call, conversation, say, story};
use futures::future::join_all;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test]
async fn a_job_without_a_skill_runs_the_default_skill_from_its_template() {
    let answers =
        [conversation("Explain", [call("list_files", json!({})), say("The project is empty.").after_result("")])];
    story(async |tenant| {
        let model = tenant.model("default");
        tokio::join!(tenant.model_server(&answers), model.into_future());
        let claim: PersistentVolumeClaim = bloomery_testkit::json::typed(json!({
            "metadata": {"name": "src"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}},
        }));
        tenant.create(claim).await;
        // Without the field, as a user writes it. A typed Job always has it.
        let job = json!({
            "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job", "metadata": {"name": "explain"},
            "spec": {
                "goal": "Explain the project",
                "resources": {"codebase": {"persistentVolumeClaim": {"claimName": "src"}}},
            },
        });
        let jobs = tenant.api::<Job>();
        let applied = jobs.patch("explain", &PatchParams::apply("e2e"), &Patch::Apply(&job)).await;
        let applied = applied.unwrap_or_else(|error| panic!("the Job cannot be applied: {error}"));
        assert_eq!(applied.spec.skill, JobSpec::DEFAULT_SKILL);
        tenant.existing_job(&applied).succeeded().await;
        let skill = tenant.api::<Skill>().get(JobSpec::DEFAULT_SKILL).await.expect("the Skill was created");
        assert_eq!(skill.labels().get(names::LABEL_TEMPLATE).map(String::as_str), Some(JobSpec::DEFAULT_SKILL));
        assert!(skill.owner_references().is_empty(), "the Skill outlives the Job");
    })
    .await;
}

#[tokio::test]
async fn ten_jobs_create_one_skill_and_an_existing_skill_is_not_changed() {
    let answers: Vec<_> = (0..10).map(|nth| conversation(&format!("Greet person {nth}"), [say("Hello.")])).collect();
    story(async |tenant| {
        let model = tenant.model("default");
        tokio::join!(tenant.model_server(&answers), model.into_future());
        let plain = tenant.job("plain").for_skill("cs-tier-1").goal("Greet person 0").await;
        plain.until_reason("SkillNotFound", &["cs-tier-1"]).await;
        let drafts = (0..10).map(|nth| {
            let draft = tenant.job(&format!("greet-{nth}")).for_skill("cs-tier-1").goal(&format!("Greet person {nth}"));
            draft.annotated(names::ANNOTATION_BOOTSTRAP, "true").into_future()
        });
        for job in join_all(drafts).await {
            job.succeeded().await;
        }
        plain.succeeded().await;
        let skills = tenant.api::<Skill>();
        let created = skills.get("cs-tier-1").await.expect("the Skill was created");
        let edit = Patch::Merge(json!({"spec": {"version": 7}}));
        skills.patch("cs-tier-1", &PatchParams::default(), &edit).await.expect("a person may edit the Skill");
        let again = tenant.job("again").for_skill("cs-tier-1").goal("Greet person 1");
        again.annotated(names::ANNOTATION_BOOTSTRAP, "true").await.succeeded().await;
        let stays = skills.get("cs-tier-1").await.expect("the Skill exists");
        assert_eq!((stays.uid(), stays.spec.version), (created.uid(), Some(7)));
    })
    .await;
}
