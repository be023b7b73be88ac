//! Tests of the data that is sent with a call, and of progress, log lines, cancellations and binary content.

use super::scripted_server::{ScriptedServer, answer, cut_events, done, event, event_stream, events, json};
use super::*;
use axum::response::Response;
use bloomery_crds::run::{KeyFile, ResourceSource};
use bloomery_crds::v1alpha1::ResourceType;
use futures::{StreamExt, stream};
use rstest::rstest;
use std::sync::Mutex;

fn notification(method: &str, params: &Value) -> String {
    event(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// Returns a notification of progress with the token of a call.
fn progress(call: &Value, params: Value) -> String {
    let mut params = params;
    params["progressToken"] = call["params"]["_meta"]["progressToken"].clone();
    notification("notifications/progress", &params)
}

fn progressed(progress: f64, total: f64, message: &str) -> ToolProgress {
    ToolProgress { progress: Some(progress), total: Some(total), level: None, message: Some(message.into()) }
}

#[tokio::test]
async fn a_call_carries_its_key_and_the_bound_resources_without_secrets() {
    let server = ScriptedServer::answering_calls(|call| json(&done(call)));
    let bound = |name: &str, kind, source| BoundResource { name: name.into(), kind, source };
    let path = "/etc/bloomery/secrets/ci/token".to_owned();
    let resources = [
        bound("docs", ResourceType::ApiEndpoint, ResourceSource::Value("https://docs.example".into())),
        bound(
            "token",
            ResourceType::Credential,
            ResourceSource::Secret(KeyFile { path, secret: "ci".into(), key: "t".into() }),
        ),
    ];
    let client = client(&server.start().await).with_resources(&resources);
    assert_eq!(call(&client, "refund", "{}").await, completed("done"));
    let meta = server.last_request("tools/call")["params"]["_meta"].clone();
    assert_eq!(meta["bloomery.dev/callKey"], Digest::of_bytes(b"the key").as_str());
    let expected = json!([{"name": "docs", "type": "api_endpoint", "url": "https://docs.example"}]);
    assert_eq!(meta["bloomery.dev/resources"], expected);
    assert!(!server.last_request("tools/call").to_string().contains("ci"), "the secret was sent");
}

#[tokio::test]
async fn the_listener_gets_the_progress_and_log_lines_of_its_call_only() {
    let server = ScriptedServer::answering_calls(|call| {
        let log = json!({"level": "warning", "logger": "stock", "data": "low"});
        events([
            progress(call, json!({"progress": 1, "total": 2, "message": "picking"})),
            notification("notifications/progress", &json!({"progressToken": "another", "progress": 7})),
            notification("notifications/message", &log),
            progress(call, json!({"progress": 2, "total": 2, "message": "packed"})),
            event(&done(call)),
        ])
    });
    let (outcome, received) = call_with_progress(&client(&server.start().await), "refund", LONG_TIMEOUT).await;
    assert_eq!(outcome, completed("done"));
    let logged =
        ToolProgress { level: Some("warning".into()), message: Some("stock: low".into()), ..ToolProgress::default() };
    assert_eq!(received, [progressed(1.0, 2.0, "picking"), logged, progressed(2.0, 2.0, "packed")]);
}

#[tokio::test]
async fn the_observer_gets_the_beginning_progress_and_end_of_a_call() {
    let server = ScriptedServer::answering_calls(|call| {
        events([progress(call, json!({"progress": 1, "total": 2, "message": "picking"})), event(&done(call))])
    });
    let (observer, seen) = recording_observer();
    let client = client(&server.start().await).with_observer(&observer);
    assert_eq!(call(&client, "refund", "{}").await, completed("done"));
    let refund = || "refund".to_owned();
    let expected = [
        Progress::ToolCalled(refund()),
        Progress::ToolProgressed(progressed(1.0, 2.0, "picking")),
        Progress::ToolEnded(refund()),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn endless_progress_is_bounded_and_does_not_extend_the_timeout() {
    let server = ScriptedServer::answering_calls(|call| {
        let message = "x".repeat(2000);
        let endless = progress(call, json!({"progress": 1, "message": message}));
        event_stream(stream::iter((0..100).map(move |_| Ok(endless.clone()))).chain(stream::pending()))
    });
    let client = client(&server.start().await);
    let (outcome, received) = call_with_progress(&client, "refund", Duration::from_millis(500)).await;
    assert!(matches!(outcome, CallOutcome::Indeterminate { .. }), "{outcome:?}");
    let sizes: Vec<_> = received.iter().map(|progress| progress.message.as_ref().unwrap().len()).collect();
    assert!(sizes.len() <= 100 && sizes.iter().all(|size| *size <= 512), "{sizes:?}");
}

#[tokio::test]
async fn progress_before_and_after_a_stream_was_resumed_belongs_to_the_call() {
    let call = Arc::new(Mutex::new(Value::Null));
    let server = {
        let (sent, resumed) = (call.clone(), call);
        ScriptedServer::answering_calls(move |call| {
            *sent.lock().unwrap() = call.clone();
            let first = progress(call, json!({"progress": 1, "total": 2, "message": "a"}));
            cut_events([format!("id: e-1\nretry: 1\n{first}")])
        })
        .with_resume(move |_| {
            let call = resumed.lock().unwrap().clone();
            let log = json!({"level": "info", "data": "back"});
            events([notification("notifications/message", &log), event(&done(&call))])
        })
    };
    let (outcome, received) = call_with_progress(&client(&server.start().await), "refund", LONG_TIMEOUT).await;
    assert_eq!(outcome, completed("done"));
    let logged = ToolProgress { level: Some("info".into()), message: Some("back".into()), ..ToolProgress::default() };
    assert_eq!(received, [progressed(1.0, 2.0, "a"), logged]);
}

#[tokio::test]
async fn the_listener_gets_progress_while_the_call_runs() {
    let received = Arc::new(tokio::sync::Notify::new());
    let server = {
        let received = received.clone();
        ScriptedServer::answering_calls(move |call| {
            let (received, last) = (received.clone(), event(&done(call)));
            let first = progress(call, json!({"progress": 1, "total": 2, "message": "picking"}));
            // The server answers after the client received the progress.
            let answer = stream::once(async move {
                received.notified().await;
                Ok(last)
            });
            event_stream(stream::iter([Ok(first)]).chain(answer))
        })
    };
    let client = client(&server.start().await);
    let called = call_and_listen(&client, ("refund", "{}"), LONG_TIMEOUT, false, &|_| received.notify_one()).await;
    assert_eq!(called.outcome, completed("done"));
}

/// Creates a server that cancels the request `id(call)` and gives no answer. Before that, it sends requests with the same id and the
/// methods `requests`.
fn cancelling(id: fn(&Value) -> Value, requests: &'static [&'static str]) -> ScriptedServer {
    ScriptedServer::answering_calls(move |call| {
        let params = json!({"requestId": id(call), "reason": "shutting down"});
        let requests = requests
            .iter()
            .map(|method| event(&json!({"jsonrpc": "2.0", "id": id(call), "method": method, "params": {}})));
        let parts: Vec<_> = requests.chain([notification("notifications/cancelled", &params)]).map(Ok).collect();
        event_stream(stream::iter(parts).chain(stream::pending()))
    })
}

#[tokio::test]
async fn a_call_that_its_server_cancels_is_indeterminate_at_once() {
    let server = cancelling(|call| call["id"].clone(), &[]);
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.ends_with("it cancelled the call: shutting down"), "{text}");
    assert_eq!(server.count("tools/call"), 1);
}

#[rstest]
#[case::another_request(cancelling(|_| json!(999), &[]))]
#[case::a_request_of_its_own(cancelling(|call| call["id"].clone(), &["ping"]))]
#[tokio::test]
async fn the_cancellation_of_another_request_does_not_end_the_call(#[case] server: ScriptedServer) {
    let client = client(&server.start().await);
    let outcome = call_within(&client, "refund", "{}", Duration::from_millis(500)).await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("it did not answer within"), "{text}");
}

#[tokio::test]
async fn an_image_is_kept_and_structured_content_is_not_repeated() {
    let server = ScriptedServer::answering_calls(|call| {
        json(&answer(
            call,
            &json!({
                "content": [
                    {"type": "text", "text": "{ \"total\": 3 }"},
                    {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
                ],
                "structuredContent": {"total": 3},
            }),
        ))
    });
    let outcome = call(&client(&server.start().await), "get", "{}").await;
    let handle = Digest::of_bytes(b"hello");
    let text = format!("{{\"total\":3}}\n[image, image/png, 5 bytes, kept as {handle}; it is not text]");
    let (structured, media) = (Some(json!({"total": 3})), vec![b"hello".to_vec()]);
    assert_eq!(outcome, CallOutcome::Completed { text, structured, media });
}

/// Returns a response that begins with `head` and then sends a space every 20 ms without end.
fn endless_response(head: &'static str, kind: &'static str) -> Response {
    use axum::response::IntoResponse;
    let spaces = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Some((Ok::<_, std::io::Error>(" "), ()))
    });
    let body = axum::body::Body::from_stream(stream::iter([Ok(head)]).chain(spaces));
    ([("content-type", kind)], body).into_response()
}

#[rstest]
#[case::an_endless_body(|_: &Value| endless_response("{", "application/json"))]
#[case::endless_keep_alives(|_: &Value| {
    let alive = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Some((Ok(": alive\n\n".to_owned()), ()))
    });
    event_stream(alive)
})]
#[tokio::test]
async fn an_endless_answer_does_not_extend_the_timeout(#[case] respond: fn(&Value) -> Response) {
    let server = ScriptedServer::answering_calls(respond);
    let client = client(&server.start().await);
    let outcome = call_within(&client, "refund", "{}", Duration::from_millis(400)).await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("it did not answer within"), "{text}");
    assert_eq!(server.count("tools/call"), 1);
}

/// Returns an observer, and the progress that it has received so far.
fn recording_observer() -> (ProgressObserver, Arc<std::sync::Mutex<Vec<Progress>>>) {
    let received = Arc::<std::sync::Mutex<Vec<Progress>>>::default();
    let sink = received.clone();
    (ProgressObserver::new(move |progress| sink.lock().unwrap().push(progress)), received)
}
