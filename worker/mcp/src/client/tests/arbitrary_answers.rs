//! Tests with arbitrary answers to a call: the client does not panic, and only an answer to the call counts as its answer.

use super::scripted_server::{ScriptedServer, event, events, json};
use super::*;
use axum::response::{IntoResponse, Response};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Mutex;

/// The body of an answer.
#[derive(Debug, Clone)]
enum Body {
    /// A result. `is_ours` means that it has the id of the call.
    Result { is_ours: bool, result: Value },
    /// Any JSON.
    Json(Value),
    /// Any text.
    Text(String),
}

impl Body {
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

fn body() -> impl Strategy<Value = Body> {
    let result = (any::<bool>(), value(), any::<bool>()).prop_map(|(is_ours, value, is_tool_result)| {
        let result = if is_tool_result { json!({"content": [value], "isError": is_ours}) } else { value };
        Body::Result { is_ours, result }
    });
    let text = "(\\{|\\}|\\[|\\]|,|:|\"id\"|\"result\"|\"jsonrpc\":\"2.0\"|[0-9]|é|\"|\\\\u0000|null| ){0,40}";
    prop_oneof![result, value().prop_map(Body::Json), text.prop_map(Body::Text)]
}

#[test]
fn only_a_result_of_this_call_is_its_answer() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let next = Arc::new(Mutex::new((Body::Json(Value::Null), false)));
    let (client, server) = runtime.block_on(async {
        let server = {
            let next = next.clone();
            ScriptedServer::answering_calls(move |request| {
                let (body, as_events) = next.lock().unwrap().clone();
                body.response(request, as_events)
            })
        };
        (client(&server.start().await), server)
    });
    // Fewer cases than usual, because each case is a session over a socket.
    let mut runner = TestRunner::new(Config { cases: 96, ..Config::default() });
    runner
        .run(&(body(), any::<bool>()), |(body, as_events)| {
            *next.lock().unwrap() = (body.clone(), as_events);
            let outcome = runtime.block_on(call(&client, "refund", "{}"));
            let is_our_result = matches!(&body, Body::Result { is_ours: true, .. });
            let text = match &outcome {
                CallOutcome::Completed { text, .. } | CallOutcome::Unread { text } => {
                    prop_assert!(is_our_result, "{:?}", outcome);
                    text
                }
                // Arbitrary JSON may be an error without an id, or happen to have the id of the call.
                CallOutcome::Failed { text, .. } => {
                    prop_assert!(is_our_result || matches!(body, Body::Json(_)), "{:?}", outcome);
                    text
                }
                CallOutcome::Indeterminate { text } => text,
            };
            prop_assert!(text.len() <= MAX_BODY_BYTES);
            Ok(())
        })
        .unwrap();
    assert_eq!(server.count("tools/call"), 96, "each call is sent once");
}

fn nested(beginning: &str, part: &str) -> String {
    format!("{beginning}{}", part.repeat((MAX_BODY_BYTES - 1000) / part.len()))
}

#[rstest]
#[case::in_the_answer("", "[")]
#[case::in_the_result("{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":", "{\"a\":")]
#[case::in_the_content("{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":", "[")]
#[case::in_the_structured_content(
    "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[],\"structuredContent\":",
    "{\"a\":"
)]
#[case::in_an_error("{\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{\"code\":1,\"message\":\"x\",\"data\":", "[")]
#[tokio::test]
async fn endless_nesting_is_not_an_answer(
    #[case] beginning: &'static str,
    #[case] part: &'static str,
    #[values(true, false)] as_events: bool,
) {
    let server = ScriptedServer::answering_calls(move |request| {
        let text = nested(&beginning.replace("ID", &request["id"].to_string()), part);
        Body::Text(text).response(request, as_events)
    });
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    assert!(matches!(outcome, CallOutcome::Indeterminate { .. }), "{outcome:?}");
    assert_eq!(server.count("tools/call"), 1);
}

/// The parser accepts 100 levels. The event log accepts fewer, and stores such a result as text.
#[tokio::test]
async fn a_deeply_nested_result_is_read() {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let result = json!({"content": [], "structuredContent": {"deep": deep}});
    let server = ScriptedServer::answering_calls({
        let result = result.clone();
        move |request| Body::Result { is_ours: true, result: result.clone() }.response(request, false)
    });
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Completed { text, structured, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (&text, structured.as_ref()),
        (&result["structuredContent"].to_string(), Some(&result["structuredContent"]))
    );
}
