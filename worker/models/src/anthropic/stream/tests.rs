use super::*;
use crate::MAX_ANSWER_BYTES;
use crate::anthropic::answer::read;
use proptest::prelude::*;
use rstest::rstest;

fn fold(events: &[Value]) -> Option<Result<Answer, Error>> {
    let mut folded = Box::<StreamedAnswer>::default();
    for data in events {
        match folded.push(&data.to_string()) {
            Ok(true) => return Some(folded.finish()),
            Ok(false) => {}
            Err(no_answer) => return Some(Err(no_answer)),
        }
    }
    None
}

fn start() -> Value {
    let usage = json!({"input_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0, "output_tokens": 1});
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}})
}

fn begins(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn adds(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn ends(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stops(reason: &str) -> [Value; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    [json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 89}}), json!({"type": "message_stop"})]
}

fn partial(json: &str) -> Value {
    json!({"type": "input_json_delta", "partial_json": json})
}

/// As the provider documents a stream with reasoning, words and a call.
#[test]
fn blocks_are_gathered_and_reasoning_kept_to_the_letter() {
    let events = [
        start(),
        begins(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        adds(0, &json!({"type": "thinking_delta", "thinking": "Let me "})),
        adds(0, &json!({"type": "thinking_delta", "thinking": "see."})),
        adds(0, &json!({"type": "signature_delta", "signature": "EqQBCgIYAhIM"})),
        ends(0),
        begins(1, &json!({"type": "redacted_thinking", "data": "EmwKAhgB"})),
        ends(1),
        begins(2, &json!({"type": "text", "text": ""})),
        adds(2, &json!({"type": "text_delta", "text": "I look "})),
        adds(2, &json!({"type": "text_delta", "text": "it up."})),
        adds(2, &json!({"type": "citations_delta", "citation": {"type": "char_location"}})),
        adds(2, &json!({"type": "some_new_delta", "x": 1})),
        ends(2),
        json!({"type": "some_new_event"}),
        begins(3, &json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}})),
        adds(3, &partial("")),
        adds(3, &partial("{\"a\":1,\"a\"")),
        adds(3, &partial(":2}")),
        ends(3),
        begins(4, &json!({"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}})),
        ends(4),
    ];
    let answer = fold(&[&events[..], &stops("tool_use")].concat()).unwrap().unwrap();
    let content = json!([
        {"type": "thinking", "thinking": "Let me see.", "signature": "EqQBCgIYAhIM"},
        {"type": "redacted_thinking", "data": "EmwKAhgB"},
        {"type": "text", "text": "I look it up.", "citations": [{"type": "char_location"}]},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"INVALID_JSON": "{\"a\":1,\"a\":2}"}},
        {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
    ]);
    assert_eq!(answer.message, json!({"role": "assistant", "content": content}));
    let arguments: Vec<_> = answer.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, ["{\"a\":1,\"a\":2}", "{}"]);
    assert_eq!(
        (answer.text.as_str(), answer.input_tokens, answer.cached_tokens),
        ("I look it up.", Some(125), Some(100))
    );
    assert_eq!(answer.output_tokens, Some(89));
}

#[rstest]
#[case::an_error(vec![start(), json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})], "Overloaded")]
#[case::a_block_out_of_place(vec![start(), begins(1, &json!({"type": "text", "text": ""}))], "follow one another")]
#[case::a_block_that_has_not_begun(vec![start(), adds(0, &partial("{}"))], "has not begun")]
#[case::no_beginning(vec![json!({"type": "message_stop"})], "before it has begun")]
#[case::no_event(vec![json!({"kind": "x"})], "no event")]
#[case::refused([vec![start()], stops("refusal").to_vec()].concat(), "refusal")]
fn what_is_no_answer_says_why(#[case] events: Vec<Value>, #[case] why: &str) {
    let no_answer = format!("{:?}", fold(&events).unwrap().unwrap_err());
    assert!(no_answer.contains(why), "{no_answer}");
}

#[test]
fn a_stream_without_its_end_is_no_answer() {
    let [delta, _] = stops("end_turn");
    let text = begins(0, &json!({"type": "text", "text": "Yes"}));
    assert_eq!(fold(&[start(), text, ends(0), delta]), None);
}

#[test]
fn what_is_held_is_counted() {
    let mut folded = StreamedAnswer::default();
    for event in [
        start(),
        begins(0, &json!({"type": "text", "text": ""})),
        adds(0, &json!({"type": "text_delta", "text": "x".repeat(MAX_ANSWER_BYTES)})),
    ] {
        folded.push(&event.to_string()).unwrap();
    }
    assert!(folded.size() > MAX_ANSWER_BYTES);
}

proptest! {
    /// However it is cut into deltas, it is the same as the whole.
    #[test]
    fn a_stream_is_read_as_the_whole_would_be(text in "[a-z\"\\\\{é]{1,30}", order in "[a-z0-9]{0,12}", size in 1..8_usize) {
        let input = json!({"order": order}).to_string();
        let blocks = json!([{"type": "thinking", "thinking": text, "signature": "s"}, {"type": "text", "text": text},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"order": order}}]);
        let usage = json!({"input_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0, "output_tokens": 89});
        let whole = read(json!({"content": blocks, "stop_reason": "tool_use", "usage": usage}).to_string().as_bytes());
        let pieces = |text: &str| text.chars().collect::<Vec<_>>().chunks(size).map(|content| content.iter().collect()).collect::<Vec<String>>();
        let mut events = vec![start(), begins(0, &json!({"type": "thinking", "thinking": "", "signature": ""}))];
        events.extend(pieces(&text).iter().map(|content| adds(0, &json!({"type": "thinking_delta", "thinking": content}))));
        events.push(adds(0, &json!({"type": "signature_delta", "signature": "s"})));
        events.extend([ends(0), begins(1, &json!({"type": "text", "text": ""}))]);
        events.extend(pieces(&text).iter().map(|content| adds(1, &json!({"type": "text_delta", "text": content}))));
        events.extend([ends(1), begins(2, &json!({"type": "tool_use", "id": "a", "name": "f", "input": {}}))]);
        events.extend(pieces(&input).iter().map(|content| adds(2, &partial(content))));
        events.push(ends(2));
        events.extend(stops("tool_use"));
        prop_assert_eq!(fold(&events), Some(whole));
    }
}
