//! What goes with a call, and what comes beside its answer.

use super::rude::{Rude, answer, cut_events, done, event, event_stream, events, json};
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

/// A notification of progress with the token of a call.
fn progress(call: &Value, params: Value) -> String {
    let mut params = params;
    params["progressToken"] = call["params"]["_meta"]["progressToken"].clone();
    notification("notifications/progress", &params)
}

fn progressed(progress: f64, total: f64, message: &str) -> ToolProgress {
    ToolProgress { progress: Some(progress), total: Some(total), level: None, message: Some(message.into()) }
}

#[tokio::test]
async fn a_call_tells_its_key_and_what_the_job_binds_but_no_secret() {
    let server = Rude::calls(|call| json(&done(call)));
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
    let meta = server.last("tools/call")["params"]["_meta"].clone();
    assert_eq!(meta["bloomery.dev/callKey"], Digest::of_bytes(b"the key").as_str());
    let told = json!([{"name": "docs", "type": "api_endpoint", "url": "https://docs.example"}]);
    assert_eq!(meta["bloomery.dev/resources"], told);
    assert!(!server.last("tools/call").to_string().contains("ci"), "nothing of the secret");
}

#[tokio::test]
async fn progress_and_log_of_a_call_are_told_and_those_of_others_are_not() {
    let server = Rude::calls(|call| {
        let log = json!({"level": "warning", "logger": "stock", "data": "low"});
        events([
            progress(call, json!({"progress": 1, "total": 2, "message": "picking"})),
            notification("notifications/progress", &json!({"progressToken": "another", "progress": 7})),
            notification("notifications/message", &log),
            progress(call, json!({"progress": 2, "total": 2, "message": "packed"})),
            event(&done(call)),
        ])
    });
    let (outcome, told) = followed(&client(&server.start().await), "refund", PLENTY).await;
    assert_eq!(outcome, completed("done"));
    let logged =
        ToolProgress { level: Some("warning".into()), message: Some("stock: low".into()), ..ToolProgress::default() };
    assert_eq!(told, [progressed(1.0, 2.0, "picking"), logged, progressed(2.0, 2.0, "packed")]);
}

