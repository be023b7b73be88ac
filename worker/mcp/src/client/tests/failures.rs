//! Everything that can go wrong with a call, and what must then be said of it.

use super::rude::{Rude, answer, cut_events, done, event, event_stream, events, json};
use super::*;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Mutex;
use tokio::net::TcpListener;

fn says(status: u16, body: &Value) -> Response {
    let mut response = json(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn error(request: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "sold out"}})
}

fn loose(request: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "error": "sold out"})
}

fn sized(request: &Value, bytes: usize) -> Value {
    answer(request, &json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]}))
}

#[rstest]
#[case::server_error(|_: &Value| says(500, &json!("down")), "it answered HTTP 500: \"down\"")]
#[case::server_error_with_an_answer(|call: &Value| says(503, &error(call)), "it answered HTTP 503")]
#[case::session_gone(|_: &Value| says(404, &json!("no such session")), "it has ended the session (HTTP 404)")]
#[case::session_gone_with_an_answer(|call: &Value| says(404, &error(call)), "it has ended the session (HTTP 404)")]
#[case::refused_by_a_proxy(|_: &Value| says(400, &json!("bad gateway rules")), "it answered HTTP 400")]
#[case::another_call_refused(|_: &Value| says(400, &error(&json!({"id": 999}))), "it answered HTTP 400")]
#[case::unauthorized(|call: &Value| says(401, &error(call)), "it answered HTTP 401")]
#[case::redirect(
    |_: &Value| (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/elsewhere")]).into_response(),
    "/elsewhere, and redirects are not followed"
)]
#[case::redirect_to_nowhere(|_: &Value| says(307, &json!("moved")), "it answered HTTP 307: \"moved\"")]
#[case::accepted(|_: &Value| StatusCode::ACCEPTED.into_response(), "it answered HTTP 202")]
#[case::garbage(|_: &Value| ([(header::CONTENT_TYPE, "application/json")], "{").into_response(), "its answer cannot be read")]
#[case::html(|_: &Value| ([(header::CONTENT_TYPE, "text/html")], "<html>").into_response(), "a body of type `text/html`")]
#[case::wrong_id(|_: &Value| json(&done(&json!({"id": 999}))), "it answered the request 999")]
#[case::no_error(|call: &Value| json(&json!({"jsonrpc": "2.0", "id": call["id"], "error": null})), "its answer cannot be read")]
#[case::nothing(|call: &Value| json(&json!({"jsonrpc": "2.0", "id": call["id"]})), "its answer cannot be read")]
#[case::no_id(|_: &Value| json(&error(&json!({"id": null}))), "its answer names no request")]
#[case::a_task(
    |call: &Value| json(&answer(call, &json!({"resultType": "delegated", "content": []}))),
    "it answered with a result of the type `delegated`"
)]
#[case::huge(|call: &Value| json(&sized(call, MAX_BODY_BYTES)), "larger than 1048576 bytes")]
#[case::huge_event(|call: &Value| events([event(&sized(call, MAX_BODY_BYTES))]), "larger than 1048576 bytes")]
#[case::flood(
    |_: &Value| event_stream(stream::repeat_with(|| Ok(format!(": {}\n\n", "x".repeat(1000)))).boxed()),
    "larger than 1048576 bytes"
)]
#[case::cut_stream(|_: &Value| cut_events([": hello\n\n".to_owned()]), "its answer was cut off")]
#[case::stream_without_result(|_: &Value| events([": hello\n\n".to_owned()]), "its answer ended before the result")]
#[case::stream_with_wrong_id(|_: &Value| events([event(&done(&json!({"id": 999})))]), "its answer ended before the result")]
#[case::stream_with_garbage(|_: &Value| events(["data: {\n\n".to_owned()]), "its answer ended before the result")]
#[tokio::test]
async fn what_proves_nothing_is_indeterminate(#[case] act: fn(&Value) -> Response, #[case] why: &str) {
    let server = Rude::calls(act);
    let url = server.start().await;
    let client = client(&url);
    for times in 1..=2 {
        let outcome = call(&client, "refund", "{}").await;
        let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
        assert!(text.starts_with(&format!("the MCP server at {url} was asked, and ")), "{text}");
        assert!(text.contains(why), "{text}");
        // Sent once; and the next one finds a session again.
        assert_eq!(server.times("tools/call"), times);
        assert_eq!(server.times("initialize"), times);
    }
}

#[rstest]
#[case::json(|call: &Value| json(&error(call)))]
#[case::refusal(|call: &Value| says(400, &error(call)))]
#[case::stream(|call: &Value| events([event(&error(call))]))]
#[tokio::test]
async fn what_the_server_says_of_this_call_is_its_answer(#[case] act: fn(&Value) -> Response) {
    let server = Rude::calls(act);
    let client = client(&server.start().await);
    let expected = failed("The server refused the call: sold out (code -32000).");
    assert_eq!(call(&client, "refund", "{}").await, expected);
    assert_eq!(call(&client, "refund", "{}").await, expected);
    assert_eq!((server.times("tools/call"), server.times("initialize")), (2, 1));
}

