//! Tests of the client of one Model against servers on sockets.

use super::*;
use crate::fixture::{
    Reply, Server, answer_schema, claude, completion, endpoint, event_stream, events, request, response, retry_policy,
};
use axum::Router;
use axum::body::Body;
use axum::http::header;
use axum::response::IntoResponse;
use bloomery_crds::run::KeyFile;
use bloomery_engine::history::{ModelMessage, Turn};
use bloomery_http::address::AddressPolicy;
use bloomery_redact::Redactor;
use bloomery_testkit::local_server;
use futures::{StreamExt, stream};
use rstest::rstest;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};

const LONG_TIMEOUT: Duration = Duration::from_mins(1);

fn transports() -> Arc<Transports> {
    Arc::new(Transports::new(AddressPolicy::for_local_machine()))
}

fn client_of(endpoint: &ModelEndpoint, retry_policy: RetryPolicy) -> Client {
    // Another test may have installed the provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new(endpoint, "uid-1", retry_policy, transports(), Redactor::default()).unwrap()
}

fn client(base_url: &str) -> Client {
    client_of(&endpoint(base_url), retry_policy(LONG_TIMEOUT))
}

/// Sends a request, and returns the error that the user of a Model without fallbacks gets.
async fn ask_request(client: &Client, request: &ModelRequest<'_>) -> Result<Answer, Error> {
    client
        .ask(request, (LONG_TIMEOUT, client.retry_policy.total), &ignored_pauses())
        .await
        .map_err(ModelError::into_final)
}

/// Asks the Model, and returns the outcome and the reported waits.
async fn ask(client: &Client) -> (Result<Answer, Error>, Vec<ExternalWait>) {
    let waits = Mutex::new(Vec::new());
    let record = |wait| waits.lock().unwrap().push(wait);
    let outcome = ask_within(client, LONG_TIMEOUT, &Pauses::new(&record)).await;
    (outcome, waits.into_inner().unwrap())
}

async fn ask_within(client: &Client, within: Duration, pauses: &Pauses<'_>) -> Result<Answer, Error> {
    let turns = [Turn::User("Refund A-17".into())];
    client.ask(&request(&turns), (within, client.retry_policy.total), pauses).await.map_err(ModelError::into_final)
}

/// Returns pauses whose reports are ignored.
fn ignored_pauses() -> Pauses<'static> {
    Pauses::new(&|_| {})
}

fn unavailable(message: &str) -> ExternalWait {
    ExternalWait::ModelUnavailable { message: message.to_owned() }
}

#[tokio::test]
async fn an_answer_is_read_without_a_wait() {
    let (server, url) = Server::start([completion("Done")]).await;
    let (outcome, waits) = ask(&client(&url)).await;
    assert_eq!(outcome.unwrap().text, "Done");
    assert_eq!(waits, []);
    let (headers, body) = server.requests().remove(0);
    assert_eq!(headers[header::CONTENT_TYPE], "application/json");
    assert_eq!(headers.get(header::AUTHORIZATION), None);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["model"], &body["user"]), (&json!("gpt-5"), &json!("uid-1")));
}

