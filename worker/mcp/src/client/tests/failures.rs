//! Tests of calls that go wrong, and of the outcome that is proven for each.

use super::scripted_server::{ScriptedServer, answer, cut_events, done, event, event_stream, events, json};
use super::*;
use crate::limits::DEFAULT_ANSWER_BYTES;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bloomery_testkit::local_server;
use futures::{StreamExt, stream};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

fn response(status: u16, body: &Value) -> Response {
    let mut response = json(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// Returns a JSON-RPC error.
fn error(request: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "sold out"}})
}

/// Returns an error that does not conform to JSON-RPC.
fn nonconforming_error(request: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "error": "sold out"})
}

/// Returns a result with a text of `bytes` bytes.
fn sized(request: &Value, bytes: usize) -> Value {
    answer(request, &json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]}))
}

#[rstest]
#[case::server_error(|_: &Value| response(500, &json!("down")), "it answered HTTP 500: \"down\"")]
#[case::server_error_with_an_answer(|call: &Value| response(503, &error(call)), "it answered HTTP 503")]
#[case::refused_by_a_proxy(|_: &Value| response(400, &json!("bad gateway rules")), "it answered HTTP 400")]
#[case::another_call_refused(|_: &Value| response(400, &error(&json!({"id": 999}))), "it answered HTTP 400")]
#[case::forbidden(|call: &Value| response(403, &error(call)), "it answered HTTP 403")]
#[case::redirect(
    |_: &Value| (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/elsewhere")]).into_response(),
    "/elsewhere (HTTP 307), and redirects are not followed"
)]
#[case::redirect_to_nowhere(|_: &Value| response(307, &json!("moved")), "it answered HTTP 307: \"moved\"")]
#[case::accepted(|_: &Value| StatusCode::ACCEPTED.into_response(), "it answered HTTP 202")]
#[case::invalid_json(|_: &Value| ([(header::CONTENT_TYPE, "application/json")], "{").into_response(), "its answer cannot be read")]
#[case::html(|_: &Value| ([(header::CONTENT_TYPE, "text/html")], "<html>").into_response(), "a body of type `text/html`")]
#[case::wrong_id(|_: &Value| json(&done(&json!({"id": 999}))), "it answered the request 999 instead of the request")]
#[case::no_error(|call: &Value| json(&json!({"jsonrpc": "2.0", "id": call["id"], "error": null})), "its answer cannot be read")]
#[case::nothing(|call: &Value| json(&json!({"jsonrpc": "2.0", "id": call["id"]})), "its answer cannot be read")]
#[case::no_id(|_: &Value| json(&error(&json!({"id": null}))), "its answer has no request id")]
#[case::a_task(
    |call: &Value| json(&answer(call, &json!({"resultType": "delegated", "content": []}))),
    "it answered with a result of the type `delegated`"
)]
#[case::huge_notification(
    |_: &Value| {
        let logged = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x".repeat(DEFAULT_ANSWER_BYTES)}});
        events([event(&logged)])
    },
    "larger than 8388608 bytes"
)]
#[case::huge_answer_to_another_call(
    |_: &Value| json(&sized(&json!({"id": 999}), DEFAULT_ANSWER_BYTES)),
    "larger than 8388608 bytes"
)]
#[case::flood(
    |_: &Value| event_stream(stream::repeat_with(|| Ok(format!(": {}\n\n", "x".repeat(1000)))).boxed()),
    "larger than 8388608 bytes"
)]
#[case::cut_stream(|_: &Value| cut_events([": hello\n\n".to_owned()]), "its answer was cut off")]
#[case::stream_without_result(|_: &Value| events([": hello\n\n".to_owned()]), "its answer ended before the result")]
#[case::stream_with_wrong_id(|_: &Value| events([event(&done(&json!({"id": 999})))]), "its answer ended before the result")]
#[case::stream_with_garbage(|_: &Value| events(["data: {\n\n".to_owned()]), "its answer ended before the result")]
#[tokio::test]
async fn a_response_that_proves_nothing_makes_the_call_indeterminate(
    #[case] respond: fn(&Value) -> Response,
    #[case] reason: &str,
) {
    let server = ScriptedServer::answering_calls(respond);
    let url = server.start().await;
    let client = client(&url);
    for times in 1..=2 {
        let outcome = call(&client, "refund", "{}").await;
        let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
        assert!(text.starts_with(&format!("the call was sent to the MCP server {url}, and ")), "{text}");
        assert!(text.contains(reason), "{text}");
        // Each call is sent once, in a new session.
        assert_eq!(server.count("tools/call"), times);
        assert_eq!(server.count("initialize"), times);
    }
}

