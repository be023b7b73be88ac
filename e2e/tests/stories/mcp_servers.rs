//! MCP servers of each kind.

use bloomery_crds::conditions::ConditionType;
use bloomery_crds::v1alpha1::McpServer;
use bloomery_e2e::harness::{Turn, call, conversation, story};
use serde_json::json;

#[tokio::test]
async fn a_stdio_server_in_an_empty_image_is_bridged() {
    let turns = [
        call("track_order", json!({"order_id": "A-17"})),
        Turn::answer("A-17").after_result("Order A-17 is with the carrier"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        let skill = tenant.skill("cs-tier-1").with_stdio_server().await;
        skill.ready().await;
        let status = tenant.job("track").goal("Where is order A-17?").await.succeeded().await;
        assert_eq!(status.usage.expect("a Job has spent something").tool_calls, 1);
        shop.model.assert_no_violations().await;
    })
    .await;
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