#[tokio::test]
async fn temporary_errors_are_retried() {
    let (server, url) = Server::start([
        response(429, r#"{"error":{"message":"slow down"}}"#),
        response(500, ""),
        response(529, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        Reply::Cut,
        response(404, "no such model"),
        completion("Done"),
    ])
    .await;
    let (outcome, waits) = ask(&client(&url)).await;
    assert_eq!(outcome.unwrap().text, "Done");
    assert_eq!(server.request_count(), 6);
    assert_eq!(waits.len(), 5, "{waits:?}");
    let model = format!("the Model `default` (gpt-5 at {url})");
    assert_eq!(waits[0], unavailable(&format!("{model} limits the rate of requests: it answered HTTP 429: slow down")));
    assert_eq!(waits[1], unavailable(&format!("{model} answered HTTP 500")));
    assert_eq!(waits[2], unavailable(&format!("{model} answered HTTP 529: Overloaded")));
    let ExternalWait::ModelUnavailable { message } = &waits[3] else { panic!("{:?}", waits[3]) };
    assert!(message.contains("did not finish: the answer was cut off"), "{message}");
    let bodies: Vec<_> = server.requests().into_iter().map(|(_, body)| body).collect();
    assert!(bodies.iter().all(|body| body == &bodies[0]));
}

#[tokio::test]
async fn a_delay_that_the_server_requests_is_respected() {
    let date = "Fri, 31 Dec 9998 23:59:59 GMT";
    for value in ["3600", date] {
        let busy = Reply::Response(429, vec![("retry-after", value.into())], String::new());
        let (server, url) = Server::start([busy, completion("Done")]).await;
        // The delay is longer than the total time, so there is one more try at the end. With short delays, there would be dozens of tries.
        let (outcome, _) = ask(&client_of(&endpoint(&url), retry_policy(Duration::from_millis(200)))).await;
        assert_eq!(outcome.unwrap().text, "Done");
        assert_eq!(server.request_count(), 2);
    }
    let busy = || Reply::Response(503, vec![("retry-after", "0".into())], String::new());
    let (server, url) = Server::start([busy(), busy(), completion("Done")]).await;
    assert!(ask(&client(&url)).await.0.is_ok());
    assert_eq!(server.request_count(), 3);
}

#[tokio::test]
async fn the_time_of_pauses_is_counted_separately() {
    let busy = Reply::Response(429, vec![("retry-after", "0.2".into())], String::new());
    let (_server, url) = Server::start([busy, completion("Done")]).await;
    let pauses = ignored_pauses();
    assert!(ask_within(&client(&url), LONG_TIMEOUT, &pauses).await.is_ok());
    assert!(pauses.total() >= Duration::from_millis(200), "{:?}", pauses.total());
}

#[tokio::test]
async fn after_the_total_time_the_error_has_the_last_reason() {
    let (server, url) = Server::start([response(503, "down")]).await;
    let (outcome, waits) = ask(&client_of(&endpoint(&url), retry_policy(Duration::from_millis(20)))).await;
    let failure = outcome.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
    let start = format!("The Model `default` (gpt-5 at {url}) answered HTTP 503: down. It was tried ");
    assert!(
        failure.message.starts_with(&start) && failure.message.ends_with(" s. Fix the cause, and start the Job again."),
        "{failure}"
    );
    assert_eq!(waits.len(), server.request_count() - 1);
}

#[tokio::test]
async fn retries_end_when_no_time_for_requests_is_left() {
    let (_server, url) = Server::start([response(503, "down")]).await;
    let failure = ask_within(&client(&url), Duration::from_millis(20), &ignored_pauses()).await.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
}

#[tokio::test]
async fn a_request_to_a_server_that_hangs_times_out() {
    let (server, url) = Server::start([Reply::Hang]).await;
    let failure = ask_within(&client(&url), Duration::from_millis(100), &ignored_pauses()).await.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
    assert!(failure.message.contains("did not answer within"), "{failure}");
    assert_eq!(server.request_count(), 1);
}

#[tokio::test]
async fn the_error_of_an_unreachable_server_names_the_model() {
    let url = format!("http://{}", local_server::unused_address().await);
    let (outcome, waits) = ask(&client_of(&endpoint(&url), retry_policy(Duration::from_millis(10)))).await;
    let failure = outcome.unwrap_err();
    assert!(failure.message.starts_with("The Model `default` "), "{failure}");
    assert!(failure.message.contains("cannot be reached: Connection refused"), "{failure}");
    assert!(waits.len() > 1);
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    for (status, body, reason) in [
        (422, r#"{"detail":"no such field"}"#.to_owned(), "no such field"),
        (307, String::new(), "Redirects are not followed"),
    ] {
        let (server, url) = Server::start([response(status, body)]).await;
        let (outcome, waits) = ask(&client(&url)).await;
        let failure = outcome.unwrap_err();
        assert_eq!(failure.kind, ModelFailure::Unavailable);
        assert!(failure.message.contains(reason), "{failure}");
        assert_eq!((server.request_count(), waits.len()), (1, 0));
    }
}

#[tokio::test]
async fn an_unreadable_answer_is_returned_without_a_retry() {
    for (reply, reason) in [
        (response(200, "<html>Welcome</html>"), "<html>Welcome</html>"),
        (response(200, r#"{"choices":[]}"#), "no choice"),
        (response(200, r#"{"error":{"message":"quota is spent"}}"#), "it is an error: quota is spent"),
        (response(200, "x".repeat(10 * 1024 * 1024)), "larger than 2097152 bytes"),
    ] {
        let (server, url) = Server::start([reply]).await;
        let (outcome, waits) = ask(&client(&url)).await;
        let failure = outcome.unwrap_err();
        assert_eq!(failure.kind, ModelFailure::Unreadable);
        assert!(failure.message.starts_with("The Model `default` ") && failure.message.ends_with('.'), "{failure}");
        assert!(failure.message.contains(reason), "{failure}");
        assert!(failure.message.len() < 600);
        assert_eq!((server.request_count(), waits.len()), (1, 0));
    }
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let router = Router::new().fallback(|| async {
        Body::from_stream(stream::repeat_with(|| Ok::<_, io::Error>(vec![b' '; 64 * 1024]))).into_response()
    });
    let url = local_server::serve(router).await;
    let failure = ask(&client(&url)).await.0.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unreadable);
}

/// Returns a client with a key, the directory of the key's file, and the path of that file.
fn client_with_key(url: &str, key: Option<&str>) -> (Client, tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    if let Some(key) = key {
        std::fs::write(&path, key).unwrap();
    }
    let file = KeyFile { path: path.to_str().unwrap().into(), secret: "llm".into(), key: "token".into() };
    let endpoint = ModelEndpoint { api_key: Some(file), ..endpoint(url) };
    (client_of(&endpoint, retry_policy(LONG_TIMEOUT)), dir, path)
}

#[tokio::test]
async fn a_corrected_key_takes_effect_without_a_restart() {
    let refusal = r#"{"error":{"message":"Incorrect API key provided: sk-wrong."}}"#;
    let (server, url) = Server::start([response(401, refusal), completion("Done")]).await;
    let (client, _dir, path) = client_with_key(&url, Some("sk-wrong\n"));
    let waits = Mutex::new(Vec::new());
    let correct_key = |wait: ExternalWait| {
        std::fs::write(&path, "sk-right\n").unwrap();
        waits.lock().unwrap().push(wait);
    };
    let answer = ask_within(&client, LONG_TIMEOUT, &Pauses::new(&correct_key)).await.unwrap();
    assert_eq!(answer.text, "Done");
    let keys: Vec<_> = server.requests().iter().map(|(headers, _)| headers[header::AUTHORIZATION].clone()).collect();
    assert_eq!(keys, ["Bearer sk-wrong", "Bearer sk-right"]);
    let waits = waits.into_inner().unwrap();
    let [ExternalWait::ModelUnavailable { message }] = &waits[..] else { panic!("{waits:?}") };
    let reason = "answered HTTP 401: Incorrect API key provided: [redacted: default]. Check its key";
    assert!(message.ends_with(reason), "{message}");
    assert!(!message.contains("sk-wrong"), "{message}");
}

#[rstest]
#[case(401)]
#[case(403)]
#[tokio::test]
async fn a_wrong_key_that_nobody_corrects_is_tried_once(#[case] status: u16) {
    let (server, url) = Server::start([response(status, "no"), completion("Done")]).await;
    let (client, _dir, _path) = client_with_key(&url, Some("sk-wrong\n"));
    let client = Client { retry_policy: client.retry_policy.clone().without_key_corrections(), ..client };
    let failure = ask(&client).await.0.unwrap_err();
    assert!(failure.message.contains(&format!("answered HTTP {status}: no. Check its key")), "{failure}");
    assert_eq!(server.request_count(), 1);
}

#[tokio::test]
async fn the_key_is_redacted_in_the_quote_of_an_unreadable_answer() {
    for body in [r#""Incorrect API key sk-secret-of-ours""#, r#"{"choices":"bad key sk-secret-of-ours"}"#] {
        let (_server, url) = Server::start([response(200, body)]).await;
        let (client, _dir, _path) = client_with_key(&url, Some("sk-secret-of-ours\n"));
        let failure = ask(&client).await.0.unwrap_err();
        assert!(!failure.message.contains("sk-secret"), "{failure}");
    }
}

/// The texts of the main loop are redacted when they become events. The prompts of other stages do not come from events.
#[tokio::test]
async fn requests_of_other_stages_than_the_main_loop_are_redacted() {
    let (server, url) = Server::start([completion("{}")]).await;
    let (client, _dir, _path) = client_with_key(&url, Some("sk-\"of\"-ours"));
    let system = r#"Never send sk-"of"-ours."#;
    let turns = [Turn::User(r#"May "sk-"of"-ours" be sent?"#.into())];
    let request = ModelRequest { stage: Stage::Finalization, system: system.into(), ..request(&turns) };
    client.ask(&request, (LONG_TIMEOUT, LONG_TIMEOUT), &ignored_pauses()).await.unwrap();
    let body = String::from_utf8(server.requests().remove(0).1).unwrap();
    assert!(body.contains("Never send [redacted: ") && !body.contains("-ours"), "{body}");
}

#[tokio::test]
async fn no_request_is_sent_until_a_missing_key_exists() {
    let (server, url) = Server::start([completion("Done")]).await;
    let (client, _dir, path) = client_with_key(&url, None);
    let missing = ExternalWait::SecretMissing { name: "llm".into(), key: "token".into(), until: None };
    assert_eq!(client.missing_secret(), Some(missing.clone()));
    let waits = Mutex::new(Vec::new());
    let write_key = |wait: ExternalWait| {
        std::fs::write(&path, "sk-late").unwrap();
        waits.lock().unwrap().push(wait);
    };
    assert!(ask_within(&client, LONG_TIMEOUT, &Pauses::new(&write_key)).await.is_ok());
    assert_eq!(waits.into_inner().unwrap(), [missing]);
    assert_eq!(server.request_count(), 1);
    assert_eq!(client.missing_secret(), None);
}

#[tokio::test]
async fn the_wait_for_a_missing_key_ends_after_the_total_time() {
    let (mut client, _dir, _path) = client_with_key("http://127.0.0.1:9", None);
    client.retry_policy.total = Duration::from_millis(10);
    let failure = ask(&client).await.0.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
    assert!(failure.message.contains("needs the key `token` of the Secret `llm`"), "{failure}");
}

#[tokio::test]
async fn a_request_begins_with_the_bytes_of_the_previous_one() {
    let first_answer = json!({"choices": [{"message": {"role": "assistant", "content": null, "refusal": null, "x": 0.1,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"z\":1,\"a\":2}"}}]}}]});
    let (server, url) = Server::start([response(200, first_answer.to_string()), completion("Done")]).await;
    let client = client(&url);
    let mut turns = vec![Turn::User("Refund A-17".into())];
    let answer = ask_request(&client, &request(&turns)).await.unwrap();
    // After a restart, the engine reads the answer from the log.
    let answer: Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    turns.push(Turn::Assistant(ModelMessage::from(&answer)));
    turns.push(Turn::ToolResult { id: "c1".into(), text: "paid".into() });
    ask_request(&client, &request(&turns)).await.unwrap();
    let [(_, first), (_, second)] = server.requests().try_into().unwrap();
    let prefix = first.strip_suffix(b"]}").unwrap();
    assert!(second.starts_with(prefix) && second[prefix.len()] == b',');
}

/// Notifies when it is dropped.
struct NotifyOnDrop(Arc<tokio::sync::Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn dropping_the_future_drops_the_request() {
    let dropped = Arc::new(tokio::sync::Notify::new());
    let received = Arc::new(tokio::sync::Notify::new());
    let router = Router::new().fallback({
        let (dropped, received) = (dropped.clone(), received.clone());
        move || async move {
            let _notify = NotifyOnDrop(dropped);
            received.notify_one();
            std::future::pending::<()>().await;
        }
    });
    let client = client(&local_server::serve(router).await);
    tokio::select! {
        _ = ask(&client) => panic!("answered"),
        () = received.notified() => {}
    }
    // The server detects the closed connection, and drops the handler.
    dropped.notified().await;
}

#[test]
fn an_invalid_url_is_refused() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    for url in ["", "models.example", "ftp://models.example"] {
        let error =
            Client::new(&endpoint(url), "uid-1", RetryPolicy::new(LONG_TIMEOUT), transports(), Redactor::default())
                .unwrap_err();
        assert!(error.to_string().contains("is not an http or https URL"), "{error}");
    }
    assert!(
        Client::new(
            &endpoint("https://models.example/v1"),
            "uid-1",
            RetryPolicy::new(LONG_TIMEOUT),
            transports(),
            Redactor::default()
        )
        .is_ok()
    );
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_returned_without_a_retry() {
    let long = r#"{"error":{"message":"maximum context length is 128000 tokens","code":"context_length_exceeded"}}"#;
    for reply in [response(400, long), response(413, ""), response(200, long)] {
        let (server, url) = Server::start([reply]).await;
        let (outcome, waits) = ask(&client(&url)).await;
        let failure = outcome.unwrap_err();
        assert_eq!(failure.kind, ModelFailure::TooLong);
        assert!(failure.message.contains("The conversation is longer than the model's context window."), "{failure}");
        assert_eq!((server.request_count(), waits.len()), (1, 0));
    }
}

/// Returns the events of a streamed answer of OpenAI, without `[DONE]`.
fn openai_events(text: &str) -> String {
    let chunk =
        |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    events(&[chunk(json!({"role": "assistant", "content": text}), Value::Null), chunk(json!({}), json!("stop"))])
}

/// Returns the events of a streamed answer of Anthropic.
fn anthropic_events(text: &str) -> String {
    events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ])
}

#[tokio::test]
async fn a_stream_is_read_to_its_end_and_one_that_breaks_off_is_retried() {
    let whole = openai_events("Done") + "data: [DONE]\n\n";
    let without_empty_line = openai_events("Done") + "data: [DONE]";
    let broken = r#"data: {"error":{"type":"server_error","message":"gone"}}"#.to_owned() + "\n\n";
    for end in [whole, without_empty_line] {
        let replies = [
            event_stream(openai_events("Done")),
            Reply::Cut,
            event_stream(openai_events("Do") + &broken),
            event_stream(end),
        ];
        let (server, url) = Server::start(replies).await;
        let (outcome, waits) = ask(&client(&url)).await;
        assert_eq!(outcome.unwrap().text, "Done");
        assert_eq!((server.request_count(), waits.len()), (4, 3));
        let ExternalWait::ModelUnavailable { message } = &waits[0] else { panic!("{waits:?}") };
        assert!(message.ends_with("did not finish: the answer was cut off: the stream ended before the answer did"));
        let ExternalWait::ModelUnavailable { message } = &waits[2] else { panic!("{waits:?}") };
        assert!(message.ends_with("broke off with an error: gone"), "{message}");
    }
}

#[tokio::test]
async fn a_request_to_anthropic_uses_its_protocol() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let replies = [
        response(529, overloaded.to_string()),
        event_stream(events(&[overloaded])),
        event_stream(anthropic_events("Do").replace("message_stop", "ping")),
        event_stream(anthropic_events("Done")),
    ];
    let (server, url) = Server::start(replies).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "sk-ant\n").unwrap();
    let key = KeyFile { path: path.to_str().unwrap().into(), secret: "llm".into(), key: "token".into() };
    let client = client_of(&ModelEndpoint { api_key: Some(key), ..claude(&url) }, retry_policy(LONG_TIMEOUT));
    let (outcome, waits) = ask(&client).await;
    let answer = outcome.unwrap();
    assert_eq!((answer.text.as_str(), answer.input_tokens, answer.output_tokens), ("Done", Some(7), Some(3)));
    assert_eq!(waits.len(), 3, "{waits:?}");
    let (headers, body) = server.requests().remove(0);
    assert_eq!(
        (&headers["x-api-key"], &headers["anthropic-version"]),
        (&"sk-ant".parse().unwrap(), &"2023-06-01".parse().unwrap())
    );
    assert_eq!(headers.get(header::AUTHORIZATION), None);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["model"], &body["metadata"]["user_id"]), (&json!("claude-sonnet-5"), &json!("uid-1")));
}

