//! MCP servers of each kind.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{McpServer, Skill, SkillStatus};
use bloomery_e2e::harness::{
    Shop, SkillDraft, Tenant, Turn, call, cluster, command, conversation, refund_of, story, typed, until,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;

#[tokio::test]
async fn a_stdio_server_in_an_empty_image_is_bridged() {
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", tracking())]).await;
        let skill = tenant.skill("cs-tier-1").with_stdio_server().await;
        skill.ready().await;
        let status = tenant.job("track").goal("Where is order A-17?").await.succeeded().await;
        assert_eq!(status.usage.expect("a Job has spent something").tool_calls, 1);
        shop.model.assert_no_violations().await;
    })
    .await;
}

/// Waits until the budget of a server with so many ready pods lets one of them be evicted. Evicts one, and returns how many more may be
/// evicted at the same time.
async fn evict_one_of(tenant: &Tenant, replicas: i32) -> i32 {
    let (server, budgets) = (names::mcp_server("cs-tier-1"), tenant.api::<PodDisruptionBudget>());
    let allows_one = |budget: &PodDisruptionBudget| {
        let status = budget.status.as_ref();
        status.is_some_and(|status| (status.current_healthy, status.disruptions_allowed) == (replicas, 1))
    };
    until(&budgets, &server, "a pod that may be evicted", allows_one).await;
    let (pods, labels) =
        (tenant.api::<Pod>(), format!("{}=cs-tier-1,{}=mcp", names::LABEL_SKILL, names::LABEL_COMPONENT));
    let found = pods.list(&ListParams::default().labels(&labels)).await.expect("pods can be listed");
    let pod = found.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_none()).expect("a pod");
    pods.evict(&pod.name_any(), &EvictParams::default()).await.expect("the eviction is accepted");
    let left = budgets.get(&server).await.expect("the budget exists").status;
    left.expect("it has a status").disruptions_allowed
}

#[tokio::test]
async fn a_drain_stops_a_single_server_and_one_of_two_at_a_time() {
    story(async |tenant| {
        tenant.shop(&[]).await;
        let skill = tenant.skill("cs-tier-1").await;
        skill.ready().await;
        assert_eq!(evict_one_of(tenant, 1).await, 0);
        let two = Patch::Merge(json!({"spec": {"replicas": 2}}));
        let scaled =
            tenant.api::<Deployment>().patch(&names::mcp_server("cs-tier-1"), &PatchParams::default(), &two).await;
        scaled.expect("others may set the replicas");
        assert_eq!(evict_one_of(tenant, 2).await, 0);
        skill.ready().await;
    })
    .await;
}

#[tokio::test]
async fn a_running_job_uses_its_server_after_a_rolling_update() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(1, "updating")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let job = tenant.job("updated").await;
        shop.model.until_held("updating").await;
        let resources = json!({"requests": {"cpu": "11m"}});
        let change = Patch::Merge(json!({"spec": {"mcpServer": {"container": {"resources": resources}}}}));
        let changed = tenant.api::<Skill>().patch("cs-tier-1", &PatchParams::default(), &change).await;
        changed.expect("a server can be changed");
        let is_replaced = |deployment: &Deployment| {
            let (generation, status) = (deployment.metadata.generation, deployment.status.as_ref());
            generation > Some(1)
                && status.is_some_and(|status| {
                    let replicas = (status.replicas, status.updated_replicas, status.available_replicas);
                    status.observed_generation == generation && replicas == (Some(1), Some(1), Some(1))
                })
        };
        let deployments = tenant.api::<Deployment>();
        until(&deployments, &names::mcp_server("cs-tier-1"), "only the new server", is_replaced).await;
        shop.model.release("updating").await;
        job.succeeded().await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

