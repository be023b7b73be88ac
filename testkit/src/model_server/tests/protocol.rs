//! Tests of keys, models and the rules for requests.

use super::*;
use crate::model_server::violation::Rule;

const ANY: &str = "conversations: [{name: any, turns: [{say: a}, {say: b}, {say: c}]}]";

#[tokio::test]
async fn a_wrong_key_is_refused_and_a_changed_key_takes_effect_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, "first\n").unwrap();
    let server = ModelServer::new(Script::from_yaml(ANY).unwrap()).with_key(Key::File(path.clone()));
    let model = server.start(([127, 0, 0, 1], 0).into()).await.unwrap();
    let with_key = async |key: &str| {
        let url = format!("{}/v1/chat/completions", model.url());
        let client = crate::http::client().unwrap();
        client.post(url).bearer_auth(key).json(&request(&[])).send().await.unwrap()
    };

    let refused = with_key("other").await;
    assert_eq!(refused.status(), 401);
    assert_eq!(
        refused.json::<Value>().await.unwrap(),
        json!({"error": {
            "message": "Incorrect API key provided.", "type": "invalid_request_error",
            "param": null, "code": "invalid_api_key",
        }})
    );
    assert_eq!(ask(&model, &request(&[])).await.0, 401);
    assert_eq!(with_key("first").await.status(), 200);
    std::fs::write(&path, "second\n").unwrap();
    assert_eq!(with_key("first").await.status(), 401);
    assert_eq!(with_key("second").await.status(), 200);
    assert_eq!(control::<Requests>(&model, "requests").await.total, 2);
}

#[tokio::test]
async fn the_models_of_the_script_are_listed_and_others_are_refused() {
    let model = model("models: [large, small]\nconversations: [{name: any, turns: [{say: a}]}]").await;
    let url = format!("{}/v1/models", model.url());
    let list: Value = crate::http::client().unwrap().get(url).send().await.unwrap().json().await.unwrap();
    let names: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(names, ["large", "small"]);

    let (status, answer) = ask(&model, &request(&[])).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("model_not_found")));
}

#[tokio::test]
async fn a_body_that_is_not_json_is_a_violation() {
    let model = model(ANY).await;
    let url = format!("{}/v1/chat/completions", model.url());
    let answer = crate::http::client().unwrap().post(url).body("{").send().await.unwrap();

    assert_eq!(answer.status(), 400);
    let violations: Violations = control(&model, "violations").await;
    assert_eq!((violations.total, violations.violations[0].rule), (1, Rule::Readable));
}

fn two_calls() -> Value {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
    json!({"role": "assistant", "content": null, "tool_calls": [call("c1"), call("c2")]})
}

#[rstest::rstest]
#[case::no_result(vec![two_calls(), result("c1", "ok")], Rule::OneResultPerCall, "messages[4]: call `c2` has no result before this message")]
#[case::no_result_before_user(vec![two_calls(), result("c1", "ok"), json!({"role": "user", "content": "?"})], Rule::OneResultPerCall, "messages[4]: call `c2` has no result")]
#[case::two_results(vec![call("c1", "t"), result("c1", "ok"), result("c1", "ok")], Rule::OneResultPerCall, "messages[4]: call `c1` gets a second result")]
#[case::no_call(vec![result("c1", "ok")], Rule::ResultHasCall, "messages[2]: no call `c1` is waiting")]
#[case::late_result(vec![call("c1", "t"), result("c1", "ok"), call("c2", "t"), result("c2", "ok"), result("c1", "ok")], Rule::ResultHasCall, "messages[6]: no call `c1` is waiting")]
#[case::same_id(vec![call("c1", "t"), result("c1", "ok"), call("c1", "t"), result("c1", "ok")], Rule::UniqueCallIds, "messages[4]: call id `c1` occurs a second time")]
#[case::arguments(vec![json!({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "t", "arguments": {}}}]}), result("c1", "ok")], Rule::ArgumentsAreText, "messages[2]: call of `t`: `arguments` is not a string")]
#[case::call_name(vec![call("c1", "orders.refund"), result("c1", "ok")], Rule::ToolNames, "messages[2]: call of `orders.refund`")]
#[case::no_calls(vec![json!({"role": "assistant", "content": "a", "tool_calls": []})], Rule::MessageShape, "messages[2]: `tool_calls` is not a list of calls, or is empty")]
#[case::no_content(vec![json!({"role": "assistant"})], Rule::MessageShape, "messages[2]: `content` is neither")]
#[case::null_result(vec![call("c1", "t"), json!({"role": "tool", "tool_call_id": "c1", "content": null})], Rule::MessageShape, "messages[3]: `content` is neither")]
#[case::role(vec![json!({"role": "function", "content": "a"})], Rule::MessageShape, "messages[2]: `role` is missing or unknown")]
#[tokio::test]
async fn a_broken_history_is_a_violation(#[case] history: Vec<Value>, #[case] rule: Rule, #[case] why: &str) {
    let model = model(ANY).await;
    let (status, answer) = ask(&model, &request(&history)).await;

    assert_eq!(status, 400);
    assert_eq!(answer["error"]["type"], "invalid_request_error");
    let violations: Violations = control(&model, "violations").await;
    let [violation] = violations.violations.as_slice() else { panic!("{violations:?}") };
    assert_eq!((violation.user.as_str(), violation.rule), ("job-1", rule));
    assert!(violation.message.contains(why), "{violation:?}");
    assert_eq!(answer["error"]["message"], violation.message.as_str());
}

