//! HTTP endpoints that a Job binds: the rules of the Skill apply, and only Services of the tenant can be called.

use bloomery_crds::v1alpha1::{GateReason, SkillSpec};
use bloomery_e2e::harness::{Turn, call, conversation, story, typed};
use serde_json::json;

/// Removes the MCP server of a Skill, and declares the ledger and the API server of the cluster as HTTP endpoints.
fn use_endpoints(spec: &mut SkillSpec) {
    spec.mcp_server = None;
    spec.tools = Vec::new();
    spec.resources = serde_json::from_value(json!([
        {"name": "ledger", "type": "api_endpoint", "required": true, "auth": {"credential": "token", "scheme": "Bearer"}, "rules": [
            {"methods": ["GET"], "paths": ["/effects/**"]}, {"methods": ["POST"], "paths": ["/effects"]},
        ]},
        {"name": "cluster", "type": "api_endpoint"},
        {"name": "token", "type": "credential"},
    ]))
    .expect("resources");
}

const SECRET: &str = "a-token-that-nobody-may-read";

#[tokio::test]
async fn a_service_of_the_tenant_is_called_by_its_rules_and_the_cluster_is_not() {
    let effect = json!({"callKey": "by-hand", "tool": "http_request", "order": "A-17", "amount": 5});
    let conversation_of_a_17 = conversation(
        "A-17",
        [
            call("http_get", json!({"resource": "ledger", "path": "/effects/summary"}))
                .offered(&["http_get", "http_request"]),
            call("http_request", json!({"method": "POST", "path": "/effects", "json": effect}))
                .after_result("HTTP 200 OK"),
            call("http_request", json!({"method": "POST", "path": "/holds/A-17/release"})).after_result("HTTP 200 OK"),
            Turn::answer("A-17").after_result("allow no POST of /holds"),
        ],
    );
    story(async |tenant| {
        let shop = tenant.shop(&[conversation_of_a_17]).await;
        tenant.secret("ci", "token", SECRET).await;
        tenant.skill("cs-tier-1").with(use_endpoints).await;
        let token = json!({"secretKeyRef": {"name": "ci", "key": "token"}});
        let without_token = tenant.job("without-token").binding("ledger", json!({"value": shop.ledger.url})).await;
        without_token
            .until_reason("ResourcesInvalid", &["token", "calls of `ledger`, which is bound, need this credential"])
            .await;
        let to_the_cluster = tenant
            .job("to-the-cluster")
            .binding("ledger", json!({"value": shop.ledger.url}))
            .binding("cluster", json!({"value": "http://kubernetes.default.svc:443"}))
            .binding("token", token.clone())
            .await;
        to_the_cluster.until_reason("EgressNotAllowed", &["spec.resources.cluster", "is the API server"]).await;
        let job =
            tenant.job("bound").binding("ledger", json!({"value": shop.ledger.url})).binding("token", token).await;
        let status = job.succeeded().await;
        let gate = status.gates.as_ref().expect("the status has the outcomes of the gates").pre_tool.clone();
        let denied: Vec<_> = gate.last.iter().filter_map(|ruling| ruling.rule).collect();
        assert_eq!(denied, [GateReason::Endpoint], "{gate:#?}");
        shop.assert_refunded_once("A-17").await;
        let text = format!("{status:?}\n{}", job.logs(1).await);
        assert!(!text.contains(SECRET), "the status or the log has the secret: {text}");
    })
    .await;
}

/// The API of the tenant redirects to the metadata service of a cloud.
#[tokio::test]
async fn a_redirect_to_the_metadata_address_is_shown_and_not_followed() {
    let turns = [
        call("http_get", json!({"resource": "ledger", "path": "/elsewhere"})),
        Turn::answer("A-17").after_result("location: http://169.254.169.254/latest\n[Redirects are not followed.]"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        let skill = tenant.skill("cs-tier-1").with(|spec| {
            spec.mcp_server = None;
            spec.tools = Vec::new();
            spec.resources = typed(json!([{"name": "ledger", "type": "api_endpoint", "required": true}]));
        });
        skill.await;
        let job = tenant.job("redirected").binding("ledger", json!({"value": shop.ledger.url})).await;
        let status = job.succeeded().await;
        assert_eq!(status.usage.map(|usage| usage.tool_calls), Some(1));
        shop.model.assert_no_violations().await;
    })
    .await;
}
