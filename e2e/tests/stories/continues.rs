//! Follow-ups: a Job that continues the conversation of an earlier Job.

use bloomery_e2e::harness::{call, conversation, refund_of, say, story};
use serde_json::json;

#[tokio::test]
async fn a_follow_up_waits_for_the_first_job_and_knows_its_answer() {
    let fields = json!({"order_id": "B-2", "status": "not eligible", "next_steps": ["buy a new one"]});
    let answer = say(&format!("It cannot be refunded.\n```json\n{fields}\n```"));
    let follow_up = conversation(
        "And what about B-2?",
        [call("check_eligibility", json!({"order_id": "B-2"})), answer.after_result("return window")],
    )
    .expect_system("Order A-17");
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(3, "thinking"), follow_up]).await;
        tenant.skill("cs-tier-1").await;
        let second = tenant.job("follow-up").goal("And what about B-2?").continuing("refund").await;
        second.until_reason("ContinuedNotEnded", &["refund", "does not exist"]).await;
        let first = tenant.job("refund").await;
        second.until_reason("ContinuedNotEnded", &["refund", "has not ended"]).await;
        shop.model.release("thinking").await;
        first.succeeded().await;
        let status = second.succeeded().await;
        assert_eq!(status.continued_uid.as_deref(), Some(first.uid.as_str()));
        let log = second.logs(1).await;
        assert!(log.contains("context.gathered") && log.contains("earlier of refund"), "{log}");
    })
    .await;
}
