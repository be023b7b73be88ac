//! Tests of turns, matches, expectations, and scripts that change.

use super::*;

#[tokio::test]
async fn an_answer_has_the_form_of_openai() {
    let model = model(REFUND).await;
    let (status, answer) = ask(&model, &request(&[])).await;

    assert_eq!(status, 200);
    assert_eq!(
        answer,
        json!({
            "id": "chatcmpl-job-1-0",
            "object": "chat.completion",
            "created": 0,
            "model": "gpt-test",
            "choices": [{
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": null,
                    "refusal": null,
                    "tool_calls": [{
                        "id": "call_0_0",
                        "type": "function",
                        "function": {
                            "name": "verify_identity",
                            "arguments": r#"{"email":"a@example.com","order_id":"A-17"}"#,
                        },
                    }],
                },
                "logprobs": null,
                "finish_reason": "tool_calls",
            }],
            // A quarter of the bytes of messages and tools, and of the answer.
            "usage": {
                "prompt_tokens": 95, "completion_tokens": 14, "total_tokens": 109,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            },
        })
    );
}

#[tokio::test]
async fn the_turn_is_the_number_of_answers_in_the_request() {
    let model = model(REFUND).await;
    // This is the first request of the Job to this server, as from a restarted worker.
    let history = [call("c1", "verify_identity"), result("c1", "verified")];
    let (_, answer) = ask(&model, &request(&history)).await;

    let choice = &answer["choices"][0];
    assert_eq!(choice["message"]["content"], "Looking.");
    assert_eq!(choice["message"]["tool_calls"][1]["id"], "call_1_1");
    assert_eq!(choice["message"]["tool_calls"][1]["function"]["arguments"], r#"{"order_id": "#);
    assert_eq!(choice["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_answer() {
    let model = model(REFUND).await;
    let first = send(&model, &request(&[])).await.bytes().await.unwrap();
    let second = send(&model, &request(&[])).await.bytes().await.unwrap();

    assert_eq!(first, second);
    let requests: Requests = control(&model, "requests").await;
    let job = &requests.users["job-1"];
    assert_eq!((job.requests, job.answered, job.positions, job.by_position[&0]), (2, 2, 1, 2));
    assert_eq!(control::<Violations>(&model, "violations").await, Violations::default());
}

#[tokio::test]
async fn a_turn_reports_the_scripted_usage() {
    let model = model(REFUND).await;
    let history = [
        call("c1", "verify_identity"),
        result("c1", "verified"),
        call("c2", "check_eligibility"),
        result("c2", "eligible"),
    ];
    let (_, answer) = ask(&model, &request(&history)).await;

    assert_eq!(answer["choices"][0]["message"]["content"], "Done.\n```json\n{\"order_id\": \"A-17\"}\n```\n");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let usage = &answer["usage"];
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(1200), &json!(45)));
    assert_eq!((&usage["total_tokens"], &usage["prompt_tokens_details"]["cached_tokens"]), (&json!(1245), &json!(0)));
}

#[tokio::test]
async fn a_conversation_is_chosen_by_goal_model_and_system() {
    let model = model(
        r"
conversations:
  - {name: by-model, match: {goal: A-17, model: other}, turns: [{say: by model}]}
  - {name: by-system, match: {goal: A-17, system: Auditor}, turns: [{say: by system}]}
  - {name: any, turns: [{say: any}]}
",
    )
    .await;
    let said = async |body: Value| ask(&model, &body).await.1["choices"][0]["message"]["content"].clone();

    let mut other = request(&[]);
    other["model"] = json!("other");
    other["user"] = json!("job-2");
    assert_eq!(said(other).await, "by model");
    let mut auditor = request(&[]);
    auditor["messages"][0]["content"] = json!("You are an Auditor.");
    auditor["user"] = json!("job-3");
    assert_eq!(said(auditor).await, "by system");
    assert_eq!(said(request(&[])).await, "any");
}

#[rstest::rstest]
#[case::result("{lastToolResultContains: gold}", "the last tool result should contain `gold` and is `verified`")]
#[case::user("{lastUserMessageContains: gold}", "the last user message should contain `gold` and is `Refund")]
#[case::system("{systemContains: gold}", "the system message should contain `gold` and is `You are")]
#[case::offered("{toolsOffered: [track_order, gold]}", "`gold` should be offered")]
#[case::not_offered("{toolsNotOffered: [track_order]}", "`track_order` should not be offered")]
#[case::structured("{structured: true}", "the request should ask for JSON that follows a schema")]
#[case::streaming("{streaming: true}", "the request should ask for a stream")]
#[tokio::test]
async fn a_failed_expectation_is_a_violation(#[case] expect: &str, #[case] why: &str) {
    let script = format!("conversations: [{{name: c, turns: [{{say: a}}, {{say: b, expect: {expect}}}]}}]");
    let model = model(&script).await;
    let history = [call("c1", "verify_identity"), result("c1", "verified")];
    let (status, answer) = ask(&model, &request(&history)).await;

    assert_eq!(status, 400);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("conversation `c`, turn 1: ") && message.contains(why), "{message}");
    let violations: Violations = control(&model, "violations").await;
    assert_eq!(violations.violations[0].rule, violation::Rule::Expected);
}