#[tokio::test]
async fn an_onlooker_sees_a_call_from_its_begin_to_its_end() {
    let server = Rude::calls(|call| {
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
async fn progress_without_an_end_takes_no_room_and_no_time() {
    let server = Rude::calls(|call| {
        let message = "x".repeat(2000);
        let endless = progress(call, json!({"progress": 1, "message": message}));
        event_stream(stream::iter((0..100).map(move |_| Ok(endless.clone()))).chain(stream::pending()))
    });
    let client = client(&server.start().await);
    let (outcome, told) = followed(&client, "refund", Duration::from_millis(500)).await;
    assert!(matches!(outcome, CallOutcome::Indeterminate { .. }), "{outcome:?}");
    let sizes: Vec<_> = told.iter().map(|told| told.message.as_ref().unwrap().len()).collect();
    assert!(sizes.len() <= 100 && sizes.iter().all(|size| *size <= 512), "{sizes:?}");
}

#[tokio::test]
async fn what_was_told_before_a_stream_broke_belongs_to_the_call_and_so_does_what_comes_after() {
    let asked = Arc::new(Mutex::new(Value::Null));
    let server = {
        let (asked, resumed) = (asked.clone(), asked);
        Rude::calls(move |call| {
            *asked.lock().unwrap() = call.clone();
            let first = progress(call, json!({"progress": 1, "total": 2, "message": "a"}));
            cut_events([format!("id: e-1\nretry: 1\n{first}")])
        })
        .resumes(move |_| {
            let call = resumed.lock().unwrap().clone();
            let log = json!({"level": "info", "data": "back"});
            events([notification("notifications/message", &log), event(&done(&call))])
        })
    };
    let (outcome, told) = followed(&client(&server.start().await), "refund", PLENTY).await;
    assert_eq!(outcome, completed("done"));
    let logged = ToolProgress { level: Some("info".into()), message: Some("back".into()), ..ToolProgress::default() };
    assert_eq!(told, [progressed(1.0, 2.0, "a"), logged]);
}

#[tokio::test]
async fn what_is_told_of_a_call_is_heard_while_it_is_under_way() {
    let heard = Arc::new(tokio::sync::Notify::new());
    let server = {
        let heard = heard.clone();
        Rude::calls(move |call| {
            let (heard, last) = (heard.clone(), event(&done(call)));
            let first = progress(call, json!({"progress": 1, "total": 2, "message": "picking"}));
            // The answer waits for who hears the progress.
            let answer = stream::once(async move {
                heard.notified().await;
                Ok(last)
            });
            event_stream(stream::iter([Ok(first)]).chain(answer))
        })
    };
    let client = client(&server.start().await);
    let called = called_by(&client, ("refund", "{}"), PLENTY, false, &|_| heard.notify_one()).await;
    assert_eq!(called.outcome, completed("done"));
}

/// A server that gives a call up: `{ID}` is what it calls it, and then it says nothing more.
fn gives_up(id: fn(&Value) -> Value, before: &'static [&'static str]) -> Rude {
    Rude::calls(move |call| {
        let params = json!({"requestId": id(call), "reason": "shutting down"});
        let before = before
            .iter()
            .map(|method| event(&json!({"jsonrpc": "2.0", "id": id(call), "method": method, "params": {}})));
        let parts: Vec<_> = before.chain([notification("notifications/cancelled", &params)]).map(Ok).collect();
        event_stream(stream::iter(parts).chain(stream::pending()))
    })
}

#[tokio::test]
async fn a_call_that_its_server_gives_up_is_indeterminate_at_once() {
    let server = gives_up(|call| call["id"].clone(), &[]);
    let outcome = call(&client(&server.start().await), "refund", "{}").await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.ends_with("it gave the call up: shutting down"), "{text}");
    assert_eq!(server.times("tools/call"), 1);
}

#[rstest]
#[case::another_request(gives_up(|_| json!(999), &[]))]
#[case::a_request_of_its_own(gives_up(|call| call["id"].clone(), &["ping"]))]
#[tokio::test]
async fn what_is_given_up_is_another_request(#[case] server: Rude) {
    let client = client(&server.start().await);
    let outcome = call_within(&client, "refund", "{}", Duration::from_millis(500)).await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("it did not answer within"), "{text}");
}

#[tokio::test]
async fn images_are_kept_apart_and_structure_is_told_once() {
    let server = Rude::calls(|call| {
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
    let text = format!("{{\"total\":3}}\n[image, image/png, 5 bytes, kept as {handle}; it is no text]");
    let (structured, media) = (Some(json!({"total": 3})), vec![b"hello".to_vec()]);
    assert_eq!(outcome, CallOutcome::Completed { text, structured, media });
}

/// Answers after the first byte, slowly, for ever.
fn slowly(head: &'static str, kind: &'static str) -> Response {
    use axum::response::IntoResponse;
    let drops = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Some((Ok::<_, std::io::Error>(" "), ()))
    });
    let body = axum::body::Body::from_stream(stream::iter([Ok(head)]).chain(drops));
    ([("content-type", kind)], body).into_response()
}

#[rstest]
#[case::a_body_drop_by_drop(|_: &Value| slowly("{", "application/json"))]
#[case::keep_alives_for_ever(|_: &Value| {
    let alive = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Some((Ok(": alive\n\n".to_owned()), ()))
    });
    event_stream(alive)
})]
#[tokio::test]
async fn whoever_only_seems_to_answer_is_given_up_in_time(#[case] act: fn(&Value) -> Response) {
    let server = Rude::calls(act);
    let client = client(&server.start().await);
    let outcome = call_within(&client, "refund", "{}", Duration::from_millis(400)).await;
    let CallOutcome::Indeterminate { text } = &outcome else { panic!("{outcome:?}") };
    assert!(text.contains("it did not answer within"), "{text}");
    assert_eq!(server.times("tools/call"), 1);
}

/// Returns an observer, and the progress that it has received so far.
fn recording_observer() -> (ProgressObserver, Arc<std::sync::Mutex<Vec<Progress>>>) {
    let received = Arc::<std::sync::Mutex<Vec<Progress>>>::default();
    let sink = received.clone();
    (ProgressObserver::new(move |progress| sink.lock().unwrap().push(progress)), received)
}