#[tokio::test]
async fn a_stream_that_is_too_large_is_not_read_to_its_end() {
    let content = openai_events(&"x".repeat(64 * 1024));
    for body in [content.repeat(160), format!("data: {}", "x".repeat(10 * 1024 * 1024))] {
        let (server, url) = Server::start([event_stream(body)]).await;
        let failure = ask(&client(&url)).await.0.unwrap_err();
        assert_eq!((failure.kind, server.request_count()), (ModelFailure::Unreadable, 1));
        assert!(failure.message.contains("larger than 2097152 bytes"), "{failure}");
    }
}

#[tokio::test]
async fn a_stream_times_out_only_if_no_part_arrives() {
    let requests = Arc::new(Mutex::new(0));
    let router = Router::new().fallback(move || {
        let number = {
            let mut requests = requests.lock().unwrap();
            *requests += 1;
            *requests
        };
        async move {
            // The whole stream takes longer than the timeout, but each part arrives earlier.
            let slow = stream::iter(0..8).then(|_| async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok::<_, io::Error>(openai_events("x"))
            });
            let end = if number == 1 {
                stream::pending().boxed()
            } else {
                stream::iter([Ok("data: [DONE]\n\n".to_owned())]).boxed()
            };
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(slow.chain(end))).into_response()
        }
    });
    let url = local_server::serve(router).await;
    let client = client_of(&ModelEndpoint { timeout_seconds: 1, ..endpoint(&url) }, retry_policy(LONG_TIMEOUT));
    let (outcome, waits) = ask(&client).await;
    assert_eq!(outcome.unwrap().text, "x".repeat(8));
    let [ExternalWait::ModelUnavailable { message }] = waits.as_slice() else { panic!("{waits:?}") };
    assert!(message.ends_with("did not answer within 1 s"), "{message}");
}

