//! The operator's rights, its use of them, and its health and metrics endpoints.

use bloomery_e2e::harness::audit::{self, AuditedRequest};
use bloomery_e2e::harness::machine::Process;
use bloomery_e2e::harness::{cluster, operator, refund_of, story};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use std::net::IpAddr;

#[tokio::test]
async fn the_operator_sends_no_request_that_it_has_no_right_to() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("the audit log") {
            return;
        }
        let conversations = [refund_of("A-17")];
        let model = tenant.model("default").with_key_from("llm", "token");
        tokio::join!(tenant.ledger(), tenant.model_server(&conversations), model.into_future());
        tenant.secret("llm", "token", "a key that the model does not require").await;
        tenant.skill("cs-tier-1").await;
        tenant.job("refund").await.succeeded().await;
        // The operator also needs the right to delete a Job after its TTL.
        let brief = tenant.job("brief").lasting(0).await;
        brief.cancel().await;
        brief.gone().await;
        tenant.skill("cs-tier-1").with(|spec| spec.mcp_server = None).await.ready().await;

        let asked = audit::operator_requests(&tenant.namespace);
        let (refused, granted): (Vec<AuditedRequest>, Vec<AuditedRequest>) =
            asked.into_iter().partition(|asked| asked.code == 403);
        assert_eq!(audit::list(&refused), "", "the chart grants all that the operator needs");
        let of = |resources: &[&str]| {
            let found = granted.iter().filter(|asked| resources.contains(&asked.resource.as_str()));
            audit::list(&found.cloned().collect::<Vec<_>>())
        };
        assert_ne!(of(&["pods"]), "", "the log shows what the operator does");
        let deletes =
            |asked: &AuditedRequest| (asked.verb.as_str(), asked.resource.as_str()) == ("delete", "skilljobs");
        assert!(granted.iter().any(deletes), "it deleted the Job");
        assert_eq!(of(&["namespaces"]), "", "it watches all namespaces and reads no single one");
        let never = ["secrets", "pods/log", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"];
        assert_eq!(of(&never), "", "the operator reads no Secret, and connects to nothing of a tenant");
    })
    .await;
}

#[tokio::test]
async fn the_operator_opens_connections_to_the_api_server_only() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("the connections of the operator") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        let api_server = Api::<Service>::namespaced(tenant.cluster.client.clone(), "default").get("kubernetes").await;
        let api_server = api_server.expect("the Service of the API server").spec.and_then(|spec| spec.cluster_ip);
        let api_server: IpAddr = api_server.and_then(|address| address.parse().ok()).expect("it has an address");
        let operator = Process::find(&operator::leader(&tenant.cluster).await, operator::PROGRAM).await;
        let opened = operator.opened_connections();
        assert!(opened.contains(&api_server) && opened.iter().all(|remote| *remote == api_server), "{opened:?}");
    })
    .await;
}

#[tokio::test]
async fn the_operator_serves_its_health_and_metrics() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        operator::get(&tenant.cluster, "/healthz").await;
        operator::get(&tenant.cluster, "/readyz").await;
        let metrics = operator::get(&tenant.cluster, "/metrics").await;
        for shown in [
            "bloomery_jobs{phase=\"Succeeded\"}",
            "bloomery_reconciles_total{controller=\"skill\"",
            "bloomery_reconciles_total{controller=\"job\"",
            "bloomery_leader 1",
        ] {
            assert!(metrics.contains(shown), "`{shown}` should be shown:\n{metrics}");
        }
    })
    .await;
}