/// By its form it is no error of JSON-RPC; that the call failed, it says all the same.
#[rstest]
#[case::json(|call: &Value| json(&loose(call)))]
#[case::refusal(|call: &Value| says(400, &loose(call)))]
#[case::stream(|call: &Value| events([event(&loose(call))]))]
#[tokio::test]
async fn an_error_in_another_form_is_an_answer_too(#[case] act: fn(&Value) -> Response) {
    let server = Rude::calls(act);
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    assert_eq!(outcome, failed("The server refused the call: sold out (code -32603)."));
    assert_eq!(server.times("tools/call"), 1);
}

/// It has answered the call: a person could say no more than the answer does.
#[rstest]
#[case::unknown_type(
    r#"{"content":[{"type":"hologram"},{"type":"text","text":"after"}]}"#,
    "[content of the type `hologram`, which MCP does not have, is left out]\nafter"
)]
#[case::half_a_character(r#"{"content":[{"type":"text","text":"a\ud800"}]}"#, "a\u{fffd}")]
#[case::a_text_as_content(
    r#"{"content":"hello"}"#,
    r#"as it came:]
{"content":"hello"}"#
)]
#[case::a_list_of_tools(
    r#"{"tools":[]}"#,
    r#"as it came:]
{"tools":[]}"#
)]
#[case::custom(
    r#"{"done":true}"#,
    r#"as it came:]
{"done":true}"#
)]
#[case::nothing("{}", "as it came:]\n{}")]
#[case::null("null", "as it came:]\nnull")]
#[case::text(r#""done""#, "as it came:]\n\"done\"")]
#[case::beyond_all_numbers(
    r#"{"a":1e999}"#,
    r#"as it came:]
{"a":1e999}"#
)]
#[case::json_rpc_1_0(r#"{"content":[{"type":"text","text":"a"}]},"error":null"#, "a")]
#[tokio::test]
async fn a_result_that_is_not_as_mcp_says_is_an_answer(
    #[case] result: &'static str,
    #[case] told: &str,
    #[values(true, false)] as_event: bool,
) {
    let server = Rude::calls(move |call| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, call["id"]);
        if as_event {
            return events([format!("data: {text}\n\n")]);
        }
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    });
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Completed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.ends_with(told), "{text}");
    assert_eq!((server.times("tools/call"), server.times("initialize")), (1, 1));
}

#[rstest]
#[case(json!("yes"), true)]
#[case(json!(0), true)]
#[case(Value::Null, false)]
#[case(json!(false), false)]
#[tokio::test]
async fn an_error_is_whatever_is_not_said_to_be_none(#[case] is_error: Value, #[case] has_failed: bool) {
    let result = json!({"content": [{"type": "text", "text": "sold out"}], "isError": is_error});
    let server = Rude::calls(move |call| json(&answer(call, &result)));
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    assert_eq!(outcome, if has_failed { failed("sold out") } else { completed("sold out") });
}

#[rstest]
#[case::hang(|_: &Value| event_stream(stream::pending()))]
#[case::endless(|_: &Value| {
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
    event_stream(stream::iter([Ok(event(&progress))]).chain(stream::pending()))
})]
#[tokio::test]
async fn an_answer_that_never_comes_is_indeterminate(#[case] act: fn(&Value) -> Response) {
    let server = Rude::calls(act);
    let client = client(&server.start().await);
    let outcome = call_within(&client, "refund", "{}", Duration::from_millis(300)).await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("it did not answer within"), "{text}");
    assert_eq!(server.times("tools/call"), 1);
}

#[tokio::test]
async fn a_result_of_the_largest_size_is_read() {
    let server = Rude::calls(|call| json(&sized(call, MAX_BODY_BYTES - 1000)));
    let CallOutcome::Completed { text, .. } = call(&client(&server.start().await), "get", "{}").await else {
        panic!("not completed")
    };
    assert_eq!(text.len(), MAX_BODY_BYTES - 1000);
}

