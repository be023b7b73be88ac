//! Resources that a Job binds: paths reach the prompt, secrets do not.

use bloomery_crds::v1alpha1::{GateReason, Job, SkillSpec};
use bloomery_e2e::harness::{JobHandle, Tenant, call, cluster, conversation, machine, operator, refund_of, say, story};
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{ListParams, LogParams};
use serde_json::json;

use crate::memory;

/// Returns a Skill that needs a code base and a token.
fn declare_resources(spec: &mut SkillSpec) {
    spec.resources = serde_json::from_value(json!([
        {"name": "codebase", "type": "filesystem", "required": true, "description": "What is worked on"},
        {"name": "token", "type": "credential", "required": true},
        {"name": "docs", "type": "api_endpoint"},
    ]))
    .expect("resources");
    let role = spec.role.as_mut().expect("the Skill has a role");
    role.persona = Some(
        "You work on {{resources.codebase}}. {{#if resources.docs}}Docs: {{resources.docs}}{{else}}No docs.{{/if}}"
            .to_owned(),
    );
}

const SECRET: &str = "a-token-that-nobody-may-read";

#[tokio::test]
async fn bound_paths_reach_the_prompt_and_secrets_do_not() {
    let refund = refund_of("A-17").expect_system("You work on /resources/codebase. No docs.").expect_absent(&[SECRET]);
    story(async |tenant| {
        tenant.claim("src").await;
        let shop = tenant.shop(&[refund]).await;
        tenant.skill("cs-tier-1").with(declare_resources).await;
        let job = tenant
            .job("bound")
            .binding("codebase", json!({"persistentVolumeClaim": {"claimName": "src"}}))
            .binding("token", json!({"secretKeyRef": {"name": "ci", "key": "token"}}))
            .await;
        // The Job waits for the Secret, which is created late.
        job.until_reason("SecretMissing", &["ci", "token"]).await;
        tenant.secret("ci", "token", SECRET).await;
        let status = job.succeeded().await;
        assert_eq!(status.attempt.as_ref().map(|attempt| attempt.number), Some(1), "it recovers in its first pod");
        shop.assert_refunded_once("A-17").await;

        let text = format!("{status:?}\n{}", job.logs(1).await);
        assert!(text.contains("codebase (filesystem): /resources/codebase, token (credential)"), "{text}");
        assert!(!text.contains(SECRET), "the status or the log has the secret: {text}");
        if cluster::is_local_or_skips("a look at the volume") {
            let skill_dir = machine::memory(tenant).await.join("cs-tier-1");
            let log = memory::log(&skill_dir, &job.uid).concat();
            let record = std::fs::read_to_string(skill_dir.join(format!("jobs/{}.json", job.uid))).expect("the record");
            assert!(record.contains("\"secret\": \"ci\""), "the record says where the secret is: {record}");
            assert!(!log.contains(SECRET) && !record.contains(SECRET), "a secret is in no file");
        }
    })
    .await;
}

/// The model repeats the secret in a call and in its answer, as if it had learned it elsewhere.
#[tokio::test]
async fn a_secret_that_the_model_repeats_is_redacted_everywhere() {
    let fields = json!({"order_id": "A-17", "status": SECRET, "next_steps": [SECRET]});
    let turns = [
        call("track_order", json!({ "order_id": SECRET })),
        say(&format!("The token is {SECRET}.\n```json\n{fields}\n```")).after_result("Denied").expect_absent(SECRET),
    ];
    story(async |tenant| {
        tenant.claim("src").await;
        tenant.secret("ci", "token", SECRET).await;
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        tenant.skill("cs-tier-1").with(declare_resources).await;
        let job = tenant
            .job("leaky")
            .binding("codebase", json!({"persistentVolumeClaim": {"claimName": "src"}}))
            .binding("token", json!({"secretKeyRef": {"name": "ci", "key": "token"}}))
            .await;
        let status = job.succeeded().await;
        job.pods_have_ended().await;
        let gate = status.gates.expect("the status has the outcomes of the gates").pre_tool;
        assert_eq!(gate.last.first().and_then(|ruling| ruling.rule), Some(GateReason::Secret), "{gate:#?}");
        shop.model.assert_no_violations().await;
        for (sink, text) in sinks(tenant, &job).await {
            assert!(!text.is_empty() && !text.contains(SECRET), "{sink} has the secret or is empty: {text}");
        }
    })
    .await;
}

/// Returns each text about a Job that people can read, with its name. None may have a secret.
async fn sinks(tenant: &Tenant, job: &JobHandle<'_>) -> Vec<(&'static str, String)> {
    let all = ListParams::default();
    let jobs = tenant.api::<Job>().list(&all).await.expect("Jobs can be listed").items;
    let events = tenant.api::<Event>().list(&all).await.expect("Events can be listed").items;
    let operator = operator::ready_pod(&tenant.cluster).await.name_any();
    let log = operator::api(&tenant.cluster).logs(&operator, &LogParams::default()).await;
    let mut sinks = vec![
        ("the Job", json!(jobs).to_string()),
        ("Events", json!(events).to_string()),
        ("pods", json!(job.pods().await).to_string()),
        ("kubectl logs", job.logs(1).await),
        ("the operator's log", log.expect("the operator has a log")),
        ("metrics", operator::get(&tenant.cluster, "/metrics").await),
    ];
    if cluster::is_local_or_skips("a look at the volume") {
        sinks.push(("the memory", memory::everything(&machine::memory(tenant).await)));
    }
    sinks
}

#[tokio::test]
async fn all_invalid_bindings_are_named_at_once_until_the_skill_is_corrected() {
    let docs = json!({"value": "https://docs.example.com"});
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").expect_system("You work with https://docs.example.com.")]).await;
        tenant.skill("cs-tier-1").with(declare_resources).await;
        let job = tenant.job("unfit").binding("docz", docs.clone()).await;
        let leaky = tenant.job("leaky").binding("token", json!({"value": "in the wrong place"})).await;
        job.until_reason("ResourcesInvalid", &["codebase", "persistentVolumeClaim", "token", "docz", "docs"]).await;
        let message = leaky.until_reason("ResourcesInvalid", &["token", "secretKeyRef"]).await;
        assert!(!message.contains("in the wrong place"), "a value may be a secret: {message}");
        // The Job's bindings cannot change; the Skill can.
        tenant
            .skill("cs-tier-1")
            .with(|spec| {
                let declared = json!([{"name": "docz", "type": "api_endpoint", "required": true}]);
                spec.resources = serde_json::from_value(declared).expect("resources");
                let role = spec.role.as_mut().expect("the Skill has a role");
                role.persona = Some("You work with {{resources.docz}}.".to_owned());
            })
            .await;
        job.succeeded().await;
        leaky.until_reason("ResourcesInvalid", &["docz"]).await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}