/// Returns whether this is the first time that it is asked.
fn is_first(asked: &AtomicBool) -> bool {
    !asked.swap(true, Ordering::Relaxed)
}

/// The server does not know the session of the call, and begins another: it has not run the call.
#[rstest]
#[case::text(|_: &Value| response(404, &json!("no such session")))]
#[case::answer(|call: &Value| response(404, &error(call)))]
#[tokio::test]
async fn a_call_whose_session_was_lost_is_sent_once_more_in_a_new_session(#[case] refuse: fn(&Value) -> Response) {
    let asked = AtomicBool::default();
    let server =
        ScriptedServer::answering_calls(move |call| if is_first(&asked) { refuse(call) } else { json(&done(call)) });
    let client = client(&server.start().await);
    assert_eq!(call(&client, "refund", "{}").await, completed("done"));
    assert_eq!((server.count("tools/call"), server.count("initialize"), server.count("tools/list")), (2, 2, 2));
    assert_eq!(call(&client, "refund", "{}").await, completed("done"));
    assert_eq!((server.count("tools/call"), server.count("initialize")), (3, 2));
}

/// Nothing proves that the server itself does not know the session.
#[rstest]
#[case::no_session_begins(true, 1)]
#[case::each_session_is_lost(false, 2)]
#[tokio::test]
async fn a_call_whose_session_was_lost_for_another_reason_is_indeterminate(
    #[case] refuses_sessions: bool,
    #[case] sent: usize,
) {
    let server = ScriptedServer::answering_calls(|_| response(404, &json!("not found")));
    let server = if refuses_sessions { server.with_one_session() } else { server };
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.ends_with("and it has ended the session (HTTP 404)"), "{text}");
    assert_eq!(server.count("tools/call"), sent);
}

/// Without a session there is none that the server may have lost. The 404 may come from a proxy, after the call has happened.
#[tokio::test]
async fn a_call_outside_of_a_session_that_gets_a_404_is_indeterminate_and_not_sent_again() {
    let server = ScriptedServer::answering_calls(|_| response(404, &json!("not found"))).without_sessions();
    let url = server.start().await;
    let outcome = call(&client(&url), "refund", "{}").await;
    let text = format!("the call was sent to the MCP server {url}, and it answered HTTP 404: \"not found\"");
    assert_eq!(outcome, CallOutcome::Indeterminate { text });
    assert_eq!((server.count("tools/call"), server.count("initialize")), (1, 1));
}

/// If a call was renewed and its tool changed meanwhile, it is not sent again, and it was not run.
#[tokio::test]
async fn a_tool_that_changed_with_the_session_is_not_called_again() {
    let asked = AtomicBool::default();
    let server =
        ScriptedServer::answering_calls(|_| response(404, &json!("no such session"))).with_list(move |request| {
            let tools = if is_first(&asked) { json!(TOOLS.map(tool_at_start)) } else { json!([]) };
            json(&answer(request, &json!({ "tools": tools })))
        });
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("its tool has changed"), "{text}");
    assert_eq!(server.count("tools/call"), 1);
}

