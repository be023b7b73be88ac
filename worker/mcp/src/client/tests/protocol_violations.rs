//! Tests of servers that violate the protocol.

use super::scripted_server::{ScriptedServer, answer, cut_events, done, event, event_stream, events, json};
use super::*;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, stream};
use rstest::rstest;
use std::sync::atomic::AtomicUsize;

fn raw(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

/// Returns an answer whose text is not UTF-8. `frame` adds what surrounds the answer in the body.
fn not_utf8(call: &Value, frame: fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let mut answer = done(call).to_string().into_bytes();
    let at = answer.windows(4).position(|part| part == b"done").unwrap();
    answer[at] = 0xff;
    frame(answer)
}

#[rstest]
#[case::not_utf8(|call: &Value| raw("application/json", not_utf8(call, |body| body)), "its answer cannot be read")]
#[case::events_that_are_not_utf8(
    |call: &Value| raw("text/event-stream", not_utf8(call, |body| [b"data: ".to_vec(), body, b"\n\n".to_vec()].concat())),
    "its answer ended before the result"
)]
#[case::an_error_that_is_not_utf8(
    |call: &Value| {
        let refusal = json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": 1, "message": "done"}});
        let mut body = refusal.to_string().into_bytes();
        let at = body.windows(4).position(|part| part == b"done").unwrap();
        body[at] = 0xff;
        let mut response = raw("application/json", body);
        *response.status_mut() = axum::http::StatusCode::BAD_REQUEST;
        response
    },
    "it answered HTTP 400"
)]
#[case::compressed(
    |call: &Value| {
        let mut response = json(&done(call));
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        *response.body_mut() = Body::from(&b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xed\xc1"[..]);
        response
    },
    "its answer cannot be read"
)]
#[case::many_answers(|call: &Value| json(&json!([done(call)])), "its answer cannot be read")]
#[case::a_request_in_place_of_an_answer(
    |call: &Value| json(&json!({"jsonrpc": "2.0", "id": call["id"], "method": "ping"})),
    "its answer has no request id"
)]
#[case::after_the_answer_of_another_call(
    |call: &Value| events([event(&done(&json!({"id": 999}))), event(&done(call))]),
    "its answer ended before the result"
)]
#[tokio::test]
async fn a_call_without_a_valid_answer_is_indeterminate(#[case] respond: fn(&Value) -> Response, #[case] reason: &str) {
    let server = ScriptedServer::answering_calls(respond);
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains(reason), "{text}");
    assert_eq!(server.count("tools/call"), 1);
}

#[rstest]
#[case::twice(|call: &Value| events([event(&done(call)), event(&answer(call, &json!({"content": []})))]))]
#[case::under_another_session(|call: &Value| {
    let mut response = json(&done(call));
    response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("s-2"));
    response
})]
#[tokio::test]
async fn the_first_answer_to_a_call_counts(#[case] respond: fn(&Value) -> Response) {
    let server = ScriptedServer::answering_calls(respond);
    let client = client(&server.start().await);
    for times in 1..=2 {
        assert_eq!(call(&client, "refund", "{}").await, completed("done"));
        assert_eq!((server.count("tools/call"), server.count("initialize")), (times, 1));
    }
}

#[tokio::test]
async fn a_stream_that_is_resumed_again_and_again_does_not_extend_the_timeout() {
    let resumed = Arc::new(AtomicUsize::new(0));
    let counts = resumed.clone();
    let part = |number: usize| cut_events([format!("id: e-{number}\nretry: 0\ndata:\n\n")]);
    let server = ScriptedServer::answering_calls(move |_| part(0))
        .with_resume(move |_| part(counts.fetch_add(1, Ordering::Relaxed) + 1));
    let client = client(&server.start().await);
    let outcome = call_within(&client, "refund", "{}", Duration::from_millis(700)).await;
    assert!(matches!(outcome, CallOutcome::Indeterminate { .. }), "{outcome:?}");
    let times = resumed.load(Ordering::Relaxed);
    assert!((1..=4).contains(&times), "the stream was resumed {times} times");
    assert_eq!(server.count("tools/call"), 1);
}

/// The server sends 100 MiB. The client closes the connection early.
#[rstest]
#[tokio::test]
async fn a_result_that_is_too_large_is_not_read_to_its_end(#[values(true, false)] as_events: bool) {
    const CHUNK: usize = 64 * 1024;
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let server = ScriptedServer::answering_calls(move |call| {
        let head = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"",
            call["id"]
        );
        let (head, kind) =
            if as_events { (format!("data: {head}"), "text/event-stream") } else { (head, "application/json") };
        let counted = counted.clone();
        let body = stream::unfold((0, Some(head)), move |(at, head)| {
            let counted = counted.clone();
            async move {
                let bytes = head.map_or_else(|| Bytes::from(vec![b'x'; CHUNK]), Bytes::from);
                counted.fetch_add(bytes.len(), Ordering::Relaxed);
                (at < 100 * 1024 * 1024 / CHUNK).then_some((Ok::<_, std::io::Error>(bytes), (at + 1, None)))
            }
        });
        raw(kind, Body::from_stream(body))
    });
    let outcome = call(&client(&server.start().await), "get", "{}").await;
    let CallOutcome::Unread { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("has more than 8388608 bytes"), "{text}");
    // The count includes the bytes in the buffers of the kernel.
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 32 * 1024 * 1024, "{sent} bytes were sent");
}

#[tokio::test]
async fn a_tool_that_two_pages_name_is_listed_twice() {
    let server = ScriptedServer::answering_lists(|request| {
        let (tools, next) = match request["params"]["cursor"].as_str() {
            None => ([tool_at_start("get"), tool_at_start("refund")], Some("2")),
            Some(_) => ([tool_at_start("refund"), tool_at_start("ask")], None),
        };
        json(&answer(request, &json!({"tools": tools, "nextCursor": next})))
    });
    let listed = client(&server.start().await).list(LONG_TIMEOUT).await.unwrap();
    let names: Vec<_> = listed.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["get", "refund", "refund", "ask"], "the engine ignores a tool that is listed twice");
}

#[tokio::test]
async fn a_list_whose_pages_repeat_ends_at_the_limit() {
    let server =
        ScriptedServer::answering_lists(|request| json(&answer(request, &json!({"tools": [], "nextCursor": "again"}))));
    let error = client(&server.start().await).list(LONG_TIMEOUT).await.unwrap_err();
    assert!(error.to_string().ends_with("more than 32 pages"), "{error}");
    assert_eq!(server.count("tools/list"), 32);
}

#[tokio::test]
async fn a_request_for_roots_is_declined() {
    let replies = tokio::sync::watch::Sender::new(Vec::<Value>::new());
    let server = {
        let replies = replies.clone();
        ScriptedServer::answering_calls(move |call| {
            let roots = json!({"jsonrpc": "2.0", "id": 901, "method": "roots/list"});
            let (watched, last) = (replies.subscribe(), event(&done(call)));
            let after_reply = stream::once(async move {
                let mut watched = watched;
                watched.wait_for(|replies| !replies.is_empty()).await.unwrap();
                Ok(last)
            });
            event_stream(stream::iter([Ok(event(&roots))]).chain(after_reply))
        })
    };
    let server = server.with_replies(replies.clone());
    assert_eq!(call(&client(&server.start().await), "ask", "{}").await, completed("done"));
    assert_eq!(replies.borrow()[0]["error"]["code"], -32601);
}