/// The server in Node speaks the newer era of the protocol, and the one in Python the older era.
#[tokio::test]
#[ignore = "builds images with Node and Python: make bench-cluster"]
async fn stdio_servers_in_images_with_node_and_python_are_bridged() {
    if !cluster::is_local_or_skips("the images, which are loaded into the node,") {
        return;
    }
    let references = command::run(&mut command::script("hack/foreign-images", &[]));
    let images: BTreeMap<String, String> = serde_json::from_str(&references).expect("the references of the images");
    for (interpreter, program) in [("node", "/server.js"), ("python3", "/server.py")] {
        let turns = [
            call("track_order", json!({"order_id": "A-17"})),
            Turn::answer("A-17").after_result(&format!("says {interpreter}")),
        ];
        story(async |tenant| {
            let shop = tenant.shop(&[conversation("A-17", turns)]).await;
            let skill = tenant.skill("cs-tier-1").with_stdio_server().running(&images[interpreter]).with(|spec| {
                let container = spec.mcp_server.as_mut().and_then(|server| server.container.as_mut());
                let command = vec![interpreter.to_owned(), program.to_owned()];
                container.expect("the Skill runs a container").command = command;
            });
            skill.await.ready().await;
            let status = tenant.job("track").goal("Where is order A-17?").await.succeeded().await;
            assert_eq!(status.usage.expect("a Job has spent something").tool_calls, 1);
            shop.model.assert_no_violations().await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_at_a_metadata_address_is_not_asked() {
    story(async |tenant| {
        tenant.shop(&[]).await;
        let skill = tenant.skill("cs-tier-1").with(|spec| {
            let uri = Some("https://169.254.169.254/mcp".to_owned());
            spec.mcp_server = Some(McpServer { uri, ..McpServer::default() });
        });
        let skill = skill.await;
        skill.until_reason(ConditionType::NetworkReady, "EgressNotAllowed", &["169.254.169.254", "link-local"]).await;
        tenant.job("refund").await.until_reason("SkillNotReady", &["169.254.169.254", "EgressNotAllowed"]).await;
    })
    .await;
}

#[tokio::test]
async fn the_probe_of_a_server_outside_of_the_cluster_waits_for_its_secret_and_then_uses_it() {
    story(async |tenant| {
        tenant.shop(&[]).await;
        // This Service speaks no TLS.
        let server = json!({"uri": "https://ledger:8080/mcp", "headers": [
            {"name": "Authorization", "scheme": "Bearer", "secretKeyRef": {"name": "tools", "key": "token"}},
        ]});
        let skill = tenant.skill("cs-tier-1").with(|spec| spec.mcp_server = Some(typed(server))).await;
        let missing = ["needs the key `token` of the Secret `tools`", "missing or empty"];
        skill.until_reason(ConditionType::McpVerified, "ProbeFailed", &missing).await;
        let job = tenant.job("track").await;
        job.until_reason("SkillNotReady", &["McpVerified", "the Secret `tools`"]).await;
        assert_eq!(job.pods().await.len(), 0);
        tenant.secret("tools", "token", "a-token-that-nobody-may-read").await;
        let asked = ["https://ledger:8080/mcp", "cannot be listed"];
        skill.until_reason(ConditionType::McpVerified, "ProbeFailed", &asked).await;
    })
    .await;
}

#[tokio::test]
async fn a_command_that_does_not_speak_mcp_is_named_in_the_condition() {
    story(async |tenant| {
        let skill = tenant.skill("cs-tier-1").with_stdio_server();
        let skill = skill.with(|spec| {
            let container = spec.mcp_server.as_mut().and_then(|server| server.container.as_mut());
            container.expect("the Skill runs a container").command = vec!["/no/such/program".to_owned()];
        });
        skill
            .await
            .until_reason(ConditionType::McpAvailable, "McpUnavailable", &["exited with code 1", "--previous"])
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_listens_on_another_port_is_named_with_the_port() {
    story(async |tenant| {
        let skill = tenant.skill("cs-tier-1").with(|spec| {
            let container = spec.mcp_server.as_mut().and_then(|server| server.container.as_mut());
            container.expect("the Skill runs a container").port = 8099;
        });
        let skill = skill.await;
        let parts = ["the startup probe failed", "no connections on port 8099", "spec.mcpServer.container.port"];
        skill.until_reason(ConditionType::McpAvailable, "McpUnavailable", &parts).await;
        tenant.skill("cs-tier-1").await;
        let is_available = |status: &SkillStatus| conditions::is_true(&status.conditions, ConditionType::McpAvailable);
        skill.until("its server to be available", is_available).await;
    })
    .await;
}

/// The turns of a Job that tracks an order.
fn tracking() -> [Turn; 2] {
    [call("track_order", json!({"order_id": "A-17"})), Turn::answer("A-17").after_result("A-17")]
}

/// Checks that the server of a Skill refuses a pod of the namespace that is no worker of this Skill: the probe of another Skill, which
/// names the Service of the server. Then a Job of the Skill calls the server.
async fn refuses_all_but_its_workers(tenant: &Tenant, shop: &Shop, server: SkillDraft<'_>) {
    let skill = server.await;
    skill.ready().await;
    let other = tenant.skill("other").served_by(&names::mcp_server("cs-tier-1")).await;
    let parts = ["HTTP 401", "a request needs the token of a worker"];
    other.until_reason(ConditionType::McpVerified, "ProbeFailed", &parts).await;
    assert_eq!(shop.ledger.summary().await.effects, 0);
    tenant.job("track").goal("Where is order A-17?").await.succeeded().await;
    shop.model.assert_no_violations().await;
}

#[tokio::test]
async fn a_stdio_server_answers_only_workers_of_its_skill() {
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", tracking())]).await;
        refuses_all_but_its_workers(tenant, &shop, tenant.skill("cs-tier-1").with_stdio_server()).await;
    })
    .await;
}

#[tokio::test]
async fn a_protected_server_answers_only_workers_of_its_skill() {
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", tracking())]).await;
        // The server accepts only the name of the loopback address, as servers on that address do.
        let skill = tenant.skill("cs-tier-1").with_server_env("LISTEN_ADDRESS", "127.0.0.1");
        let skill = skill.with_server_env("ALLOWED_HOSTS", "127.0.0.1").with(|spec| {
            let container = spec.mcp_server.as_mut().and_then(|server| server.container.as_mut());
            container.expect("the Skill runs a container").protect = Some(true);
        });
        refuses_all_but_its_workers(tenant, &shop, skill).await;
    })
    .await;
}