#[rstest]
#[case::json(|call: &Value| json(&error(call)))]
#[case::refusal(|call: &Value| response(400, &error(call)))]
#[case::stream(|call: &Value| events([event(&error(call))]))]
#[tokio::test]
async fn a_json_rpc_error_answers_the_call(#[case] respond: fn(&Value) -> Response) {
    let server = ScriptedServer::answering_calls(respond);
    let client = client(&server.start().await);
    let expected = failed("The server refused the call: sold out (code -32000).");
    assert_eq!(call(&client, "refund", "{}").await, expected);
    assert_eq!(call(&client, "refund", "{}").await, expected);
    assert_eq!((server.count("tools/call"), server.count("initialize")), (2, 1));
}

/// An error that does not conform to JSON-RPC still shows that the call failed.
#[rstest]
#[case::json(|call: &Value| json(&nonconforming_error(call)))]
#[case::refusal(|call: &Value| response(400, &nonconforming_error(call)))]
#[case::stream(|call: &Value| events([event(&nonconforming_error(call))]))]
#[tokio::test]
async fn an_error_in_another_form_answers_the_call(#[case] respond: fn(&Value) -> Response) {
    let server = ScriptedServer::answering_calls(respond);
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    assert_eq!(outcome, failed("The server refused the call: sold out (code -32603)."));
    assert_eq!(server.count("tools/call"), 1);
}

/// The server answered the call, so the call counts as completed.
#[rstest]
#[case::unknown_type(
    r#"{"content":[{"type":"hologram"},{"type":"text","text":"after"}]}"#,
    "[content of the type `hologram`, which MCP does not define, is left out]\nafter"
)]
#[case::a_lone_surrogate(r#"{"content":[{"type":"text","text":"a\ud800"}]}"#, "a\u{fffd}")]
#[case::a_text_as_content(
    r#"{"content":"hello"}"#,
    r#"The unchanged answer:]
{"content":"hello"}"#
)]
#[case::a_list_of_tools(
    r#"{"tools":[]}"#,
    r#"The unchanged answer:]
{"tools":[]}"#
)]
#[case::custom(
    r#"{"done":true}"#,
    r#"The unchanged answer:]
{"done":true}"#
)]
#[case::nothing("{}", "The unchanged answer:]\n{}")]
#[case::null("null", "The unchanged answer:]\nnull")]
#[case::text(r#""done""#, "The unchanged answer:]\n\"done\"")]
#[case::a_number_out_of_range(
    r#"{"a":1e999}"#,
    r#"The unchanged answer:]
{"a":1e999}"#
)]
#[case::json_rpc_1_0(r#"{"content":[{"type":"text","text":"a"}]},"error":null"#, "a")]
#[tokio::test]
async fn a_result_that_does_not_conform_to_mcp_answers_the_call(
    #[case] result: &'static str,
    #[case] ending: &str,
    #[values(true, false)] as_event: bool,
) {
    let server = ScriptedServer::answering_calls(move |call| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, call["id"]);
        if as_event {
            return events([format!("data: {text}\n\n")]);
        }
        ([(header::CONTENT_TYPE, "application/json")], text).into_response()
    });
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Completed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.ends_with(ending), "{text}");
    assert_eq!((server.count("tools/call"), server.count("initialize")), (1, 1));
}

#[rstest]
#[case(json!("yes"), true)]
#[case(json!(0), true)]
#[case(Value::Null, false)]
#[case(json!(false), false)]
#[tokio::test]
async fn any_value_of_is_error_except_false_and_null_means_an_error(#[case] is_error: Value, #[case] has_failed: bool) {
    let result = json!({"content": [{"type": "text", "text": "sold out"}], "isError": is_error});
    let server = ScriptedServer::answering_calls(move |call| json(&answer(call, &result)));
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
async fn a_call_without_an_answer_is_indeterminate_after_its_timeout(#[case] respond: fn(&Value) -> Response) {
    let server = ScriptedServer::answering_calls(respond);
    let client = client(&server.start().await);
    let outcome = call_within(&client, "refund", "{}", Duration::from_millis(300)).await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("it did not answer within"), "{text}");
    assert_eq!(server.count("tools/call"), 1);
}

