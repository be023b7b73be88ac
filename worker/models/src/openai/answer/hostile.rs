//! Tests with hostile and arbitrary answers: nested too deep, with duplicate fields, cut off, or almost valid.

use super::*;
use crate::protocol::MAX_CALLS;
use proptest::prelude::*;
use rstest::rstest;
use std::collections::BTreeSet;

fn body(message: &str) -> String {
    format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#)
}

/// The test runs on a small stack, which a parser that recurses without a limit would overflow.
#[rstest]
#[case::in_the_body("")]
#[case::in_the_choices("{\"choices\":")]
#[case::in_the_message("{\"choices\":[{\"message\":")]
#[case::in_the_content("{\"choices\":[{\"message\":{\"content\":")]
#[case::in_a_call("{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"a\",\"function\":")]
#[case::in_an_unknown_field("{\"choices\":[],\"x\":")]
#[case::in_the_error("{\"error\":")]
fn endless_nesting_is_unreadable(#[case] beginning: &'static str) {
    let read_all = move || {
        for part in ["[", "{\"a\":", "[{\"a\":"] {
            let body = format!("{beginning}{}", part.repeat(crate::MAX_ANSWER_BYTES / 2 / part.len()));
            assert!(read(body.as_bytes()).is_err());
        }
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(read_all).unwrap().join().unwrap();
}

#[rstest]
#[case::choices(r#"{"choices":[],"choices":[{"message":{"content":"x"}}]}"#)]
#[case::the_message(r#"{"choices":[{"message":{"content":"x"},"message":{"content":"y"}}]}"#)]
#[case::the_usage(r#"{"choices":[{"message":{"content":"x"}}],"usage":{},"usage":{}}"#)]
#[case::an_error(r#"{"error":null,"error":"quota","choices":[{"message":{"content":"x"}}]}"#)]
fn a_duplicate_field_is_unreadable(#[case] body: &str) {
    let error = format!("{:?}", read(body.as_bytes()).unwrap_err());
    assert!(error.contains("duplicate field"), "{body}");
}

/// The engine estimates a missing count.
#[rstest]
#[case::a_number("7", (None, None, None))]
#[case::a_text(r#""much""#, (None, None, None))]
#[case::negative(r#"{"prompt_tokens":-1,"completion_tokens":3}"#, (None, None, Some(3)))]
#[case::texts(r#"{"prompt_tokens":"12","completion_tokens":{}}"#, (None, None, None))]
#[case::a_fraction(r#"{"prompt_tokens":1.5,"completion_tokens":3}"#, (None, None, Some(3)))]
#[case::beyond_64_bits(r#"{"prompt_tokens":18446744073709551616}"#, (None, None, None))]
#[case::as_a_float(r#"{"prompt_tokens":12.0,"completion_tokens":3}"#, (Some(12), None, Some(3)))]
#[case::details_of_another_type(r#"{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":7}"#, (Some(12), None, Some(3)))]
fn an_invalid_token_count_is_ignored(#[case] usage: &str, #[case] expected: (Option<u64>, Option<u64>, Option<u64>)) {
    let answer =
        read(format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#).as_bytes()).unwrap();
    assert_eq!((answer.input_tokens, answer.cached_tokens, answer.output_tokens), expected);
}

/// Of duplicate fields within the message, the last one counts, for the answer and for the message in later requests.
#[rstest]
#[case::the_content(r#"{"content":"a","content":"b"}"#, "b", &[])]
#[case::by_an_escape(r#"{"content":"a","c\u006fntent":"b"}"#, "b", &[])]
#[case::the_calls(
    r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}"#,
    "",
    &["g"]
)]
#[case::the_name(r#"{"tool_calls":[{"id":"a","function":{"name":"f","name":"g","arguments":"{}"}}]}"#, "", &["g"])]
fn the_answer_and_the_kept_message_agree_on_duplicate_fields(
    #[case] message: &str,
    #[case] text: &str,
    #[case] calls: &[&str],
) {
    let answer = read(body(message).as_bytes()).unwrap();
    assert_eq!(answer.text, text);
    assert_eq!(answer.calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), calls);
    let kept = read(body(&answer.message.to_string()).as_bytes()).unwrap();
    assert_eq!((kept.text, kept.calls), (answer.text, answer.calls));
}

/// Parsers may disagree on these arguments. The engine parses the text and decides.
#[test]
fn arguments_with_a_duplicate_field_are_kept_as_the_model_wrote_them() {
    let arguments = r#"{"amount":1,"\u0061mount":900}"#;
    let message = json!({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": arguments}}]});
    assert_eq!(read(body(&message.to_string()).as_bytes()).unwrap().calls[0].arguments, arguments);
}

#[rstest]
#[case::a_lone_surrogate(r#"{"choices":[{"message":{"content":"\ud800"}}]}"#)]
#[case::a_number_out_of_range(r#"{"choices":[{"message":{"x":1e999}}]}"#)]
fn values_that_rust_cannot_represent_are_unreadable(#[case] body: &str) {
    assert!(read(body.as_bytes()).is_err(), "{body}");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[ -~é\\u{0}]{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["assistant", "function", "length", "{}", "a"]).prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "choices",
        "message",
        "content",
        "tool_calls",
        "id",
        "type",
        "function",
        "name",
        "arguments",
        "text",
        "refusal",
        "finish_reason",
        "usage",
        "prompt_tokens",
        "completion_tokens",
        "error",
        "role",
    ]);
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Checks that an answer, if it can be read, is valid and does not change in the event log.
fn check_answer(body: &str) -> Result<(), TestCaseError> {
    let Ok(answer) = read(body.as_bytes()) else { return Ok(()) };
    let logged: Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    prop_assert_eq!(logged.message.to_string(), answer.message.to_string());
    prop_assert_eq!(&logged, &answer);
    prop_assert_eq!(&answer.message["role"], "assistant");
    prop_assert!(depth(&answer.message) <= MAX_DEPTH);
    let ids: BTreeSet<&str> = answer.calls.iter().map(|call| call.id.as_str()).collect();
    prop_assert!(ids.len() == answer.calls.len() && answer.calls.len() <= MAX_CALLS);
    Ok(())
}

proptest! {
    #[test]
    fn an_arbitrary_body_is_a_valid_answer_or_unreadable(message in value(), whole in value()) {
        check_answer(&body(&message.to_string()))?;
        check_answer(&whole.to_string())?;
    }

    #[test]
    fn an_answer_that_was_cut_off_is_unreadable(message in value(), at in any::<prop::sample::Index>()) {
        let body = body(&message.to_string());
        let cut = body.get(..at.index(body.len())).unwrap_or_default();
        prop_assert!(read(cut.as_bytes()).is_err());
    }
}