#[tokio::test]
async fn a_rejected_field_is_left_out_of_later_requests() {
    let rejects = |field: &str| {
        response(400, json!({"error": {"message": format!("Unsupported parameter: '{field}'")}}).to_string())
    };
    let replies = [
        rejects("stream_options"),
        response(422, r#"{"detail":"`stream` is not supported"}"#),
        rejects("temperature"),
        rejects("anything else"),
        completion("Done"),
        completion("Done again"),
        rejects("anything else"),
    ];
    let (server, url) = Server::start(replies).await;
    let client = client(&url);
    let turns = [Turn::User("Refund A-17".into())];
    let full_request =
        || ModelRequest { temperature: Some(0.1), answer_schema: Some(answer_schema()), ..request(&turns) };
    for expected in ["Done", "Done again"] {
        let answer = ask_request(&client, &full_request()).await.unwrap();
        assert_eq!(answer.text, expected);
    }
    let failure = ask_request(&client, &full_request()).await.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable, "no optional field is left: {failure}");
    let has = |body: &[u8], field: &str| serde_json::from_slice::<Value>(body).unwrap().get(field).is_some();
    let carried: Vec<Vec<&str>> = server
        .requests()
        .iter()
        .map(|(_, body)| {
            ["stream_options", "stream", "temperature", "response_format"]
                .into_iter()
                .filter(|field| has(body, field))
                .collect()
        })
        .collect();
    let all = ["stream_options", "stream", "temperature", "response_format"];
    assert_eq!(carried, [&all[..], &all[1..], &all[2..], &all[3..], &[], &[], &[]]);
}

#[tokio::test]
async fn the_error_of_a_filtered_answer_states_the_reason() {
    let filtered = json!({"choices": [{"message": {"content": "I"}, "finish_reason": "content_filter"}]});
    let (server, url) = Server::start([response(200, filtered.to_string())]).await;
    let failure = ask(&client(&url)).await.0.unwrap_err();
    assert_eq!((failure.kind, server.request_count()), (ModelFailure::Unavailable, 1));
    assert!(failure.message.contains("the provider's filter stopped it (content_filter)"), "{failure}");
}