/// The timeout of the Skill holds from the first call, and from the moment at which the call is sent.
#[tokio::test]
async fn the_timeout_of_a_tool_holds_from_the_first_call() {
    let server = ScriptedServer::answering_calls(|_| event_stream(stream::pending()));
    let (id, definition) = (CallId::new(7, 0), tool_at_start("refund").digest());
    let call = ToolCall {
        id: &id,
        tool: "refund",
        arguments: "{}",
        key: Digest::of_bytes(b"the key"),
        idempotent: false,
        read_only: false,
        sent_before: false,
        source: ToolSource::Server,
        definition: &definition,
        timeout_seconds: Some(1),
    };
    let client = client(&server.start().await);
    let called = tokio::time::timeout(Duration::from_secs(20), client.call(&call, LONG_TIMEOUT, &|_| {})).await;
    let CallOutcome::Indeterminate { text } = &called.unwrap().outcome else { panic!("not indeterminate") };
    assert!(text.ends_with("it did not answer within 1 s"), "{text}");
}

/// A 401 says that the call was not applied. If the call was sent before, this says nothing about the first time.
#[tokio::test]
async fn a_call_that_the_server_answers_with_401_has_failed() {
    let server = ScriptedServer::answering_calls(|_| response(401, &json!("the token has expired")));
    let client = client(&server.start().await);
    let CallOutcome::Failed { text, .. } = call(&client, "refund", "{}").await else { panic!("not failed") };
    assert_eq!(
        text,
        "The server refused the call: it answered HTTP 401: \"the token has expired\". Let it accept requests without credentials, or \
         correct its own credentials."
    );
    assert_eq!(server.count("tools/call"), 1);
    let repeated = repeated_call(&client, "refund", "{}", LONG_TIMEOUT, true).await.outcome;
    let CallOutcome::Indeterminate { text } = &repeated else { panic!("{repeated:?}") };
    assert!(text.contains("its answer was lost, and the call could not be repeated"), "{text}");
}

/// A server that requires credentials is not retried for a call, even if it may get them later.
#[rstest]
#[case::session(401, "initialize")]
#[case::notification(401, "notifications/initialized")]
#[case::list(403, "tools/list")]
#[tokio::test]
async fn a_missing_credential_is_shown_at_once(#[case] status: u16, #[case] method: &'static str) {
    let server = ScriptedServer::answering_calls(|call| json(&done(call))).with_refusal(method, status);
    let url = server.start().await;
    let client = Client { unreachable_retry_period: LONG_TIMEOUT, ..client(&url) };
    let outcome = tokio::time::timeout(Duration::from_secs(20), call(&client, "refund", "{}")).await.unwrap();
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains(&format!("The call was not sent to {url}: it answered HTTP {status}")), "{text}");
    assert!(matches!(client.list(LONG_TIMEOUT).await, Err(Error::Unavailable { .. })));
    let local = Client { unreachable_retry_period: LONG_TIMEOUT, ..super::client(&url) }.without_credentials();
    let error = local.list(LONG_TIMEOUT).await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { .. }) && error.to_string().contains(&format!("HTTP {status}")),
        "{error}"
    );
}

/// A server that only has the transport of MCP 2024-11-05.
#[rstest]
#[case::at_its_url("/sse")]
#[case::elsewhere("/mcp")]
#[tokio::test]
async fn a_server_with_the_older_transport_is_named(#[case] path: &str) {
    let opens = || async {
        event_stream(
            stream::iter([Ok("event: endpoint\ndata: /messages?id=1\n\n".to_owned())]).chain(stream::pending()),
        )
    };
    let router = axum::Router::new().route("/sse", axum::routing::get(opens));
    let url = format!("{}{path}", local_server::serve(router).await);
    let error = client(&url).list(LONG_TIMEOUT).await.unwrap_err();
    assert!(matches!(&error, Error::Refused { .. }), "{error:?}");
    let reason = "it only has the transport HTTP+SSE of MCP 2024-11-05, which the worker does not support";
    let remedy = "update the server to one with streamable HTTP, or put a bridge before it";
    assert!(error.to_string().ends_with(&format!(": {reason}: {remedy}")), "{error}");
    let outcome = call(&client(&url), "refund", "{}").await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains(reason) && text.contains(remedy) && !text.contains("was sent"), "{text}");
}

