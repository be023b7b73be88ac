use super::*;
use crate::MAX_ANSWER_BYTES;
use crate::openai::answer::read;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

/// Reads the data of events. Returns `None` if the last event is missing.
fn read_events(events: &[String]) -> Option<Result<Answer, Error>> {
    let mut answer = Box::<StreamedAnswer>::default();
    for data in events {
        match answer.push(data) {
            Ok(true) => return Some(answer.finish()),
            Ok(false) => {}
            Err(error) => return Some(Err(error)),
        }
    }
    None
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5", "system_fingerprint": "fp",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}], "usage": null})
    .to_string()
}

fn usage() -> String {
    json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 8}}})
    .to_string()
}

fn done() -> String {
    " [DONE]".to_owned()
}

/// The events are those of the provider's documentation for two parallel calls.
#[test]
fn calls_and_usage_are_assembled() {
    let call = |index: u64, part: Value| json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]});
    let first = |index: u64, id: &str, name: &str| json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]});
    let events = [
        chunk(&json!({"role": "assistant", "content": null, "refusal": null}), None),
        chunk(&first(0, "call_a", "refund"), None),
        chunk(&call(0, json!("{\"amount\":1,")), None),
        chunk(&first(1, "call_b", "note"), None),
        chunk(&call(0, json!("\"amount\":900}")), None),
        chunk(&call(1, json!("{}")), None),
        chunk(&json!({}), Some("tool_calls")),
        usage(),
        done(),
    ];
    let answer = read_events(&events).unwrap().unwrap();
    let called: Vec<_> =
        answer.calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(called, [("call_a", "refund", "{\"amount\":1,\"amount\":900}"), ("call_b", "note", "{}")]);
    assert_eq!((answer.input_tokens, answer.cached_tokens, answer.output_tokens), (Some(12), Some(8), Some(3)));
    let call = &answer.message["tool_calls"][0];
    assert_eq!(
        call,
        &json!({"id": "call_a", "type": "function", "function": {"name": "refund", "arguments": "{\"amount\":1,\"amount\":900}"}})
    );
    assert_eq!(answer.message["content"], Value::Null);
}

#[test]
fn unknown_fields_are_assembled_for_later_requests() {
    let details = |text: &str| json!({"reasoning_details": [{"index": 0, "type": "reasoning.text", "text": text, "signature": null}]});
    let events = [
        chunk(&json!({"role": "assistant", "reasoning_content": "Let "}), None),
        chunk(&json!({"reasoning_content": "me see."}), None),
        chunk(&details("Let "), None),
        chunk(&details("me see."), None),
        chunk(&json!({"role": "assistant", "content": "Ye"}), None),
        chunk(&json!({"role": "assistant", "content": "s"}), Some("stop")),
        done(),
    ];
    let answer = read_events(&events).unwrap().unwrap();
    let details = json!([{"index": 0, "type": "reasoning.text", "text": "Let me see."}]);
    let message = json!({"role": "assistant", "content": "Yes", "reasoning_content": "Let me see.", "reasoning_details": details});
    assert_eq!(answer.message, message);
    assert_eq!((answer.text.as_str(), answer.input_tokens), ("Yes", None));
}

#[rstest]
#[case::ids_in_every_delta(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#, r#"{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}"#])]
#[case::no_index(&[r#"{"id":"a","function":{"name":"f","arguments":"{"}}"#, r#"{"function":{"arguments":"}"}}"#])]
#[case::a_new_id_in_every_delta(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#, r#"{"index":0,"id":"b","function":{"arguments":"}"}}"#])]
#[case::an_id_in_a_later_delta(&[r#"{"index":0,"function":{"name":"f","arguments":"{"}}"#, r#"{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}"#])]
#[case::a_name_in_a_later_delta(&[r#"{"index":0,"id":"a","function":{"name":"","arguments":"{"}}"#, r#"{"index":0,"id":"","function":{"name":"f","arguments":"}"}}"#])]
fn deviations_of_compatible_servers_are_accepted(#[case] deltas: &[&str]) {
    let delta = |delta: &&str| chunk(&json!({"tool_calls": [serde_json::from_str::<Value>(delta).unwrap()]}), None);
    let events: Vec<String> = deltas.iter().map(delta).chain([done()]).collect();
    let answer = read_events(&events).unwrap().unwrap();
    let [call] = answer.calls.as_slice() else { panic!("{answer:?}") };
    assert_eq!((call.id.as_str(), call.name.as_str(), call.arguments.as_str()), ("a", "f", "{}"));
}

