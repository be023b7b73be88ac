use super::*;
use crate::MAX_ANSWER_BYTES;
use crate::openai::answer::read;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

/// Folds the data of events; none where they do not come to an end.
fn fold(events: &[String]) -> Option<Result<Answer, Error>> {
    let mut folded = Box::<StreamedAnswer>::default();
    for data in events {
        match folded.push(data) {
            Ok(true) => return Some(folded.finish()),
            Ok(false) => {}
            Err(no_answer) => return Some(Err(no_answer)),
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

/// As the provider documents the stream of two calls at once.
#[test]
fn calls_and_usage_are_gathered() {
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
    let answer = fold(&events).unwrap().unwrap();
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
fn fields_that_nobody_here_knows_grow_and_go_back() {
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
    let answer = fold(&events).unwrap().unwrap();
    let details = json!([{"index": 0, "type": "reasoning.text", "text": "Let me see."}]);
    let message = json!({"role": "assistant", "content": "Yes", "reasoning_content": "Let me see.", "reasoning_details": details});
    assert_eq!(answer.message, message);
    assert_eq!((answer.text.as_str(), answer.input_tokens), ("Yes", None));
}

#[rstest]
#[case::ids_in_every_delta(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#, r#"{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}"#])]
#[case::no_index(&[r#"{"id":"a","function":{"name":"f","arguments":"{"}}"#, r#"{"function":{"arguments":"}"}}"#])]
#[case::another_id_in_every_delta(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#, r#"{"index":0,"id":"b","function":{"arguments":"}"}}"#])]
#[case::an_id_that_comes_later(&[r#"{"index":0,"function":{"name":"f","arguments":"{"}}"#, r#"{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}"#])]
#[case::a_name_that_is_empty_first(&[r#"{"index":0,"id":"a","function":{"name":"","arguments":"{"}}"#, r#"{"index":0,"id":"","function":{"name":"f","arguments":"}"}}"#])]
fn servers_that_differ_are_understood(#[case] deltas: &[&str]) {
    let delta = |delta: &&str| chunk(&json!({"tool_calls": [serde_json::from_str::<Value>(delta).unwrap()]}), None);
    let events: Vec<String> = deltas.iter().map(delta).chain([done()]).collect();
    let answer = fold(&events).unwrap().unwrap();
    let [call] = answer.calls.as_slice() else { panic!("{answer:?}") };
    assert_eq!((call.id.as_str(), call.name.as_str(), call.arguments.as_str()), ("a", "f", "{}"));
}

/// As some compatible servers stream calls that are made at once.
#[test]
fn whole_calls_of_one_index_are_apart() {
    let call = |id: &str, arguments: &str| json!({"index": 0, "id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let more = json!({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]});
    let events = [
        chunk(&json!({"tool_calls": [call("a", "{}"), call("b", "{")]}), None),
        chunk(&more, Some("tool_calls")),
        done(),
    ];
    let answer = fold(&events).unwrap().unwrap();
    let called: Vec<_> = answer.calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(called, [("a", "{}"), ("b", "{}")]);
}

#[rstest]
#[case::an_error(vec![chunk(&json!({"content": "Ha"}), None), json!({"error": {"code": 502, "message": "Upstream"}}).to_string()], "Upstream")]
#[case::no_json(vec!["<html>".to_owned()], "no chunk")]
#[case::nothing(vec![done()], "no choice")]
#[case::no_choice(vec![usage(), done()], "no choice")]
#[case::filtered(vec![chunk(&json!({"content": "Ha"}), Some("content_filter")), done()], "content_filter")]
#[case::too_many_calls((0..200).map(|n| chunk(&json!({"tool_calls": [{"index": n, "id": n.to_string()}]}), None)).collect(), "too long")]
fn what_is_no_answer_says_why(#[case] events: Vec<String>, #[case] why: &str) {
    let no_answer = format!("{:?}", fold(&events).unwrap().unwrap_err());
    assert!(no_answer.contains(why), "{no_answer}");
}

#[test]
fn a_stream_without_its_end_is_no_answer() {
    assert_eq!(fold(&[chunk(&json!({"content": "Yes"}), Some("stop")), usage()]), None);
}

#[test]
fn what_is_held_is_counted() {
    let mut folded = StreamedAnswer::default();
    let events = [json!({"content": "x".repeat(MAX_ANSWER_BYTES)}), json!({"other": ["y"]})];
    for delta in events {
        folded.push(&chunk(&delta, None)).unwrap();
    }
    assert!(folded.size() > MAX_ANSWER_BYTES);
}

proptest! {
    /// However it is cut into deltas, it is the same as the whole.
    #[test]
    fn a_stream_is_read_as_the_whole_would_be(text in "[a-z\"\\\\{é]{0,30}", arguments in "[a-z\"{}]{0,30}", size in 1..8_usize) {
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
        prop_assert_eq!(fold(&events), Some(whole));
    }

    #[test]
    fn nothing_that_a_server_sends_panics(data in "(\\{|\\}|\\[|\\]|\"choices\"|\"delta\"|\"tool_calls\"|\"index\"|\"id\"|:|,|0|\"|é){0,40}") {
        let _ = fold(&[data, done()]);
    }
}
