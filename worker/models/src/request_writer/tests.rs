use super::*;
use crate::fixture::{claude, earlier_answer, endpoint, request, tool};
use crate::optional_fields::OptionalField;
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::step::ModelRequest;
use proptest::prelude::*;
use serde_json::{Value, json};

fn written(writer: &mut RequestWriter, endpoint: &ModelEndpoint, turns: &[Turn], number: u32) -> String {
    let tools = [tool()];
    let request = ModelRequest { tools: &tools, turns_version: number, temperature: Some(0.7), ..request(turns) };
    let body = writer.next_body(RequestContext {
        endpoint,
        user: "uid-1",
        request: &request,
        unsupported: &UnsupportedFields::default(),
    });
    String::from_utf8(body.unwrap().to_vec()).unwrap()
}

/// Writes a request without an earlier one to extend.
fn written_from_the_beginning(endpoint: &ModelEndpoint, turns: &[Turn]) -> String {
    written(&mut RequestWriter::default(), endpoint, turns, 0)
}

/// Generates conversations in the form of the engine: answers, the results of their calls, and texts of the user.
fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let step = (any::<bool>(), 0..3_usize, any::<bool>()).prop_map(|(by_claude, calls, has_text)| {
        let answer = if by_claude {
            let call = |n| json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": "f", "input": {"n": n}});
            let text = json!({"type": "text", "text": "I look."});
            let content: Vec<Value> = std::iter::once(text).chain((0..calls).map(call)).collect();
            earlier_answer(ModelProvider::Anthropic, "claude", &json!({"role": "assistant", "content": content}))
        } else {
            let function = json!({"name": "f", "arguments": "{}"});
            let call = |n| json!({"id": format!("toolu_{n}"), "type": "function", "function": function});
            let message =
                json!({"role": "assistant", "content": "x", "tool_calls": (0..calls).map(call).collect::<Vec<_>>()});
            earlier_answer(ModelProvider::Openai, "default", &message)
        };
        let results = (0..calls).map(|n| Turn::ToolResult { id: format!("toolu_{n}"), text: "paid".into() });
        let text = (has_text || calls == 0).then(|| Turn::User("Go on.".into()));
        std::iter::once(answer).chain(results).chain(text).collect::<Vec<Turn>>()
    });
    prop::collection::vec(step, 0..6).prop_map(|steps| {
        std::iter::once(Turn::User("Refund A-17".into())).chain(steps.into_iter().flatten()).collect()
    })
}

/// Checks that every call has exactly one result, before the next answer.
fn assert_calls_have_results(body: &str) {
    let body: Value = serde_json::from_str(body).unwrap();
    let mut open = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        let results = blocks.iter().filter_map(|block| block.get("tool_use_id")).chain(message.get("tool_call_id"));
        for id in results {
            let at = open.iter().position(|known| known == id).expect("a result without a call");
            open.remove(at);
        }
        if message["role"] == "assistant" {
            assert!(open.is_empty(), "{open:?}");
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            let used = blocks.iter().filter(|block| block["type"] == "tool_use");
            open = used.chain(&calls).map(|call| call["id"].clone()).collect();
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

proptest! {
    #[test]
    fn a_request_begins_with_the_bytes_of_the_previous_one_and_extending_does_not_change_it(turns in turns()) {
        for endpoint in [endpoint("http://x"), claude("http://x")] {
            let mut writer = RequestWriter::default();
            let mut previous = String::new();
            for n in 1..=turns.len() {
                let body = written(&mut writer, &endpoint, &turns[..n], 0);
                prop_assert_eq!(&body, &written_from_the_beginning(&endpoint, &turns[..n]));
                prop_assert_eq!(&body, &written(&mut writer, &endpoint, &turns[..n], 0), "the request was repeated");
                prop_assert!(body.starts_with(previous.trim_end_matches(['}', ']'])), "{previous}\n{body}");
                previous = body;
            }
            assert_calls_have_results(&previous);
        }
    }
}

#[test]
fn the_first_request_of_another_conversation_does_not_extend_the_latest_one() {
    let gpt = endpoint("http://127.0.0.1:1");
    let mut writer = RequestWriter::default();
    written(&mut writer, &gpt, &[Turn::User("Refund A-17".into())], 0);
    let other = [Turn::User("Where is A-18?".into())];
    assert_eq!(written(&mut writer, &gpt, &other, 0), written_from_the_beginning(&gpt, &other));
}

#[test]
fn another_version_of_the_turns_is_written_from_the_beginning() {
    let result = |text: &str| Turn::ToolResult { id: "c1".into(), text: text.into() };
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": "x", "tool_calls": [call]});
    let answer = earlier_answer(ModelProvider::Openai, "default", &message);
    let mut turns = vec![Turn::User("Refund A-17".into()), answer, result("long")];
    let mut writer = RequestWriter::default();
    let before = written(&mut writer, &endpoint("http://x"), &turns, 0);
    turns[2] = result("cut");
    assert_eq!(
        written(&mut writer, &endpoint("http://x"), &turns, 0),
        before,
        "without a new version, earlier turns are not written again"
    );
    assert_eq!(
        written(&mut writer, &endpoint("http://x"), &turns, 1),
        written_from_the_beginning(&endpoint("http://x"), &turns)
    );
}

#[test]
fn a_rejected_field_is_removed_from_the_next_request() {
    let mut writer = RequestWriter::default();
    let (endpoint, request) = (endpoint("http://x"), request(&[]));
    let mut unsupported = UnsupportedFields::default();
    let context = RequestContext { endpoint: &endpoint, user: "uid-1", request: &request, unsupported: &unsupported };
    assert!(String::from_utf8_lossy(&writer.next_body(context).unwrap()).contains("stream_options"));
    unsupported.add(OptionalField::StreamUsage);
    let context = RequestContext { endpoint: &endpoint, user: "uid-1", request: &request, unsupported: &unsupported };
    assert!(!String::from_utf8_lossy(&writer.next_body(context).unwrap()).contains("stream_options"));
}

#[test]
fn an_answer_without_a_model_name_belongs_to_any_model_of_its_provider() {
    let message = json!({"role": "assistant", "content": "x", "reasoning": "hm"});
    let answer = |provider| Turn::Assistant(ModelMessage { message: message.to_string(), provider, model: None });
    assert!(written_from_the_beginning(&endpoint("http://x"), &[answer(ModelProvider::Openai)]).contains("reasoning"));
    assert!(!written_from_the_beginning(&claude("http://x"), &[answer(ModelProvider::Openai)]).contains("reasoning"));
}