#[tokio::test]
async fn a_result_of_the_largest_size_is_read() {
    let server = ScriptedServer::answering_calls(|call| json(&sized(call, DEFAULT_ANSWER_BYTES - 1000)));
    let CallOutcome::Completed { text, .. } = call(&client(&server.start().await), "get", "{}").await else {
        panic!("not completed")
    };
    assert_eq!(text.len(), DEFAULT_ANSWER_BYTES - 1000);
}

/// Returns a result in the order of fields of the TypeScript SDK.
fn result_first(call: &Value, text: &str) -> String {
    format!(r#"{{"result":{{"content":[{{"type":"text","text":"{text}"}}]}},"jsonrpc":"2.0","id":{}}}"#, call["id"])
}

/// The call has happened, so it is completed, and the session goes on.
#[rstest]
#[case::json(|call: &Value| json(&sized(call, 70_000)))]
#[case::result_first(|call: &Value| ([(header::CONTENT_TYPE, "application/json")], result_first(call, &"x".repeat(70_000))).into_response())]
#[case::without_a_length(|call: &Value| {
    let text = result_first(call, &"x".repeat(70_000));
    let mut response = event_stream(stream::iter([Ok(text)]));
    response.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    response
})]
#[case::event(|call: &Value| events([": hello\n\n".to_owned(), event(&sized(call, 70_000))]))]
#[case::event_of_wide_characters(|call: &Value| events([format!("data: {}\n\n", result_first(call, &"€".repeat(30_000)))]))]
#[case::open_stream(|call: &Value| event_stream(stream::iter([Ok(event(&sized(call, 70_000)))]).chain(stream::pending())))]
#[tokio::test]
async fn a_result_beyond_the_limit_completes_the_call(#[case] respond: fn(&Value) -> Response) {
    let server = ScriptedServer::answering_calls(respond);
    let client = client(&server.start().await).with_max_result_bytes(65_536);
    for times in 1..=2 {
        let outcome = call(&client, "refund", "{}").await;
        let CallOutcome::Unread { text } = &outcome else { panic!("{outcome:?}") };
        let note = "[The call has happened: the server answered it. But the answer has more than 65536 bytes, so it was not read";
        assert!(text.starts_with(note), "{text}");
        assert_eq!((server.count("tools/call"), server.count("initialize")), (times, 1));
    }
}

