//! The client against a real server on a socket, for everything that a server does.

use super::*;
use crate::fixture::{Act, Server, claude, completion, endpoint, events, form, patience, request, say, streams};
use axum::Router;
use axum::body::Body;
use axum::http::header;
use axum::response::IntoResponse;
use bloomery_crds::run::KeyFile;
use bloomery_engine::history::{ModelMessage, Turn};
use bloomery_redact::Redactor;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const PLENTY: Duration = Duration::from_mins(1);

fn client_of(endpoint: &ModelEndpoint, patience: Patience) -> Client {
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new(endpoint, "uid-1", patience, Arc::default(), Redactor::default()).unwrap()
}

fn client(base_url: &str) -> Client {
    client_of(&endpoint(base_url), patience(PLENTY))
}

/// Asks as if there were no other Model.
async fn alone(client: &Client, request: &ModelRequest<'_>, waits: &Pauses<'_>) -> Result<Answer, Error> {
    client.ask(request, (PLENTY, client.patience.total), waits).await.map_err(ModelError::into_final)
}

/// Asks, and tells what the client said it was waiting for.
async fn ask(client: &Client) -> (Result<Answer, Error>, Vec<ExternalWait>) {
    let told = Mutex::new(Vec::new());
    let tell = |what| told.lock().unwrap().push(what);
    let outcome = ask_within(client, PLENTY, &Pauses::new(&tell)).await;
    (outcome, told.into_inner().unwrap())
}

async fn ask_within(client: &Client, within: Duration, waits: &Pauses<'_>) -> Result<Answer, Error> {
    let turns = [Turn::User("Refund A-17".into())];
    client.ask(&request(&turns), (within, client.patience.total), waits).await.map_err(ModelError::into_final)
}

/// Nobody listens.
fn unheard() -> Pauses<'static> {
    Pauses::new(&|_| {})
}

fn unavailable(message: &str) -> ExternalWait {
    ExternalWait::ModelUnavailable { message: message.to_owned() }
}

#[tokio::test]
async fn an_answer_is_read_and_nothing_was_waited_for() {
    let (server, url) = Server::start([completion("Done")]).await;
    let (outcome, told) = ask(&client(&url)).await;
    assert_eq!(outcome.unwrap().text, "Done");
    assert_eq!(told, []);
    let (headers, body) = server.asked().remove(0);
    assert_eq!(headers[header::CONTENT_TYPE], "application/json");
    assert_eq!(headers.get(header::AUTHORIZATION), None);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["model"], &body["user"]), (&json!("gpt-5"), &json!("uid-1")));
}

