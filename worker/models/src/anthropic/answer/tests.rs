use super::*;
use rstest::rstest;

fn of(content: &Value) -> Answer {
    read(json!({"type": "message", "content": content, "stop_reason": "end_turn"}).to_string().as_bytes()).unwrap()
}

/// As the provider documents an answer with reasoning and a call.
#[test]
fn an_answer_is_read_and_reasoning_kept_to_the_letter() {
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
fn an_answer_that_is_not_whole_says_so(#[case] reason: &str, #[case] cut: bool) {
    let body = json!({"content": [{"type": "text", "text": "Half"}], "stop_reason": reason});
    assert_eq!(read(body.to_string().as_bytes()).unwrap().cut, cut);
}

#[test]
fn an_answer_that_the_filter_stopped_is_none() {
    let details = json!({"type": "refusal", "category": "cyber", "explanation": "It would help an attack."});
    let body = json!({"content": [], "stop_reason": "refusal", "stop_details": details});
    let why = "refusal: cyber: It would help an attack.".to_owned();
    assert_eq!(read(body.to_string().as_bytes()), Err(Error::Filtered { reason: why }));
}

/// Two readers could take them for two calls: they are left to the one reader of arguments.
#[rstest]
#[case::a_key_twice(r#"{"amount":1,"amount":900}"#)]
#[case::a_number_that_is_not_exact(r#"{"order":18446744073709551616}"#)]
#[case::no_object("[1]")]
#[case::a_number_that_no_float_holds(r#"{"amount":1e400}"#)]
#[case::no_json(r#"{"amount":01}"#)]
#[case::deeper_than_a_parser_goes(&format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200)))]
#[case::too_deep(&format!(r#"{{"a":{}{}}}"#, "[".repeat(40), "]".repeat(40)))]
fn arguments_are_handed_on_as_they_are_and_shown_to_the_model_as_it_wrote_them(#[case] input: &str) {
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
fn the_message_is_kept_but_for_what_cannot_be_sent(#[case] content: Value, #[case] kept: Value) {
    let answer = of(&content);
    assert_eq!(answer.message["content"], kept);
    let logged: Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    assert_eq!((logged.message.to_string(), &logged), (answer.message.to_string(), &answer));
}

#[rstest]
#[case("", "no message")]
#[case("[]", "no content")]
#[case("{}", "no content")]
#[case(r#"{"content":"x"}"#, "no message")]
#[case(r#"{"content":[1]}"#, "no message")]
#[case(r#"{"content":[{"type":"tool_use","name":"f","input":{}}]}"#, "no id")]
#[case(r#"{"content":[{"type":"tool_use","id":"a","input":{}}]}"#, "no name")]
#[case(r#"{"content":[{"type":"tool_use","id":"a","name":"f"},{"type":"tool_use","id":"a","name":"f"}]}"#, "same id")]
#[case(r#"{"content":[],"content":[]}"#, "duplicate field")]
#[case(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded")]
fn what_cannot_be_read_says_why(#[case] body: &str, #[case] why: &str) {
    let no_answer = format!("{:?}", read(body.as_bytes()).unwrap_err());
    assert!(no_answer.contains(why), "{no_answer}");
}

#[rstest]
#[case("7", (None, None, None))]
#[case(r#"{"input_tokens":-1,"output_tokens":3}"#, (None, None, Some(3)))]
#[case(r#"{"input_tokens":10.0,"cache_read_input_tokens":"many","output_tokens":3}"#, (Some(10), None, Some(3)))]
fn an_answer_stands_whatever_is_told_of_its_tokens(
    #[case] usage: &str,
    #[case] expected: (Option<u64>, Option<u64>, Option<u64>),
) {
    let answer = read(format!(r#"{{"content":[],"usage":{usage}}}"#).as_bytes()).unwrap();
    assert_eq!((answer.input_tokens, answer.cached_tokens, answer.output_tokens), expected);
}

#[test]
fn too_many_calls_and_too_deep_a_message_are_not_read() {
    let call = |n: usize| json!({"type": "tool_use", "id": format!("c{n}"), "name": "t", "input": {}});
    let many: Vec<Value> = (0..200).map(call).collect();
    let deep = (0..40).fold(json!({}), |deep, _| json!([deep]));
    for content in [json!(many), json!([{"type": "new", "x": deep}])] {
        assert!(read(json!({"content": content}).to_string().as_bytes()).is_err());
    }
}

proptest::proptest! {
    #[test]
    fn nothing_that_a_server_sends_panics(
        body in "(\\{|\\}|\\[|\\]|\"content\"|\"input\"|\"type\"|\"tool_use\"|\"text\"|\"thinking\"|\"id\"|:|,|1|\"|é){0,40}",
    ) {
        if let Ok(answer) = read(body.as_bytes()) {
            proptest::prop_assert_eq!(text_and_calls(&answer.message).1.len(), answer.calls.len());
        }
    }
}
