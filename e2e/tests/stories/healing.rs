//! Missing or broken objects: a condition names them, and after the repair the Job continues in the same pod.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{JobStatus, SkillStatus};
use bloomery_e2e::harness::{JobHandle, Tenant, Turn, call, cluster, conversation, machine, refund_of, story};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

/// Waits until the Job has succeeded, and checks that this was in its first pod.
async fn healed(job: &JobHandle<'_>) -> JobStatus {
    let status = job.succeeded().await;
    assert_eq!(status.attempt.as_ref().map(|attempt| attempt.number), Some(1), "it recovers in its first pod");
    status
}

#[tokio::test]
async fn objects_may_be_created_in_any_order() {
    story(async |tenant| {
        let job = tenant.job("refund").await;
        job.until_reason("SkillNotFound", &["cs-tier-1"]).await;
        let skill = tenant.skill("cs-tier-1").await;
        job.until_reason("ModelNotFound", &["default"]).await;
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        skill.ready().await;
        healed(&job).await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn a_missing_and_then_wrong_key_is_named_until_it_is_right() {
    story(async |tenant| {
        let conversations = [refund_of("A-17")];
        let model = tenant.model("default").with_key_from("llm", "token");
        let (_, server, ()) = tokio::join!(
            tenant.ledger(),
            tenant.model_server_with_key(&conversations, "the right key"),
            model.into_future()
        );
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").await;
        job.until_reason("SecretMissing", &["llm", "token"]).await;
        tenant.secret("llm", "token", "a wrong key").await;
        let message = job.until_reason("ModelUnavailable", &["default", "401", "key"]).await;
        assert!(!message.contains("a wrong key"), "the message has the key: {message}");
        tenant.secret("llm", "token", "the right key").await;
        let status = healed(&job).await;
        server.assert_no_violations().await;
        let text = format!("{status:?}\n{}", job.logs(1).await);
        assert!(!text.contains("the right key"), "the status or the log has the key: {text}");
    })
    .await;
}

#[tokio::test]
async fn a_job_reports_an_unreachable_model_until_it_is_reachable() {
    story(async |tenant| {
        tenant.model("default").await;
        tenant.ledger().await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").await;
        job.until_reason("ModelUnavailable", &["default", "Check its address"]).await;
        let server = tenant.model_server(&[refund_of("A-17")]).await;
        healed(&job).await;
        server.assert_no_violations().await;
    })
    .await;
}

#[tokio::test]
async fn a_failed_model_request_is_retried() {
    let troubled = refund_of("A-17")
        .fault(0, json!({"status": 429, "retryAfter": 2}))
        .fault(0, json!({"hang": true}))
        .fault(1, json!({"garbage": true}))
        .fault(2, json!({"status": 500}))
        .fault(3, json!({"errorInside": true}))
        .fault(3, json!({"empty": true}));
    story(async |tenant| {
        let shop = tenant.shop(&[troubled]).await;
        tenant.model("default").with_timeout(5).await;
        tenant.skill("cs-tier-1").await;
        let job = tenant.job("refund").await;
        healed(&job).await;
        shop.assert_refunded_once("A-17").await;
        let asked = shop.model.asked_by(&job.uid).await;
        let times: Vec<u64> = asked.by_position.values().copied().collect();
        assert_eq!(times, [3, 2, 2, 3], "one more request after each fault: {asked:?}");
    })
    .await;
}

#[tokio::test]
async fn an_image_that_does_not_exist_is_named_until_the_skill_names_another() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").running("localhost/bloomery/nowhere:1").await;
        let job = tenant.job("refund").await;
        skill.until_reason(ConditionType::McpAvailable, "McpUnavailable", &["localhost/bloomery/nowhere:1"]).await;
        job.until_reason("SkillNotReady", &["cs-tier-1", "McpAvailable", "localhost/bloomery/nowhere:1"]).await;
        tenant.skill("cs-tier-1").await;
        healed(&job).await;
        skill.ready().await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

/// Moves a tag to another image, and deletes the pod of the MCP server. The next pod runs the other image.
async fn move_tag(tenant: &Tenant, tag: &str, image: &str) {
    machine::tag_image(&cluster::image(image), tag);
    let labels = format!("{}=cs-tier-1,{}=mcp", names::LABEL_SKILL, names::LABEL_COMPONENT);
    let server = ListParams::default().labels(&labels);
    tenant.api::<Pod>().delete_collection(&DeleteParams::default(), &server).await.expect("the pod is deleted");
}

/// The other image is that of the ledger, which is no MCP server.
#[tokio::test]
async fn an_image_whose_tag_was_moved_is_named_and_verified_until_the_tag_is_moved_back() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("moving a tag in the node") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let tag = format!("localhost/bloomery/moved:{}", tenant.namespace);
        machine::tag_image(&cluster::image("e2e-orders"), &tag);
        let skill = tenant.skill("cs-tier-1").running(&tag).with_server_env("LEDGER_DIR", "/tmp").await;
        let first = skill.ready().await.mcp.expect("the server runs").image_id;

        move_tag(tenant, &tag, "e2e-ledger").await;
        let (was, kind) = (format!("was {first} and is now "), ConditionType::McpImageUnchanged);
        skill.until_reason(kind, "ImageChanged", &[&tag, &was, "by its digest"]).await;
        skill.until_reason(ConditionType::McpVerified, "ProbeFailed", &["cannot be listed"]).await;

        move_tag(tenant, &tag, "e2e-orders").await;
        let is_back = |status: &SkillStatus| conditions::find(&status.conditions, kind).is_none();
        let status = skill.until("the first image", is_back).await;
        assert_eq!(status.mcp.map(|server| server.image_id), Some(first));
        skill.ready().await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn a_missing_service_is_named_until_it_exists() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").served_by("orders").await;
        let job = tenant.job("refund").await;
        skill.until_reason(ConditionType::McpAvailable, "ServiceNotFound", &["orders"]).await;
        job.until_reason("SkillNotReady", &["McpAvailable", "orders"]).await;
        tenant.orders_server().await;
        skill.ready().await;
        healed(&job).await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn an_mcp_server_that_does_not_answer_is_reported_until_it_does() {
    story(async |tenant| {
        if !cluster::is_local_or_skips("freezing an MCP server") {
            return;
        }
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let server = tenant.orders_of("cs-tier-1").await;
        server.freeze();
        let job = tenant.job("refund").await;
        job.until_reason("McpUnavailable", &["cs-tier-1-mcp"]).await;
        server.thaw();
        healed(&job).await;
        shop.assert_refunded_once("A-17").await;
    })
    .await;
}

#[tokio::test]
async fn the_model_reads_the_reason_of_a_refused_refund() {
    let turns = [
        call("process_refund", json!({"order_id": "B-2", "amount": 1.0})),
        Turn::answer("B-2").after_result("the return window is over"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("B-2", turns)]).await;
        tenant.skill("cs-tier-1").await;
        tenant.job("refund").goal("Refund order B-2").await.succeeded().await;
        assert_eq!(shop.ledger.summary().await.effects, 0);
        shop.model.assert_no_violations().await;
    })
    .await;
}