#[tokio::test]
async fn what_passes_is_tried_again_until_it_has_passed() {
    let (server, url) = Server::start([
        say(429, r#"{"error":{"message":"slow down"}}"#),
        say(500, ""),
        say(529, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        Act::Cut,
        say(404, "no such model"),
        completion("Done"),
    ])
    .await;
    let (outcome, told) = ask(&client(&url)).await;
    assert_eq!(outcome.unwrap().text, "Done");
    assert_eq!(server.times(), 6);
    assert_eq!(told.len(), 5, "{told:?}");
    let model = format!("the Model `default` (gpt-5 at {url})");
    assert_eq!(told[0], unavailable(&format!("{model} limits the rate of requests: it answered HTTP 429: slow down")));
    assert_eq!(told[1], unavailable(&format!("{model} answered HTTP 500")));
    assert_eq!(told[2], unavailable(&format!("{model} answered HTTP 529: Overloaded")));
    let ExternalWait::ModelUnavailable { message } = &told[3] else { panic!("{:?}", told[3]) };
    assert!(message.contains("did not finish: the answer was cut off"), "{message}");
    let bodies: Vec<_> = server.asked().into_iter().map(|(_, body)| body).collect();
    assert!(bodies.iter().all(|body| body == &bodies[0]));
}

#[tokio::test]
async fn a_pause_that_the_server_asks_for_is_kept() {
    let date = "Fri, 31 Dec 9998 23:59:59 GMT";
    for value in ["3600", date] {
        let busy = Act::Say(429, vec![("retry-after", value.into())], String::new());
        let (server, url) = Server::start([busy, completion("Done")]).await;
        // The pause is longer than the patience: one more try, at its end. Without it there would be dozens.
        let (outcome, _) = ask(&client_of(&endpoint(&url), patience(Duration::from_millis(200)))).await;
        assert_eq!(outcome.unwrap().text, "Done");
        assert_eq!(server.times(), 2);
    }
    let busy = || Act::Say(503, vec![("retry-after", "0".into())], String::new());
    let (server, url) = Server::start([busy(), busy(), completion("Done")]).await;
    assert!(ask(&client(&url)).await.0.is_ok());
    assert_eq!(server.times(), 3);
}

#[tokio::test]
async fn the_time_of_a_pause_is_told_apart_from_that_of_requests() {
    let busy = Act::Say(429, vec![("retry-after", "0.2".into())], String::new());
    let (_server, url) = Server::start([busy, completion("Done")]).await;
    let waits = unheard();
    assert!(ask_within(&client(&url), PLENTY, &waits).await.is_ok());
    assert!(waits.total() >= Duration::from_millis(200), "{:?}", waits.total());
}

#[tokio::test]
async fn patience_ends_with_the_last_reason() {
    let (server, url) = Server::start([say(503, "down")]).await;
    let (outcome, told) = ask(&client_of(&endpoint(&url), patience(Duration::from_millis(20)))).await;
    let failure = outcome.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
    let what = format!("The Model `default` (gpt-5 at {url}) answered HTTP 503: down. It was tried ");
    assert!(
        failure.message.starts_with(&what) && failure.message.ends_with(" s. Mend that, and make the Job anew."),
        "{failure}"
    );
    assert_eq!(told.len(), server.times() - 1);
}

#[tokio::test]
async fn the_time_that_is_left_ends_the_tries_too() {
    let (_server, url) = Server::start([say(503, "down")]).await;
    let failure = ask_within(&client(&url), Duration::from_millis(20), &unheard()).await.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let (server, url) = Server::start([Act::Hang]).await;
    let failure = ask_within(&client(&url), Duration::from_millis(100), &unheard()).await.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
    assert!(failure.message.contains("did not answer within"), "{failure}");
    assert_eq!(server.times(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_by_its_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (outcome, told) = ask(&client_of(&endpoint(&url), patience(Duration::from_millis(10)))).await;
    let failure = outcome.unwrap_err();
    assert!(failure.message.starts_with("The Model `default` "), "{failure}");
    assert!(failure.message.contains("cannot be reached: Connection refused"), "{failure}");
    assert!(told.len() > 1);
}

#[tokio::test]
async fn what_asking_again_cannot_mend_is_not_asked_again() {
    for (status, body, reason) in [
        (422, r#"{"detail":"no such field"}"#.to_owned(), "no such field"),
        (307, String::new(), "Redirects are not followed"),
    ] {
        let (server, url) = Server::start([say(status, body)]).await;
        let (outcome, told) = ask(&client(&url)).await;
        let failure = outcome.unwrap_err();
        assert_eq!(failure.kind, ModelFailure::Unavailable);
        assert!(failure.message.contains(reason), "{failure}");
        assert_eq!((server.times(), told.len()), (1, 0));
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_handed_back_at_once() {
    for (act, reason) in [
        (say(200, "<html>Welcome</html>"), "<html>Welcome</html>"),
        (say(200, r#"{"choices":[]}"#), "no choice"),
        (say(200, r#"{"error":{"message":"quota is spent"}}"#), "it is an error: quota is spent"),
        (say(200, "x".repeat(10 * 1024 * 1024)), "larger than 2097152 bytes"),
    ] {
        let (server, url) = Server::start([act]).await;
        let (outcome, told) = ask(&client(&url)).await;
        let failure = outcome.unwrap_err();
        assert_eq!(failure.kind, ModelFailure::Unreadable);
        assert!(failure.message.starts_with("The Model `default` ") && failure.message.ends_with('.'), "{failure}");
        assert!(failure.message.contains(reason), "{failure}");
        assert!(failure.message.len() < 600);
        assert_eq!((server.times(), told.len()), (1, 0));
    }
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(|| async {
        Body::from_stream(stream::repeat_with(|| Ok::<_, io::Error>(vec![b' '; 64 * 1024]))).into_response()
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let failure = ask(&client(&url)).await.0.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unreadable);
}

/// A client with a key, and the file that the key is in.
fn with_key(url: &str, key: Option<&str>) -> (Client, tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    if let Some(key) = key {
        std::fs::write(&path, key).unwrap();
    }
    let file = KeyFile { path: path.to_str().unwrap().into(), secret: "llm".into(), key: "token".into() };
    let endpoint = ModelEndpoint { api_key: Some(file), ..endpoint(url) };
    (client_of(&endpoint, patience(PLENTY)), dir, path)
}

#[tokio::test]
async fn a_key_that_is_mended_heals_without_a_restart() {
    let refusal = r#"{"error":{"message":"Incorrect API key provided: sk-wrong."}}"#;
    let (server, url) = Server::start([say(401, refusal), completion("Done")]).await;
    let (client, _dir, path) = with_key(&url, Some("sk-wrong\n"));
    let told = Mutex::new(Vec::new());
    let mend = |what: ExternalWait| {
        std::fs::write(&path, "sk-right\n").unwrap();
        told.lock().unwrap().push(what);
    };
    let answer = ask_within(&client, PLENTY, &Pauses::new(&mend)).await.unwrap();
    assert_eq!(answer.text, "Done");
    let keys: Vec<_> = server.asked().iter().map(|(headers, _)| headers[header::AUTHORIZATION].clone()).collect();
    assert_eq!(keys, ["Bearer sk-wrong", "Bearer sk-right"]);
    let told = told.into_inner().unwrap();
    let [ExternalWait::ModelUnavailable { message }] = &told[..] else { panic!("{told:?}") };
    let told = "answered HTTP 401: Incorrect API key provided: [redacted: default]. Check its key";
    assert!(message.ends_with(told), "{message}");
    assert!(!message.contains("sk-wrong"), "{message}");
}

#[tokio::test]
async fn a_key_in_an_answer_that_cannot_be_read_is_told_to_nobody() {
    for body in [r#""Incorrect API key sk-secret-of-ours""#, r#"{"choices":"bad key sk-secret-of-ours"}"#] {
        let (_server, url) = Server::start([say(200, body)]).await;
        let (client, _dir, _path) = with_key(&url, Some("sk-secret-of-ours\n"));
        let failure = ask(&client).await.0.unwrap_err();
        assert!(!failure.message.contains("sk-secret"), "{failure}");
    }
}

/// What the Skill says is in no event where it is asked beside the conversation.
#[tokio::test]
async fn what_is_asked_beside_the_conversation_holds_no_secret() {
    let (server, url) = Server::start([completion("{}")]).await;
    let (client, _dir, _path) = with_key(&url, Some("sk-\"of\"-ours"));
    let system = r#"Never tell sk-"of"-ours."#;
    let turns = [Turn::User(r#"May "sk-"of"-ours" be told?"#.into())];
    let request = ModelRequest { stage: Stage::Finalization, system: system.into(), ..request(&turns) };
    client.ask(&request, (PLENTY, PLENTY), &unheard()).await.unwrap();
    let asked = String::from_utf8(server.asked().remove(0).1).unwrap();
    assert!(asked.contains("Never tell [redacted: ") && !asked.contains("-ours"), "{asked}");
}

#[tokio::test]
async fn a_key_that_is_not_there_is_waited_for_and_nothing_is_asked_without_it() {
    let (server, url) = Server::start([completion("Done")]).await;
    let (client, _dir, path) = with_key(&url, None);
    let missing = ExternalWait::SecretMissing { name: "llm".into(), key: "token".into() };
    assert_eq!(client.missing_secret(), Some(missing.clone()));
    let told = Mutex::new(Vec::new());
    let put = |what: ExternalWait| {
        std::fs::write(&path, "sk-late").unwrap();
        told.lock().unwrap().push(what);
    };
    assert!(ask_within(&client, PLENTY, &Pauses::new(&put)).await.is_ok());
    assert_eq!(told.into_inner().unwrap(), [missing]);
    assert_eq!(server.times(), 1);
    assert_eq!(client.missing_secret(), None);
}

#[tokio::test]
async fn a_key_that_never_comes_ends_the_patience() {
    let (mut client, _dir, _path) = with_key("http://127.0.0.1:9", None);
    client.patience.total = Duration::from_millis(10);
    let failure = ask(&client).await.0.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
    assert!(failure.message.contains("needs the key `token` of the Secret `llm`"), "{failure}");
}

#[tokio::test]
async fn successive_requests_share_their_bytes() {
    let context = json!({"choices": [{"message": {"role": "assistant", "content": null, "refusal": null, "x": 0.1,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"z\":1,\"a\":2}"}}]}}]});
    let (server, url) = Server::start([say(200, context.to_string()), completion("Done")]).await;
    let client = client(&url);
    let mut turns = vec![Turn::User("Refund A-17".into())];
    let answer = alone(&client, &request(&turns), &unheard()).await.unwrap();
    // As the engine has it after a restart: from the log.
    let answer: Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    turns.push(Turn::Assistant(ModelMessage::from(&answer)));
    turns.push(Turn::ToolResult { id: "c1".into(), text: "paid".into() });
    alone(&client, &request(&turns), &unheard()).await.unwrap();
    let [(_, first), (_, second)] = server.asked().try_into().unwrap();
    let history = first.strip_suffix(b"]}").unwrap();
    assert!(second.starts_with(history) && second[history.len()] == b',');
}

/// Tells when it is dropped.
struct OnDrop(Arc<tokio::sync::Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn dropping_the_future_drops_the_request() {
    let gone = Arc::new(tokio::sync::Notify::new());
    let asked = Arc::new(tokio::sync::Notify::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback({
        let (gone, asked) = (gone.clone(), asked.clone());
        move || async move {
            let _on_drop = OnDrop(gone);
            asked.notify_one();
            std::future::pending::<()>().await;
        }
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = client(&url);
    tokio::select! {
        _ = ask(&client) => panic!("answered"),
        () = asked.notified() => {}
    }
    // The server sees the connection go, and drops what it was doing.
    gone.notified().await;
}

#[test]
fn a_url_that_is_none_is_refused() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    for url in ["", "models.example", "ftp://models.example"] {
        let error = Client::new(&endpoint(url), "uid-1", Patience::new(PLENTY), Arc::default(), Redactor::default())
            .unwrap_err();
        assert!(error.to_string().contains("is not an http or https URL"), "{error}");
    }
    assert!(
        Client::new(
            &endpoint("https://models.example/v1"),
            "uid-1",
            Patience::new(PLENTY),
            Arc::default(),
            Redactor::default()
        )
        .is_ok()
    );
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_handed_back_at_once() {
    let long = r#"{"error":{"message":"maximum context length is 128000 tokens","code":"context_length_exceeded"}}"#;
    for act in [say(400, long), say(413, ""), say(200, long)] {
        let (server, url) = Server::start([act]).await;
        let (outcome, told) = ask(&client(&url)).await;
        let failure = outcome.unwrap_err();
        assert_eq!(failure.kind, ModelFailure::TooLong);
        assert!(failure.message.contains("The conversation is longer than the model's window."), "{failure}");
        assert_eq!((server.times(), told.len()), (1, 0));
    }
}

fn words(text: &str) -> String {
    let chunk =
        |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    events(&[chunk(json!({"role": "assistant", "content": text}), Value::Null), chunk(json!({}), json!("stop"))])
}

fn claude_words(text: &str) -> String {
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
async fn a_streamed_answer_is_read_to_its_end_and_one_without_an_end_asked_for_again() {
    let whole = words("Done") + "data: [DONE]\n\n";
    let without_a_line = words("Done") + "data: [DONE]";
    let broken = r#"data: {"error":{"type":"server_error","message":"gone"}}"#.to_owned() + "\n\n";
    for end in [whole, without_a_line] {
        let acts = [streams(words("Done")), Act::Cut, streams(words("Do") + &broken), streams(end)];
        let (server, url) = Server::start(acts).await;
        let (outcome, told) = ask(&client(&url)).await;
        assert_eq!(outcome.unwrap().text, "Done");
        assert_eq!((server.times(), told.len()), (4, 3));
        let ExternalWait::ModelUnavailable { message } = &told[0] else { panic!("{told:?}") };
        assert!(message.ends_with("did not finish: the answer was cut off: the stream ended before the answer did"));
        let ExternalWait::ModelUnavailable { message } = &told[2] else { panic!("{told:?}") };
        assert!(message.ends_with("broke off with an error: gone"), "{message}");
    }
}

#[tokio::test]
async fn anthropic_is_asked_in_its_own_words() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let acts = [
        say(529, overloaded.to_string()),
        streams(events(&[overloaded])),
        streams(claude_words("Do").replace("message_stop", "ping")),
        streams(claude_words("Done")),
    ];
    let (server, url) = Server::start(acts).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "sk-ant\n").unwrap();
    let key = KeyFile { path: path.to_str().unwrap().into(), secret: "llm".into(), key: "token".into() };
    let client = client_of(&ModelEndpoint { api_key: Some(key), ..claude(&url) }, patience(PLENTY));
    let (outcome, told) = ask(&client).await;
    let answer = outcome.unwrap();
    assert_eq!((answer.text.as_str(), answer.input_tokens, answer.output_tokens), ("Done", Some(7), Some(3)));
    assert_eq!(told.len(), 3, "{told:?}");
    let (headers, body) = server.asked().remove(0);
    assert_eq!(
        (&headers["x-api-key"], &headers["anthropic-version"]),
        (&"sk-ant".parse().unwrap(), &"2023-06-01".parse().unwrap())
    );
    assert_eq!(headers.get(header::AUTHORIZATION), None);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["model"], &body["metadata"]["user_id"]), (&json!("claude-sonnet-5"), &json!("uid-1")));
}

#[tokio::test]
async fn a_stream_of_too_much_is_not_read_to_its_end() {
    let content = words(&"x".repeat(64 * 1024));
    for body in [content.repeat(160), format!("data: {}", "x".repeat(10 * 1024 * 1024))] {
        let (server, url) = Server::start([streams(body)]).await;
        let failure = ask(&client(&url)).await.0.unwrap_err();
        assert_eq!((failure.kind, server.times()), (ModelFailure::Unreadable, 1));
        assert!(failure.message.contains("larger than 2097152 bytes"), "{failure}");
    }
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_given_up_and_one_that_goes_on_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(0));
    let router = Router::new().fallback(move || {
        let times = {
            let mut asked = asked.lock().unwrap();
            *asked += 1;
            *asked
        };
        async move {
            // Longer than the time-out in all, and never as long between two pieces.
            let slow = stream::iter(0..8).then(|_| async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok::<_, io::Error>(words("x"))
            });
            let end = if times == 1 {
                stream::pending().boxed()
            } else {
                stream::iter([Ok("data: [DONE]\n\n".to_owned())]).boxed()
            };
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(slow.chain(end))).into_response()
        }
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = client_of(&ModelEndpoint { timeout_seconds: 1, ..endpoint(&url) }, patience(PLENTY));
    let (outcome, told) = ask(&client).await;
    assert_eq!(outcome.unwrap().text, "x".repeat(8));
    let [ExternalWait::ModelUnavailable { message }] = told.as_slice() else { panic!("{told:?}") };
    assert!(message.ends_with("did not answer within 1 s"), "{message}");
}

#[tokio::test]
async fn what_a_server_does_not_take_is_left_out_from_then_on() {
    let refuses =
        |what: &str| say(400, json!({"error": {"message": format!("Unsupported parameter: '{what}'")}}).to_string());
    let acts = [
        refuses("stream_options"),
        say(422, r#"{"detail":"`stream` is not supported"}"#),
        refuses("temperature"),
        refuses("anything else"),
        completion("Done"),
        completion("Done again"),
        refuses("anything else"),
    ];
    let (server, url) = Server::start(acts).await;
    let client = client(&url);
    let turns = [Turn::User("Refund A-17".into())];
    let judged = || ModelRequest { temperature: Some(0.1), answer_schema: Some(form()), ..request(&turns) };
    for expected in ["Done", "Done again"] {
        let answer = alone(&client, &judged(), &unheard()).await.unwrap();
        assert_eq!(answer.text, expected);
    }
    let failure = alone(&client, &judged(), &unheard()).await.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable, "there is nothing left to leave out: {failure}");
    let has = |body: &[u8], field: &str| serde_json::from_slice::<Value>(body).unwrap().get(field).is_some();
    let carried: Vec<Vec<&str>> = server
        .asked()
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
async fn an_answer_that_a_filter_stopped_is_told_by_its_reason() {
    let filtered = json!({"choices": [{"message": {"content": "I"}, "finish_reason": "content_filter"}]});
    let (server, url) = Server::start([say(200, filtered.to_string())]).await;
    let failure = ask(&client(&url)).await.0.unwrap_err();
    assert_eq!((failure.kind, server.times()), (ModelFailure::Unavailable, 1));
    assert!(failure.message.contains("the provider's filter stopped it (content_filter)"), "{failure}");
}