#[tokio::test]
async fn complete_calls_and_results_are_no_violation() {
    let model = model(ANY).await;
    // The results are in another order than the calls, and a user message follows.
    let history = [two_calls(), result("c2", "ok"), result("c1", "ok"), json!({"role": "user", "content": "and?"})];
    assert_eq!(ask(&model, &request(&history)).await.0, 200);
}

#[tokio::test]
async fn a_missing_system_message_is_a_violation() {
    let model = model(ANY).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    ask(&model, &body).await;

    let violations: Violations = control(&model, "violations").await;
    assert_eq!(violations.violations[0].rule, Rule::SystemFirst);
    assert_eq!(violations.violations[0].user, "anonymous");
}

#[rstest::rstest]
#[case::name(json!([tool("orders/refund")]), "tools[0]: `orders/refund` does not match")]
#[case::long(json!([tool(&"x".repeat(65))]), "does not match")]
#[case::twice(json!([tool("a"), tool("a")]), "tools[1]: `a` is offered twice")]
#[case::shape(json!([{"name": "a"}]), "tools[0]: it has no `function.name`")]
#[tokio::test]
async fn a_tool_that_providers_refuse_is_a_violation(#[case] tools: Value, #[case] why: &str) {
    let model = model(ANY).await;
    let mut body = request(&[]);
    body["tools"] = tools;
    ask(&model, &body).await;

    let violations: Violations = control(&model, "violations").await;
    assert_eq!(violations.violations[0].rule, Rule::ToolNames);
    assert!(violations.violations[0].message.contains(why), "{violations:?}");
}

#[tokio::test]
async fn a_history_may_grow_but_not_change_or_shrink() {
    let model = model(ANY).await;
    let grown = request(&[call("c1", "t"), result("c1", "ok")]);
    assert_eq!(ask(&model, &request(&[])).await.0, 200);
    assert_eq!(ask(&model, &grown).await.0, 200);

    let mut rewritten = grown.clone();
    rewritten["messages"][3]["content"] = json!("changed");
    for (body, why) in [(rewritten, "messages[3] differs"), (request(&[]), "messages[2] differs")] {
        let (status, answer) = ask(&model, &body).await;
        assert_eq!(status, 400);
        assert!(answer["error"]["message"].as_str().unwrap().starts_with(why), "{answer}");
    }
    // Later requests are not compared with a refused request.
    assert_eq!(ask(&model, &grown).await.0, 200);
    let mut other_job = request(&[]);
    other_job["user"] = json!("job-2");
    assert_eq!(ask(&model, &other_job).await.0, 200);
}

#[tokio::test]
async fn a_result_may_be_replaced_by_its_excerpt() {
    let model = model(ANY).await;
    let excerpt = format!("so\n[Read more of it with focus_read, handle sha256:{}.]", "0".repeat(64));
    assert_eq!(ask(&model, &request(&[call("c1", "t"), result("c1", &"so ".repeat(100))])).await.0, 200);
    assert_eq!(ask(&model, &request(&[call("c1", "t"), result("c1", &excerpt)])).await.0, 200);
    assert_eq!(ask(&model, &request(&[call("c1", "t"), result("c1", "so")])).await.0, 400);
}

#[tokio::test]
async fn the_order_of_keys_does_not_matter() {
    let model = model(ANY).await;
    let url = format!("{}/v1/chat/completions", model.url());
    let bodies = [
        r#"{"model":"m","user":"j","messages":[{"role":"system","content":"s"}]}"#,
        r#"{"user":"j","messages":[{"content":"s","role":"system"}],"model":"m"}"#,
    ];
    for body in bodies {
        let answer = crate::http::client().unwrap().post(&url).body(body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
}

#[tokio::test]
async fn changed_tools_are_a_violation() {
    let model = model(ANY).await;
    ask(&model, &request(&[])).await;
    let mut body = request(&[]);
    body["tools"].as_array_mut().unwrap().pop();
    ask(&model, &body).await;

    let violations: Violations = control(&model, "violations").await;
    assert_eq!((violations.total, violations.violations[0].rule), (1, Rule::SameTools));
}