#[tokio::test]
async fn a_server_that_is_not_there_was_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let outcome = call(&client(&url), "refund", "{}").await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    let expected = format!("The call was not sent to {url}: it cannot be reached: Connection refused");
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test]
async fn a_server_that_went_away_after_the_session_began_was_sent_nothing() {
    // No connection is kept, and the listener goes with its first answer to a call.
    let listener = Arc::new(Mutex::new(None::<tokio::task::JoinHandle<()>>));
    let (first, second) = {
        let bound = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", bound.local_addr().unwrap());
        let router = axum::Router::new().fallback({
            let listener = listener.clone();
            move |request: axum::extract::Request| {
                let listener = listener.clone();
                async move {
                    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
                    let message: Value = serde_json::from_slice(&body).unwrap();
                    let mut response = match message["method"].as_str() {
                        Some("server/discover") => StatusCode::BAD_REQUEST.into_response(),
                        Some("initialize") => json(&answer(
                            &message,
                            &json!({"protocolVersion": "2025-06-18", "capabilities": {},
                                "serverInfo": {"name": "x", "version": "1"}}),
                        )),
                        Some("tools/list") => json(&answer(&message, &json!({"tools": TOOLS.map(fixed)}))),
                        Some("tools/call") => {
                            listener.lock().unwrap().take().unwrap().abort();
                            json(&done(&message))
                        }
                        _ => StatusCode::ACCEPTED.into_response(),
                    };
                    response.headers_mut().insert(header::CONNECTION, "close".parse().unwrap());
                    response
                }
            }
        });
        let serving = tokio::spawn(async move { axum::serve(bound, router).await.unwrap() });
        *listener.lock().unwrap() = Some(serving);
        let client = client(&url);
        (call(&client, "refund", "{}").await, call(&client, "refund", "{}").await)
    };
    assert_eq!(first, completed("done"));
    let CallOutcome::Failed { text, .. } = &second else { panic!("{second:?}") };
    assert!(text.contains("it cannot be reached: Connection refused"), "{text}");
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let server = Rude::calls(|call| json(&done(call)));
    let client = Client { unreachable_retry_period: PLENTY, ..client(&format!("http://{addr}/mcp")) };
    let (outcome, _url) =
        tokio::join!(call(&client, "refund", "{}"), async { server.serve(TcpListener::bind(addr).await.unwrap()) });
    assert_eq!(outcome, completed("done"));
    assert_eq!(server.times("tools/call"), 1);
}

#[tokio::test]
async fn no_time_left_means_nothing_is_sent() {
    let server = Rude::calls(|call| json(&done(call)));
    let outcome = call_within(&client(&server.start().await), "refund", "{}", Duration::ZERO).await;
    assert!(matches!(outcome, CallOutcome::Failed { .. }), "{outcome:?}");
    assert_eq!(server.times("tools/call"), 0);
}

#[tokio::test]
async fn a_numbered_stream_is_resumed_and_the_call_is_not_repeated() {
    let id = Arc::new(Mutex::new(Value::Null));
    let server = {
        let (asked, resumed) = (id.clone(), id);
        Rude::calls(move |call| {
            *asked.lock().unwrap() = call["id"].clone();
            cut_events(["id: e-1\nretry: 1\ndata:\n\n".to_owned()])
        })
        .resumes(move |get| {
            assert_eq!(get["last"], "e-1");
            events([event(&done(&json!({"id": *resumed.lock().unwrap()})))])
        })
    };
    assert_eq!(call(&client(&server.start().await), "refund", "{}").await, completed("done"));
    assert_eq!(server.times("tools/call"), 1);
}

#[tokio::test]
async fn a_server_that_asks_something_of_us_is_declined() {
    let replies = tokio::sync::watch::Sender::new(Vec::<Value>::new());
    let server = {
        let replies = replies.clone();
        Rude::calls(move |call| {
            let sampling = json!({"jsonrpc": "2.0", "id": 901, "method": "sampling/createMessage", "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9}});
            let elicitation = json!({"jsonrpc": "2.0", "id": 902, "method": "elicitation/create", "params": {
                "message": "Your key?", "requestedSchema": {"type": "object", "properties": {}}}});
            let mut watched = replies.subscribe();
            let last = event(&done(call));
            let after_replies = stream::once(async move {
                watched.wait_for(|replies| replies.len() == 2).await.unwrap();
                Ok(last)
            });
            event_stream(stream::iter([Ok(event(&sampling)), Ok(event(&elicitation))]).chain(after_replies))
        })
    };
    let server = server.hears(replies.clone());
    assert_eq!(call(&client(&server.start().await), "ask", "{}").await, completed("done"));
    let mut replies = replies.borrow().clone();
    replies.sort_by_key(|reply| reply["id"].as_i64());
    assert_eq!(replies[0]["error"]["code"], -32601);
    assert_eq!(replies[1]["result"]["action"], "decline");
}

#[tokio::test]
async fn input_that_a_tool_asks_for_is_not_given() {
    let server = Rude::calls(|call| {
        json(&answer(call, &json!({"resultType": "input_required", "inputRequests": {}, "requestState": "x"})))
    });
    let outcome = call(&client(&server.start().await), "ask", "{}").await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.starts_with("The tool asks for input"), "{text}");
    assert_eq!(server.times("tools/call"), 1);
}

/// What was sent before, and lost, may have happened: that it cannot be sent again does not make it fail.
#[tokio::test]
async fn a_retry_that_is_not_sent_leaves_the_call_indeterminate() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let changed = Rude::lists(|request| json(&answer(request, &json!({"tools": []}))));
    for (client, why) in [(client(&gone), "it cannot be reached"), (client(&changed.start().await), "does not list it")]
    {
        for (sent_before, is_lost) in [(false, false), (true, true)] {
            match called_as(&client, "refund", "{}", PLENTY, sent_before).await.outcome {
                CallOutcome::Failed { text, .. } => assert!(!is_lost && text.contains(why), "{text}"),
                CallOutcome::Indeterminate { text } => assert!(is_lost && text.contains(why), "{text}"),
                completed @ CallOutcome::Completed { .. } => panic!("{completed:?}"),
            }
        }
    }
    assert_eq!(changed.times("tools/call"), 0);
}
