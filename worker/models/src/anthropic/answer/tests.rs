use super::*;
use rstest::rstest;

fn answer_with(content: &Value) -> Answer {
    read(json!({"type": "message", "content": content, "stop_reason": "end_turn"}).to_string().as_bytes()).unwrap()
}

/// The answer is that of the provider's documentation for reasoning and a call.
#[test]
fn an_answer_is_read_and_reasoning_is_verbatim() {
    let content = json!([
        {"type": "thinking", "thinking": "The user wants a refund.", "signature": "EqQBCgIYAhIM=="},
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3"},
        {"type": "text", "text": "I look it up.", "citations": null},
        {"type": "tool_use", "id": "toolu_01D7", "name": "get_order", "input": {"id": "A-17"}, "caller": {"type": "direct"}},
    ]);
    let body = json!({
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": content,
        "stop_reason": "tool_use", "stop_sequence": null, "container": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000,
            "output_tokens": 40, "service_tier": "standard"},
    });
    let answer = read(body.to_string().as_bytes()).unwrap();
    let mut kept = content;
    kept[2].as_object_mut().unwrap().remove("citations");
    assert_eq!(answer.message, json!({"role": "assistant", "content": kept}));
    assert_eq!((answer.provider, answer.text.as_str(), answer.cut), (ModelProvider::Anthropic, "I look it up.", false));
    let call = RequestedCall {
        id: "toolu_01D7".into(),
        name: "get_order".into(),
        arguments: r#"{"id":"A-17"}"#.into(),
        secrets: Vec::new(),
    };
    assert_eq!(answer.calls, [call]);
    assert_eq!((answer.input_tokens, answer.cached_tokens, answer.output_tokens), (Some(3210), Some(3000), Some(40)));
    assert_eq!(text_and_calls(&answer.message), (answer.text, answer.calls));
}

#[rstest]
#[case("end_turn", false)]
#[case("max_tokens", true)]
#[case("model_context_window_exceeded", true)]
#[case("pause_turn", true)]
#[case("stop_sequence", false)]
fn an_answer_that_stopped_early_is_marked_as_cut(#[case] reason: &str, #[case] cut: bool) {
    let body = json!({"content": [{"type": "text", "text": "Half"}], "stop_reason": reason});
    assert_eq!(read(body.to_string().as_bytes()).unwrap().cut, cut);
}

#[test]
fn an_answer_that_the_filter_stopped_is_an_error() {
    let details = json!({"type": "refusal", "category": "cyber", "explanation": "It would help an attack."});
    let body = json!({"content": [], "stop_reason": "refusal", "stop_details": details});
    let reason = "refusal: cyber: It would help an attack.".to_owned();
    assert_eq!(read(body.to_string().as_bytes()), Err(Error::Filtered { reason }));
}

/// Parsers may disagree on these arguments. The engine parses the text and decides.
#[rstest]
#[case::a_key_twice(r#"{"amount":1,"amount":900}"#)]
#[case::a_number_that_is_not_exact(r#"{"order":18446744073709551616}"#)]
#[case::not_an_object("[1]")]
#[case::a_number_that_no_float_holds(r#"{"amount":1e400}"#)]
#[case::no_json(r#"{"amount":01}"#)]
#[case::deeper_than_a_parser_goes(&format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200)))]
#[case::too_deep(&format!(r#"{{"a":{}{}}}"#, "[".repeat(40), "]".repeat(40)))]
fn invalid_arguments_are_kept_as_the_model_wrote_them(#[case] input: &str) {
    let body = format!(r#"{{"content":[{{"type":"tool_use","id":"a","name":"f","input":{input}}}]}}"#);
    let answer = read(body.as_bytes()).unwrap();
    assert_eq!(answer.calls[0].arguments, input);
    assert_eq!(answer.message["content"][0]["input"], json!({"INVALID_JSON": input}));
    assert_eq!(text_and_calls(&answer.message).1[0].arguments, input);
}

#[rstest]
#[case::nothing(json!([]), json!([{"type": "text", "text": "(no words)"}]))]
#[case::blank(json!([{"type": "text", "text": " \n"}]), json!([{"type": "text", "text": "(no words)"}]))]
#[case::only_reasoning(
    json!([{"type": "thinking", "thinking": "", "signature": "x"}]),
    json!([{"type": "thinking", "thinking": "", "signature": "x"}, {"type": "text", "text": "(no words)"}])
)]
#[case::of_another_kind(json!([{"type": "new", "x": null, "y": 1}]), json!([{"type": "new", "y": 1}]))]
fn the_message_is_kept_except_for_parts_that_the_provider_rejects(#[case] content: Value, #[case] kept: Value) {
    let answer = answer_with(&content);
    assert_eq!(answer.message["content"], kept);
    let logged: Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    assert_eq!((logged.message.to_string(), &logged), (answer.message.to_string(), &answer));
}

#[rstest]
#[case("", "not a message")]
#[case("[]", "no content")]
#[case("{}", "no content")]
#[case(r#"{"content":"x"}"#, "not a message")]
#[case(r#"{"content":[1]}"#, "not a message")]
#[case(r#"{"content":[{"type":"tool_use","name":"f","input":{}}]}"#, "no id")]
#[case(r#"{"content":[{"type":"tool_use","id":"a","input":{}}]}"#, "no name")]
#[case(r#"{"content":[{"type":"tool_use","id":"a","name":"f"},{"type":"tool_use","id":"a","name":"f"}]}"#, "same id")]
#[case(r#"{"content":[],"content":[]}"#, "duplicate field")]
#[case(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded")]
fn the_error_of_an_unreadable_answer_states_the_reason(#[case] body: &str, #[case] reason: &str) {
    let error = format!("{:?}", read(body.as_bytes()).unwrap_err());
    assert!(error.contains(reason), "{error}");
}

#[rstest]
#[case("7", (None, None, None))]
#[case(r#"{"input_tokens":-1,"output_tokens":3}"#, (None, None, Some(3)))]
#[case(r#"{"input_tokens":10.0,"cache_read_input_tokens":"many","output_tokens":3}"#, (Some(10), None, Some(3)))]
fn an_invalid_token_count_is_ignored(#[case] usage: &str, #[case] expected: (Option<u64>, Option<u64>, Option<u64>)) {
    let answer = read(format!(r#"{{"content":[],"usage":{usage}}}"#).as_bytes()).unwrap();
    assert_eq!((answer.input_tokens, answer.cached_tokens, answer.output_tokens), expected);
}

#[test]
fn an_answer_with_too_many_calls_or_levels_is_unreadable() {
    let call = |n: usize| json!({"type": "tool_use", "id": format!("c{n}"), "name": "t", "input": {}});
    let many: Vec<Value> = (0..200).map(call).collect();
    let deep = (0..40).fold(json!({}), |deep, _| json!([deep]));
    for content in [json!(many), json!([{"type": "new", "x": deep}])] {
        assert!(read(json!({"content": content}).to_string().as_bytes()).is_err());
    }
}

proptest::proptest! {
    #[test]
    fn no_body_makes_the_reader_panic(
        body in "(\\{|\\}|\\[|\\]|\"content\"|\"input\"|\"type\"|\"tool_use\"|\"text\"|\"thinking\"|\"id\"|:|,|1|\"|é){0,40}",
    ) {
        if let Ok(answer) = read(body.as_bytes()) {
            proptest::prop_assert_eq!(text_and_calls(&answer.message).1.len(), answer.calls.len());
        }
    }
}