#[tokio::test]
async fn a_request_that_meets_its_expectations_is_answered() {
    let model = model(
        r"
conversations:
  - name: c
    turns:
      - say: a
      - say: b
        expect:
          lastToolResultContains: verif
          lastUserMessageContains: A-17
          systemContains: Support
          toolsOffered: [track_order, verify_identity]
          toolsNotOffered: [process_refund]
",
    )
    .await;
    let history = [call("c1", "verify_identity"), result("c1", "verified")];
    assert_eq!(ask(&model, &request(&history)).await.0, 200);
}

#[rstest::rstest]
#[case::no_conversation(
    "conversations: [{name: c, match: {goal: B-2}, turns: [{say: a}]}]",
    "no conversation of the script matches"
)]
#[case::no_turn("conversations: [{name: c, turns: []}]", "conversation `c` has 0 turns; turn 0 was requested")]
#[tokio::test]
async fn a_request_without_an_answer_in_the_script_is_a_violation(#[case] script: &str, #[case] why: &str) {
    let model = model(script).await;
    let (status, answer) = ask(&model, &request(&[])).await;

    assert_eq!(status, 400);
    assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    let violations: Violations = control(&model, "violations").await;
    assert_eq!(violations.violations[0].rule, violation::Rule::Scripted);
}

#[tokio::test]
async fn a_changed_file_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script.yaml");
    let write = |say: &str| {
        std::fs::write(&path, format!("conversations: [{{name: c, turns: [{{say: {say}}}]}}]")).unwrap();
    };
    write("before");
    let server = ModelServer::from_file(&path).unwrap();
    let model = server.start(([127, 0, 0, 1], 0).into()).await.unwrap();
    let said = async || ask(&model, &request(&[])).await.1["choices"][0]["message"]["content"].clone();

    assert_eq!(said().await, "before");
    write("after!");
    assert_eq!(said().await, "after!");
    std::fs::write(&path, "conversations: {").unwrap();
    let (status, answer) = ask(&model, &request(&[])).await;
    assert_eq!(status, 500);
    assert!(answer["error"]["message"].as_str().unwrap().contains("script.yaml"), "{answer}");
    write("mended");
    assert_eq!(said().await, "mended");
}

#[rstest::rstest]
#[case::unknown_field("conversations: [{name: c, turn: []}]", "unknown field `turn`")]
#[case::no_answer(
    "conversations: [{name: c, turns: [{faults: [{status: 500}]}]}]",
    "conversation `c`, turn 0: it needs `say`"
)]
#[case::arguments_twice(
    "conversations: [{name: c, turns: [{calls: [{name: t, arguments: {}, rawArguments: ''}]}]}]",
    "exclude each other"
)]
#[case::fault_of_two_kinds(
    "conversations: [{name: c, turns: [{say: a, faults: [{status: 500, garbage: true}]}]}]",
    "exactly one of"
)]
#[case::status_that_is_no_error(
    "conversations: [{name: c, turns: [{say: a, faults: [{status: 200}]}]}]",
    "must be 400 to 599"
)]
#[case::inner_status_that_is_no_error(
    "conversations: [{name: c, turns: [{say: a, faults: [{errorInside: 200}]}]}]",
    "must be 400 to 599"
)]
#[case::two_retry_times(
    "conversations: [{name: c, turns: [{say: a, faults: [{status: 429, retryAfter: 1, retryAfterDate: 1}]}]}]",
    "exclude each other"
)]
#[case::retry_time_without_a_status(
    "conversations: [{name: c, turns: [{say: a, faults: [{empty: true, retryAfter: 1}]}]}]",
    "requires a `status`"
)]
#[case::slow_needs_an_answer(
    "conversations: [{name: c, turns: [{faults: [{slow: 1, times: always}]}]}]",
    "it needs `say`"
)]
#[case::zero_times(
    "conversations: [{name: c, turns: [{say: a, faults: [{empty: true, times: 0}]}]}]",
    "a number from 1, or `always`"
)]
#[case::times_of_a_hold(
    "conversations: [{name: c, turns: [{say: a, faults: [{hold: x, times: 2}]}]}]",
    "takes no `times`"
)]
fn an_invalid_script_is_refused(#[case] script: &str, #[case] why: &str) {
    let error = Script::from_yaml(script).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn the_script_of_the_demo_is_valid() {
    let manifests =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/demo/scripted-model.yaml")).unwrap();
    let of_the_model = manifests.split("\n---\n").find(|manifest| manifest.contains("script.yaml: |")).unwrap();
    let config: Value = serde_yaml::from_str(of_the_model).unwrap();
    Script::from_yaml(config["data"]["script.yaml"].as_str().unwrap()).unwrap();
}
