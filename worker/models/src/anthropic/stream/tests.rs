use super::*;
use crate::MAX_ANSWER_BYTES;
use crate::anthropic::answer::read;
use proptest::prelude::*;
use rstest::rstest;

/// Reads the data of events. Returns `None` if the last event is missing.
fn read_events(events: &[Value]) -> Option<Result<Answer, Error>> {
    let mut answer = Box::<StreamedAnswer>::default();
    for data in events {
        match answer.push(&data.to_string()) {
            Ok(true) => return Some(answer.finish()),
            Ok(false) => {}
            Err(error) => return Some(Err(error)),
        }
    }
    None
}

fn message_start() -> Value {
    let usage = json!({"input_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0, "output_tokens": 1});
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}})
}

fn block_start(index: usize, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn block_delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn block_stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

/// Returns the last two events of a message.
fn message_end(reason: &str) -> [Value; 2] {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    [json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 89}}), json!({"type": "message_stop"})]
}

fn input_delta(json: &str) -> Value {
    json!({"type": "input_json_delta", "partial_json": json})
}

/// The events are those of the provider's documentation for reasoning, text and a call.
#[test]
fn blocks_are_assembled_and_reasoning_is_verbatim() {
    let events = [
        message_start(),
        block_start(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        block_delta(0, &json!({"type": "thinking_delta", "thinking": "Let me "})),
        block_delta(0, &json!({"type": "thinking_delta", "thinking": "see."})),
        block_delta(0, &json!({"type": "signature_delta", "signature": "EqQBCgIYAhIM"})),
        block_stop(0),
        block_start(1, &json!({"type": "redacted_thinking", "data": "EmwKAhgB"})),
        block_stop(1),
        block_start(2, &json!({"type": "text", "text": ""})),
        block_delta(2, &json!({"type": "text_delta", "text": "I look "})),
        block_delta(2, &json!({"type": "text_delta", "text": "it up."})),
        block_delta(2, &json!({"type": "citations_delta", "citation": {"type": "char_location"}})),
        block_delta(2, &json!({"type": "some_new_delta", "x": 1})),
        block_stop(2),
        json!({"type": "some_new_event"}),
        block_start(3, &json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}})),
        block_delta(3, &input_delta("")),
        block_delta(3, &input_delta("{\"a\":1,\"a\"")),
        block_delta(3, &input_delta(":2}")),
        block_stop(3),
        block_start(4, &json!({"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}})),
        block_stop(4),
    ];
    let answer = read_events(&[&events[..], &message_end("tool_use")].concat()).unwrap().unwrap();
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
#[case::an_error(vec![message_start(), json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})], "Overloaded")]
#[case::a_block_out_of_place(vec![message_start(), block_start(1, &json!({"type": "text", "text": ""}))], "out of order")]
#[case::a_block_that_has_not_begun(vec![message_start(), block_delta(0, &input_delta("{}"))], "has not begun")]
#[case::no_beginning(vec![json!({"type": "message_stop"})], "before its first event")]
#[case::no_event(vec![json!({"kind": "x"})], "not an event")]
#[case::refused([vec![message_start()], message_end("refusal").to_vec()].concat(), "refusal")]
fn the_error_of_an_invalid_stream_states_the_reason(#[case] events: Vec<Value>, #[case] reason: &str) {
    let error = format!("{:?}", read_events(&events).unwrap().unwrap_err());
    assert!(error.contains(reason), "{error}");
}

#[test]
fn a_stream_without_its_last_event_has_no_answer() {
    let [delta, _] = message_end("end_turn");
    let text = block_start(0, &json!({"type": "text", "text": "Yes"}));
    assert_eq!(read_events(&[message_start(), text, block_stop(0), delta]), None);
}

#[test]
fn size_counts_the_buffered_bytes() {
    let mut answer = StreamedAnswer::default();
    for event in [
        message_start(),
        block_start(0, &json!({"type": "text", "text": ""})),
        block_delta(0, &json!({"type": "text_delta", "text": "x".repeat(MAX_ANSWER_BYTES)})),
    ] {
        answer.push(&event.to_string()).unwrap();
    }
    assert!(answer.size() > MAX_ANSWER_BYTES);
}

proptest! {
    /// The division into deltas does not matter.
    #[test]
    fn a_streamed_answer_equals_a_whole_one(text in "[a-z\"\\\\{é]{1,30}", order in "[a-z0-9]{0,12}", size in 1..8_usize) {
        let input = json!({"order": order}).to_string();
        let blocks = json!([{"type": "thinking", "thinking": text, "signature": "s"}, {"type": "text", "text": text},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"order": order}}]);
        let usage = json!({"input_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 0, "output_tokens": 89});
        let whole = read(json!({"content": blocks, "stop_reason": "tool_use", "usage": usage}).to_string().as_bytes());
        let pieces = |text: &str| text.chars().collect::<Vec<_>>().chunks(size).map(|content| content.iter().collect()).collect::<Vec<String>>();
        let mut events = vec![message_start(), block_start(0, &json!({"type": "thinking", "thinking": "", "signature": ""}))];
        events.extend(pieces(&text).iter().map(|content| block_delta(0, &json!({"type": "thinking_delta", "thinking": content}))));
        events.push(block_delta(0, &json!({"type": "signature_delta", "signature": "s"})));
        events.extend([block_stop(0), block_start(1, &json!({"type": "text", "text": ""}))]);
        events.extend(pieces(&text).iter().map(|content| block_delta(1, &json!({"type": "text_delta", "text": content}))));
        events.extend([block_stop(1), block_start(2, &json!({"type": "tool_use", "id": "a", "name": "f", "input": {}}))]);
        events.extend(pieces(&input).iter().map(|content| block_delta(2, &input_delta(content))));
        events.push(block_stop(2));
        events.extend(message_end("tool_use"));
        prop_assert_eq!(read_events(&events), Some(whole));
    }
}
