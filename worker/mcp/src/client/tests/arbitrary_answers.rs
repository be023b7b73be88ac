//! Whatever a server may say to a call: nothing panics, and nothing counts as an answer that is none.

use super::rude::{Rude, event, events, json};
use super::*;
use axum::response::{IntoResponse, Response};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Mutex;

/// What a server says, in either form of an answer.
#[derive(Debug, Clone)]
enum Said {
    /// A result for the call, or for another one.
    Result { is_ours: bool, result: Value },
    /// Any JSON.
    Json(Value),
    /// Any text.
    Text(String),
}

impl Said {
    fn response(&self, request: &Value, as_events: bool) -> Response {
        let value = match self {
            Self::Result { is_ours, result } => {
                let id = if *is_ours { request["id"].clone() } else { json!(999) };
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            }
            Self::Json(value) => value.clone(),
            Self::Text(text) if as_events => return events([format!("data: {text}\n\n")]),
            Self::Text(text) => return ([("content-type", "application/json")], text.clone()).into_response(),
        };
        if as_events { events([event(&value)]) } else { json(&value) }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~é\\u{0}]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "2.0",
            "text",
            "image",
            "resource",
            "resource_link",
            "tools/call",
            "input_required",
            "complete"
        ])
        .prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "jsonrpc",
        "id",
        "result",
        "error",
        "code",
        "message",
        "data",
        "method",
        "params",
        "content",
        "type",
        "text",
        "structuredContent",
        "isError",
        "_meta",
        "resource",
        "uri",
        "mimeType",
        "blob",
        "resultType",
        "requestState",
        "tools",
    ]);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn said() -> impl Strategy<Value = Said> {
    let result = (any::<bool>(), value(), any::<bool>()).prop_map(|(is_ours, value, is_tool_s)| {
        let result = if is_tool_s { json!({"content": [value], "isError": is_ours}) } else { value };
        Said::Result { is_ours, result }
    });
    let text = "(\\{|\\}|\\[|\\]|,|:|\"id\"|\"result\"|\"jsonrpc\":\"2.0\"|[0-9]|é|\"|\\\\u0000|null| ){0,40}";
    prop_oneof![result, value().prop_map(Said::Json), text.prop_map(Said::Text)]
}

#[test]
fn only_a_result_of_this_call_is_its_answer() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let next = Arc::new(Mutex::new((Said::Json(Value::Null), false)));
    let (client, server) = runtime.block_on(async {
        let server = {
            let next = next.clone();
            Rude::calls(move |request| {
                let (said, as_events) = next.lock().unwrap().clone();
                said.response(request, as_events)
            })
        };
        (client(&server.start().await), server)
    });
    // Each case is a session over a socket.
    let mut runner = TestRunner::new(Config { cases: 96, ..Config::default() });
    runner
        .run(&(said(), any::<bool>()), |(said, as_events)| {
            *next.lock().unwrap() = (said.clone(), as_events);
            let outcome = runtime.block_on(call(&client, "refund", "{}"));
            let could_be = matches!(&said, Said::Result { is_ours: true, .. });
            let text = match &outcome {
                CallOutcome::Completed { text, .. } => {
                    prop_assert!(could_be, "{:?}", outcome);
                    text
                }
                // An error without an id, or one that happens to have ours, is what a server says of a call too.
                CallOutcome::Failed { text, .. } => {
                    prop_assert!(could_be || matches!(said, Said::Json(_)), "{:?}", outcome);
                    text
                }
                CallOutcome::Indeterminate { text } => text,
            };
            prop_assert!(text.len() <= MAX_BODY_BYTES);
            Ok(())
        })
        .unwrap();
    assert_eq!(server.times("tools/call"), 96, "each is sent once");
}

fn nested(beginning: &str, part: &str) -> String {
    format!("{beginning}{}", part.repeat((MAX_BODY_BYTES - 1000) / part.len()))
}

#[rstest]
#[case::of_the_answer("", "[")]
#[case::of_the_result("{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":", "{\"a\":")]
#[case::of_the_content("{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":", "[")]
#[case::of_its_structure("{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[],\"structuredContent\":", "{\"a\":")]
#[case::of_an_error("{\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{\"code\":1,\"message\":\"x\",\"data\":", "[")]
#[tokio::test]
async fn nesting_without_an_end_is_no_answer(
    #[case] beginning: &'static str,
    #[case] part: &'static str,
    #[values(true, false)] as_events: bool,
) {
    let server = Rude::calls(move |request| {
        let text = nested(&beginning.replace("ID", &request["id"].to_string()), part);
        Said::Text(text).response(request, as_events)
    });
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    assert!(matches!(outcome, CallOutcome::Indeterminate { .. }), "{outcome:?}");
    assert_eq!(server.times("tools/call"), 1);
}

/// As deep as a reader goes, deeper than a line of the log may be: it is text there, or no tool.
#[tokio::test]
async fn what_is_deep_and_whole_is_read() {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let result = json!({"content": [], "structuredContent": {"deep": deep}});
    let server = Rude::calls({
        let result = result.clone();
        move |request| Said::Result { is_ours: true, result: result.clone() }.response(request, false)
    });
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Completed { text, structured, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (&text, structured.as_ref()),
        (&result["structuredContent"].to_string(), Some(&result["structuredContent"]))
    );
}
