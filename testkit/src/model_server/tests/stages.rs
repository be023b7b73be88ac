//! Tests of the stages except the main loop: their places, scripts and default answers.

use super::*;
use bloomery_crds::v1alpha1::Stage;

const INTENT: &str = "You find out what a person wants of an agent. It helps.\n\n# Intents\n- \"track\": where it is\n  Examples: \"where is it\"\n  Entities: \"order_id\" (string), \"amount\" (number)\n- \"refund\"\n\n# Answer\nJSON";

/// Returns a request of a stage for the Job `job-1`.
fn stage_request(system: &str, user: &str) -> Value {
    json!({
        "model": "gpt-test", "user": "job-1",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
    })
}

/// Returns a request of the finalization gate for a draft.
fn finalization_request(draft: &str) -> Value {
    stage_request("You are a finalization gate. Rule on it.", &format!("Job goal: Refund order A-17\n{draft}"))
}

async fn answer_text(model: &Running, body: &Value) -> String {
    let (status, answer) = ask(model, body).await;
    assert_eq!(status, 200, "{answer}");
    answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

async fn answer_json(model: &Running, body: &Value) -> Value {
    serde_json::from_str(&answer_text(model, body).await).unwrap()
}

#[tokio::test]
async fn a_stage_without_a_script_gets_a_default_answer_that_lets_the_job_continue() {
    let model = model(REFUND).await;
    let goal = "Which intent?\n\n<goal id=\"0f\">\nWhere is A-17? I paid 12.5\n</goal id=\"0f\">";
    let intent = json!({"intent": "track", "entities": {"order_id": "A-17", "amount": 12.5}});
    assert_eq!(answer_json(&model, &stage_request(INTENT, goal)).await, intent);
    assert_eq!(
        answer_json(&model, &finalization_request("draft")).await,
        json!({"passed": true, "score": 1.0, "reasons": []})
    );
    let polish = stage_request(
        "You are a reply formatter. Format.",
        "<answer id=\"0f\">\nDone.\n\nIt is <b>.\n</answer id=\"0f\">",
    );
    assert_eq!(answer_text(&model, &polish).await, "Done.\n\nIt is <b>.");
}

#[tokio::test]
async fn requests_of_other_stages_do_not_count_as_turns_of_the_main_loop() {
    let model = model(REFUND).await;
    answer_text(&model, &stage_request(INTENT, "Refund order A-17")).await;
    assert_eq!(ask(&model, &request(&[])).await.0, 200);
    answer_text(&model, &finalization_request("one")).await;
    answer_text(&model, &finalization_request("two")).await;
    let grown = [call("c1", "verify_identity"), result("c1", "verified")];
    assert_eq!(ask(&model, &request(&grown)).await.0, 200);

    let requests: Requests = control(&model, "requests").await;
    let job = &requests.users["job-1"];
    assert_eq!((requests.total, job.requests, job.answered, job.positions), (5, 2, 2, 2));
    assert_eq!(job.by_stage, [(Stage::Intent, 1), (Stage::Finalization, 2)].into());
    assert_eq!(control::<Violations>(&model, "violations").await, Violations::default());
}

const SCRIPT: &str = r"
conversations:
  - name: other
    match: {goal: B-2}
    turns: []
  - name: refund
    match: {goal: A-17, model: gpt-test, system: Support}
    turns: [{say: done}]
    finalization:
      - json: {passed: false, score: 0.2}
        faults: [{say: not a ruling}]
        expect: {noMessageContains: [s3cret]}
      - {say: second}
    polish: [{say: Polished.}]
";

#[tokio::test]
async fn a_stage_is_answered_in_the_order_of_its_different_requests() {
    let model = model(SCRIPT).await;
    assert_eq!(answer_text(&model, &finalization_request("one")).await, "not a ruling");
    assert_eq!(answer_text(&model, &finalization_request("one")).await, r#"{"passed":false,"score":0.2}"#);
    assert_eq!(answer_text(&model, &finalization_request("two")).await, "second");
    assert_eq!(
        answer_text(&model, &finalization_request("one")).await,
        r#"{"passed":false,"score":0.2}"#,
        "a repeated request"
    );
    assert_eq!(
        answer_json(&model, &finalization_request("three")).await["passed"],
        true,
        "the script has no more answers"
    );
}

#[tokio::test]
async fn a_stage_without_the_goal_belongs_to_the_conversation_of_its_job() {
    let model = model(SCRIPT).await;
    let polish = stage_request("You are a reply formatter. Format.", "Done.");
    assert_eq!(answer_text(&model, &polish).await, "Done.", "the conversation is not known yet");
    assert_eq!(ask(&model, &request(&[])).await.0, 200);
    assert_eq!(answer_text(&model, &polish).await, "Polished.");
}

#[tokio::test]
async fn a_text_that_must_not_be_sent_is_a_violation() {
    let model = model(SCRIPT).await;
    let (status, answer) = ask(&model, &finalization_request("the s3cret is out")).await;
    assert_eq!(status, 400);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`refund`, finalization 0: no message should contain `s3cret`"), "{message}");
    let violations: Violations = control(&model, "violations").await;
    assert_eq!(violations.violations[0].stage, Stage::Finalization);
}