#[tokio::test]
async fn an_error_beyond_the_limit_fails_the_call() {
    let server = ScriptedServer::answering_calls(|call| {
        json(&json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": 1, "message": "x".repeat(70_000)}}))
    });
    let client = client(&server.start().await).with_max_result_bytes(65_536);
    let expected =
        "The server refused the call: the error has more than 65536 bytes, so it was not read (code -32603).";
    assert_eq!(call(&client, "refund", "{}").await, failed(expected));
}

/// Values take much more memory than their text.
#[tokio::test]
async fn a_large_result_of_too_many_values_completes_the_call() {
    let server = ScriptedServer::answering_calls(|call| {
        json(&answer(call, &json!({"content": [], "structuredContent": {"rows": vec![0; 1_000_000]}})))
    });
    let outcome = call(&client(&server.start().await), "get", "{}").await;
    let CallOutcome::Unread { text } = &outcome else { panic!("not unread") };
    assert!(text.contains("and too many values, so it was not read"), "{text}");
}

#[tokio::test]
async fn a_call_to_a_server_that_does_not_listen_fails() {
    let url = format!("http://{}/mcp", local_server::unused_address().await);
    let outcome = call(&client(&url), "refund", "{}").await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    let expected = format!("The call was not sent to {url}: it cannot be reached: Connection refused");
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test]
async fn a_call_to_a_server_that_stopped_listening_during_the_session_fails() {
    // The server closes each connection after its answer, and stops listening at the first call.
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
                        Some("tools/list") => json(&answer(&message, &json!({"tools": TOOLS.map(tool_at_start)}))),
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
async fn a_call_waits_for_a_server_that_restarts() {
    let address = local_server::unused_address().await;
    let server = ScriptedServer::answering_calls(|call| json(&done(call)));
    let client = Client { unreachable_retry_period: LONG_TIMEOUT, ..client(&format!("http://{address}/mcp")) };
    let (outcome, ()) = tokio::join!(call(&client, "refund", "{}"), async {
        server.start_on(TcpListener::bind(address).await.unwrap());
    });
    assert_eq!(outcome, completed("done"));
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_call_without_time_left_is_not_sent() {
    let server = ScriptedServer::answering_calls(|call| json(&done(call)));
    let outcome = call_within(&client(&server.start().await), "refund", "{}", Duration::ZERO).await;
    assert!(matches!(outcome, CallOutcome::Failed { .. }), "{outcome:?}");
    assert_eq!(server.count("tools/call"), 0);
}

#[tokio::test]
async fn a_stream_with_event_ids_is_resumed_and_the_call_is_not_repeated() {
    let id = Arc::new(Mutex::new(Value::Null));
    let server = {
        let (sent, resumed) = (id.clone(), id);
        ScriptedServer::answering_calls(move |call| {
            *sent.lock().unwrap() = call["id"].clone();
            cut_events(["id: e-1\nretry: 1\ndata:\n\n".to_owned()])
        })
        .with_resume(move |get| {
            assert_eq!(get["last"], "e-1");
            events([event(&done(&json!({"id": *resumed.lock().unwrap()})))])
        })
    };
    assert_eq!(call(&client(&server.start().await), "refund", "{}").await, completed("done"));
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn requests_of_the_server_are_declined() {
    let replies = tokio::sync::watch::Sender::new(Vec::<Value>::new());
    let server = {
        let replies = replies.clone();
        ScriptedServer::answering_calls(move |call| {
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
    let server = server.with_replies(replies.clone());
    assert_eq!(call(&client(&server.start().await), "ask", "{}").await, completed("done"));
    let mut replies = replies.borrow().clone();
    replies.sort_by_key(|reply| reply["id"].as_i64());
    assert_eq!(replies[0]["error"]["code"], -32601);
    assert_eq!(replies[1]["result"]["action"], "decline");
}

#[tokio::test]
async fn a_call_whose_tool_asks_for_input_fails() {
    let server = ScriptedServer::answering_calls(|call| {
        json(&answer(call, &json!({"resultType": "input_required", "inputRequests": {}, "requestState": "x"})))
    });
    let outcome = call(&client(&server.start().await), "ask", "{}").await;
    let CallOutcome::Failed { text, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(text.starts_with("The tool asks for input"), "{text}");
    assert_eq!(server.count("tools/call"), 1);
}

/// A call that was sent before may have had an effect, even if it cannot be sent again.
#[tokio::test]
async fn a_repeated_call_that_cannot_be_sent_is_indeterminate() {
    let gone = format!("http://{}/mcp", local_server::unused_address().await);
    let changed = ScriptedServer::answering_lists(|request| json(&answer(request, &json!({"tools": []}))));
    for (client, reason) in
        [(client(&gone), "it cannot be reached"), (client(&changed.start().await), "does not list it")]
    {
        for (sent_before, is_lost) in [(false, false), (true, true)] {
            match repeated_call(&client, "refund", "{}", LONG_TIMEOUT, sent_before).await.outcome {
                CallOutcome::Failed { text, .. } => assert!(!is_lost && text.contains(reason), "{text}"),
                CallOutcome::Indeterminate { text } => assert!(is_lost && text.contains(reason), "{text}"),
                completed @ (CallOutcome::Completed { .. } | CallOutcome::Unread { .. }) => panic!("{completed:?}"),
            }
        }
    }
    assert_eq!(changed.count("tools/call"), 0);
}