/// Some compatible servers stream parallel calls like this.
#[test]
fn calls_with_the_same_index_and_different_ids_are_separate() {
    let call = |id: &str, arguments: &str| json!({"index": 0, "id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let more = json!({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]});
    let events = [
        chunk(&json!({"tool_calls": [call("a", "{}"), call("b", "{")]}), None),
        chunk(&more, Some("tool_calls")),
        done(),
    ];
    let answer = read_events(&events).unwrap().unwrap();
    let called: Vec<_> = answer.calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(called, [("a", "{}"), ("b", "{}")]);
}

#[rstest]
#[case::an_error(vec![chunk(&json!({"content": "Ha"}), None), json!({"error": {"code": 502, "message": "Upstream"}}).to_string()], "Upstream")]
#[case::no_json(vec!["<html>".to_owned()], "not a chunk")]
#[case::nothing(vec![done()], "no choice")]
#[case::no_choice(vec![usage(), done()], "no choice")]
#[case::filtered(vec![chunk(&json!({"content": "Ha"}), Some("content_filter")), done()], "content_filter")]
#[case::too_many_calls((0..200).map(|n| chunk(&json!({"tool_calls": [{"index": n, "id": n.to_string()}]}), None)).collect(), "too long")]
fn the_error_of_an_invalid_stream_states_the_reason(#[case] events: Vec<String>, #[case] reason: &str) {
    let error = format!("{:?}", read_events(&events).unwrap().unwrap_err());
    assert!(error.contains(reason), "{error}");
}

#[test]
fn a_stream_without_its_last_event_has_no_answer() {
    assert_eq!(read_events(&[chunk(&json!({"content": "Yes"}), Some("stop")), usage()]), None);
}

#[test]
fn size_counts_the_buffered_bytes() {
    let mut answer = StreamedAnswer::default();
    let events = [json!({"content": "x".repeat(MAX_ANSWER_BYTES)}), json!({"other": ["y"]})];
    for delta in events {
        answer.push(&chunk(&delta, None)).unwrap();
    }
    assert!(answer.size() > MAX_ANSWER_BYTES);
}

proptest! {
    /// The division into deltas does not matter.
    #[test]
    fn a_streamed_answer_equals_a_whole_one(text in "[a-z\"\\\\{é]{0,30}", arguments in "[a-z\"{}]{0,30}", size in 1..8_usize) {
        let message = json!({"role": "assistant", "content": text, "reasoning": arguments, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}]});
        let whole = read(json!({"choices": [{"message": message, "finish_reason": "length"}]}).to_string().as_bytes());
        let pieces = |text: &str| text.chars().collect::<Vec<_>>().chunks(size).map(|content| content.iter().collect()).collect::<Vec<String>>();
        let mut deltas = vec![json!({"role": "assistant", "content": "", "reasoning": "", "tool_calls": [
            {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]})];
        deltas.extend(pieces(&text).into_iter().map(|content| json!({"content": content})));
        deltas.extend(pieces(&arguments).into_iter().map(|content| json!({"reasoning": content, "tool_calls": [{"index": 0, "function": {"arguments": content}}]})));
        let mut events: Vec<String> = deltas.iter().map(|delta| chunk(delta, None)).collect();
        events.push(chunk(&json!({}), Some("length")));
        events.push(done());
        prop_assert_eq!(read_events(&events), Some(whole));
    }

    #[test]
    fn no_event_makes_the_reader_panic(data in "(\\{|\\}|\\[|\\]|\"choices\"|\"delta\"|\"tool_calls\"|\"index\"|\"id\"|:|,|0|\"|é){0,40}") {
        let _ = read_events(&[data, done()]);
    }
}
