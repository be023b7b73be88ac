use std::collections::BTreeMap;

use bloomery_e2e::harness::story;
use serde_json::{Value, json};

use super::{job, model, with_fields};

/// Returns the columns of a row, except those that differ between runs.
fn stable_columns(mut row: BTreeMap<String, Value>) -> Value {
    assert!(row.remove("Age").is_some(), "every kind shows its age");
    json!(row)
}

#[tokio::test]
async fn the_columns_of_a_job_show_its_progress() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        jobs.create("refund", &job()).await;
        let status = json!({
            "phase": "Escalated",
            "outcome": {"code": "GateFailed", "message": "The answer did not pass."},
            "attempt": {"number": 2, "pod": "refund-2"},
            "usage": {"llmCalls": {"plan": 6}, "inputTokens": 10, "outputTokens": 20, "toolCalls": 4},
            "gates": {
                "intent": {"id": "refund", "outOfDomain": false},
                "preTool": {"allowed": 3, "denied": 1},
                "finalization": {"passed": false},
            },
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "Escalated", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        });
        jobs.change_status("refund", &status).await.expect("the status is accepted");
        let narrow = json!({
            "Name": "refund", "Skill": "cs-tier-1", "Phase": "Escalated", "Outcome": "GateFailed",
            "Attempt": 2, "Steps": 6, "Tools": 4, "Why": "Escalated",
        });
        assert_eq!(stable_columns(jobs.row("refund", false).await), narrow);
        let wide = jobs.row("refund", true).await;
        assert_eq!((&wide["Intent"], &wide["Denied"]), (&json!("refund"), &json!(1)));
        assert_eq!(wide["Goal"], "Refund order A-17");
    })
    .await;
}

#[tokio::test]
async fn the_columns_of_a_held_job_show_why_it_waits() {
    story(async |tenant| {
        let jobs = tenant.jobs();
        // The Skill does not exist, so the operator writes nothing else to the status.
        jobs.create("held", &with_fields(job(), &json!({"skill": "absent"}))).await;
        let call = json!({
            "id": "c-7", "tool": "process_refund", "digest": format!("sha256:{}", "0".repeat(64)),
            "approvers": ["supervisor"], "reason": "amount > 500",
        });
        let status = json!({"phase": "AwaitingApproval", "waitingFor": {"call": call}});
        jobs.change_status("held", &status).await.expect("the status is accepted");
        assert_eq!(jobs.row("held", true).await["Held"], "process_refund");
    })
    .await;
}

#[tokio::test]
async fn the_columns_of_a_model_show_whether_it_can_be_used() {
    story(async |tenant| {
        let models = tenant.models();
        models.create("default", &model()).await;
        let row = models.row("default", false).await;
        assert_eq!((&row["Provider"], &row["Model"]), (&json!("openai"), &json!("scripted")));
        assert!(row.contains_key("Ready") && row.contains_key("Reason"), "{row:?}");
        assert_eq!(models.row("default", true).await["URL"], "http://model:8080/v1");
    })
    .await;
}

#[tokio::test]
async fn the_columns_of_a_skill_show_whether_it_can_be_used() {
    story(async |tenant| {
        tenant.skill("cs-tier-1").with(|spec| spec.mcp_server = None).await;
        let row = tenant.skills().row("cs-tier-1", false).await;
        let columns: Vec<&str> = row.keys().map(String::as_str).collect();
        assert_eq!(columns, ["Age", "Name", "Ready", "Reason", "Revision"]);
    })
    .await;
}
