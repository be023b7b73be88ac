//! MCP servers of the scope Job: a sidecar of each worker pod.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::names;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::pod::MCP_CONTAINER;
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_e2e::harness::{Turn, call, conversation, eventually, refund_of, story};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::LogParams;
use serde_json::json;

const PASSWORD: &str = "hunter22-that-nobody-may-read";

/// Declares a file system, a connection string and a credential, and gives the secrets to the server.
fn with_secrets(spec: &mut SkillSpec) {
    spec.resources = serde_json::from_value(json!([
        {"name": "codebase", "type": "filesystem", "required": true},
        {"name": "db", "type": "connection_string", "required": true},
        {"name": "key", "type": "credential", "required": true},
    ]))
    .expect("resources");
    let container = spec.mcp_server.as_mut().and_then(|server| server.container.as_mut());
    let container = container.expect("the Skill runs a container");
    container.bindings = serde_json::from_value(json!([
        {"resource": "db", "env": "DATABASE_URL", "probeValue": "postgres://probe@nowhere/none"},
        {"resource": "key", "path": "/secrets/key"},
    ]))
    .expect("bindings");
}

/// The server is a stdio server in an empty image. It does not start without a connection string, also for its probe.
#[tokio::test]
async fn a_stdio_server_of_a_job_has_its_files_and_secrets_and_the_worker_has_no_secret() {
    let file = json!({"path": "note.txt", "content": "left by the worker"});
    let turns = [
        call("write_file", file),
        call("look", json!({"path": "/resources/codebase/note.txt"})),
        Turn::answer("A-17")
            .after_result("/resources/codebase/note.txt: left by the worker; database: db/orders; key: 6 bytes; files of the worker: false")
            .expect_absent(PASSWORD),
    ];
    story(async |tenant| {
        tenant.claim("src").await;
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        let skill = tenant.skill("cs-tier-1").with_stdio_server().with_server_per_job().with(with_secrets);
        let skill = skill.with_server_env("KEY_FILE", "/secrets/key").with_server_env("NEEDS_DATABASE", "true").await;
        let status = skill.ready().await;
        let available = conditions::find(&status.conditions, ConditionType::McpAvailable).expect("the condition");
        assert!(available.message.contains("each Job starts an MCP server of its own"), "{}", available.message);
        let tools = status.tools.and_then(|tools| tools.pins).expect("the tools are pinned").tools;
        let names: Vec<&str> = tools.iter().map(|pin| pin.name.as_str()).collect();
        assert_eq!((names, status.mcp), (vec!["connect", "look", "track_order"], None));
        let server = names::mcp_server("cs-tier-1");
        assert!(tenant.api::<Deployment>().get_opt(&server).await.expect("it can be read").is_none());

        let job = tenant
            .job("look")
            .binding("codebase", json!({"persistentVolumeClaim": {"claimName": "src", "readOnly": false}}))
            .binding("db", json!({"secretKeyRef": {"name": "db", "key": "url"}}))
            .binding("key", json!({"secretKeyRef": {"name": "ci", "key": "token"}}))
            .await;
        // The files come first: the server starts once they are there.
        job.until_reason("SecretMissing", &["the key token of the Secret ci"]).await;
        tenant.secret("ci", "token", "secret").await;
        job.until_reason("SecretMissing", &["the key url of the Secret db"]).await;
        tenant.secret("db", "url", &format!("postgres://app:{PASSWORD}@db/orders")).await;
        let status = job.succeeded().await;
        assert_eq!(status.attempt.as_ref().map(|attempt| attempt.number), Some(1), "it recovers in its first pod");
        // The end of the worker ends the pod.
        job.pods_have_ended().await;
        let pods = job.pods().await;
        let text = format!("{status:?}\n{}\n{}", job.logs(1).await, json!(pods));
        assert!(!text.contains(PASSWORD), "the status, the log or the pod has the secret: {text}");
        shop.model.assert_no_violations().await;
    })
    .await;
}

/// The server speaks HTTP itself. The one that all Jobs shared before is deleted.
#[tokio::test]
async fn a_skill_can_move_its_http_server_into_the_pods_of_its_jobs() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").await;
        skill.ready().await;
        let server = names::mcp_server("cs-tier-1");
        tenant.api::<Deployment>().get(&server).await.expect("all Jobs share a server");
        tenant.skill("cs-tier-1").with_server_per_job().with_server_env("LISTEN_ADDRESS", "127.0.0.1").await;
        eventually("the objects of the shared server to be gone", async || {
            let exists = [
                tenant.api::<Deployment>().get_opt(&server).await.map_err(|error| error.to_string())?.is_some(),
                tenant.api::<Service>().get_opt(&server).await.map_err(|error| error.to_string())?.is_some(),
                tenant.api::<ServiceAccount>().get_opt(&server).await.map_err(|error| error.to_string())?.is_some(),
                tenant
                    .api::<PodDisruptionBudget>()
                    .get_opt(&server)
                    .await
                    .map_err(|error| error.to_string())?
                    .is_some(),
            ];
            if exists.contains(&true) { Err(format!("{exists:?}")) } else { Ok(()) }
        })
        .await;
        let status = skill
            .until("the tools of the sidecar", |status| {
                status.observed_generation == Some(2) && conditions::is_true(&status.conditions, ConditionType::Ready)
            })
            .await;
        let tools = status.tools.and_then(|tools| tools.pins).expect("the tools are pinned").tools;
        let names: Vec<&str> = tools.iter().map(|pin| pin.name.as_str()).collect();
        assert_eq!(names, ["check_eligibility", "process_refund", "track_order", "verify_identity"]);
        let job = tenant.job("refund").await;
        job.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        job.pods_have_ended().await;
        let pod = names::worker_pod(&job.name, 1, &job.uid);
        let of_server = LogParams { container: Some(MCP_CONTAINER.to_owned()), ..LogParams::default() };
        let log = tenant.api::<Pod>().logs(&pod, &of_server).await.expect("the sidecar has a log");
        assert!(log.contains("127.0.0.1"), "{log}");
    })
    .await;
}

#[tokio::test]
async fn a_server_of_a_job_without_an_image_is_named_by_its_probe_and_recovers() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").with_server_per_job().running("localhost/no-such-server:1").await;
        let job = tenant.job("refund").await;
        let what = ["localhost/no-such-server:1", "spec.mcpServer.container.image"];
        skill.until_reason(ConditionType::McpVerified, "ProbeFailed", &what).await;
        job.until_reason("SkillNotReady", &["McpVerified"]).await;
        tenant.skill("cs-tier-1").with_server_per_job().await;
        skill.ready().await;
        job.ended(OutcomeCode::Succeeded).await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}
