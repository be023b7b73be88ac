//! Answers that no model means: too deep, too long, doubled, cut, and near to one that could be read.

use super::*;
use crate::protocol::MAX_CALLS;
use proptest::prelude::*;
use rstest::rstest;
use std::collections::BTreeSet;

fn body(message: &str) -> String {
    format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#)
}

/// On the stack of a small thread: a reader that recurses as deep as its input would end the process.
#[rstest]
#[case::of_the_body("")]
#[case::of_the_choices("{\"choices\":")]
#[case::of_the_message("{\"choices\":[{\"message\":")]
#[case::of_the_content("{\"choices\":[{\"message\":{\"content\":")]
#[case::of_a_call("{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"a\",\"function\":")]
#[case::of_what_nobody_reads("{\"choices\":[],\"x\":")]
#[case::of_the_error("{\"error\":")]
fn nesting_without_an_end_cannot_be_read(#[case] beginning: &'static str) {
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
fn a_field_of_the_answer_that_stands_twice_cannot_be_read(#[case] body: &str) {
    let no_answer = format!("{:?}", read(body.as_bytes()).unwrap_err());
    assert!(no_answer.contains("duplicate field"), "{body}");
}

/// Tokens that were not told are counted by what was set aside for them.
#[rstest]
#[case::a_number("7", (None, None, None))]
#[case::a_text(r#""much""#, (None, None, None))]
#[case::negative(r#"{"prompt_tokens":-1,"completion_tokens":3}"#, (None, None, Some(3)))]
#[case::texts(r#"{"prompt_tokens":"12","completion_tokens":{}}"#, (None, None, None))]
#[case::a_part(r#"{"prompt_tokens":1.5,"completion_tokens":3}"#, (None, None, Some(3)))]
#[case::more_than_there_are(r#"{"prompt_tokens":18446744073709551616}"#, (None, None, None))]
#[case::as_a_float(r#"{"prompt_tokens":12.0,"completion_tokens":3}"#, (Some(12), None, Some(3)))]
#[case::strange_details(r#"{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":7}"#, (Some(12), None, Some(3)))]
fn an_answer_stands_whatever_is_told_of_its_tokens(
    #[case] usage: &str,
    #[case] expected: (Option<u64>, Option<u64>, Option<u64>),
) {
    let answer =
        read(format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#).as_bytes()).unwrap();
    assert_eq!((answer.input_tokens, answer.cached_tokens, answer.output_tokens), expected);
}

/// The message is the provider's own and kept whole: what counts in it is what every later request shows of it.
#[rstest]
#[case::the_content(r#"{"content":"a","content":"b"}"#, "b", &[])]
#[case::by_an_escape(r#"{"content":"a","c\u006fntent":"b"}"#, "b", &[])]
#[case::the_calls(
    r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}],"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}"#,
    "",
    &["g"]
)]
#[case::the_name(r#"{"tool_calls":[{"id":"a","function":{"name":"f","name":"g","arguments":"{}"}}]}"#, "", &["g"])]
fn what_is_read_of_a_message_is_what_is_kept_of_it(#[case] message: &str, #[case] text: &str, #[case] calls: &[&str]) {
    let answer = read(body(message).as_bytes()).unwrap();
    assert_eq!(answer.text, text);
    assert_eq!(answer.calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), calls);
    let kept = read(body(&answer.message.to_string()).as_bytes()).unwrap();
    assert_eq!((kept.text, kept.calls), (answer.text, answer.calls));
}

/// What two readers could take for two calls is not decided here: it stays as the model wrote it, for the one reader
/// of arguments.
#[test]
fn arguments_with_a_hidden_field_are_handed_on_as_they_are() {
    let arguments = r#"{"amount":1,"\u0061mount":900}"#;
    let message = json!({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": arguments}}]});
    assert_eq!(read(body(&message.to_string()).as_bytes()).unwrap().calls[0].arguments, arguments);
}

#[rstest]
#[case::a_surrogate_alone(r#"{"choices":[{"message":{"content":"\ud800"}}]}"#)]
#[case::a_number_beyond_all_others(r#"{"choices":[{"message":{"x":1e999}}]}"#)]
fn what_json_can_say_and_we_cannot_is_not_read(#[case] body: &str) {
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

/// What is read goes through the log, and into the next request, without a change.
fn is_sound(body: &str) -> Result<(), TestCaseError> {
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
    fn whatever_is_near_an_answer_is_read_whole_or_not_at_all(message in value(), whole in value()) {
        is_sound(&body(&message.to_string()))?;
        is_sound(&whole.to_string())?;
    }

    #[test]
    fn an_answer_that_was_cut_off_cannot_be_read(message in value(), at in any::<prop::sample::Index>()) {
        let body = body(&message.to_string());
        let cut = body.get(..at.index(body.len())).unwrap_or_default();
        prop_assert!(read(cut.as_bytes()).is_err());
    }
}
