//! The client against a real server on a socket, for everything that a server does.

use super::*;
use crate::redact::Redactor;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bloomery_crds::run::KeyFile;
use bloomery_crds::v1alpha1::{ModelProvider, Stage};
use bloomery_engine::turn::Turn;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const PLENTY: Duration = Duration::from_mins(1);

/// What the server does with one request.
enum Act {
    Say(u16, Vec<(&'static str, String)>, String),
    Cut,
    Hang,
}

fn say(status: u16, body: impl Into<String>) -> Act {
    Act::Say(status, Vec::new(), body.into())
}

fn completion(content: &str) -> Act {
    let message = json!({"role": "assistant", "content": content});
    say(200, json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string())
}

/// A server that follows a script, whose last act it repeats, and remembers what it was asked.
#[derive(Clone, Default)]
struct Server {
    script: Arc<Mutex<VecDeque<Act>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

type Asked = (HeaderMap, Vec<u8>);

impl Server {
    async fn start(script: impl IntoIterator<Item = Act>) -> (Self, String) {
        let server = Self { script: Arc::new(Mutex::new(script.into_iter().collect())), ..Self::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, url)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn times(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response {
    assert_eq!(request.uri().path(), "/v1/chat/completions");
    let headers = request.headers().clone();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    server.asked.lock().unwrap().push((headers, body.to_vec()));
    let act = {
        let mut script = server.script.lock().unwrap();
        let act = script.pop_front().expect("an act");
        if script.is_empty() {
            script.push_back(match &act {
                Act::Say(status, headers, body) => Act::Say(*status, headers.clone(), body.clone()),
                Act::Cut => Act::Cut,
                Act::Hang => Act::Hang,
            });
        }
        act
    };
    match act {
        Act::Say(status, headers, body) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Act::Cut => {
            let begin = stream::once(async { Ok("{\"choices\":[{\"mess") });
            // What is there is sent when the rest is not.
            let cut = stream::once(async {
                tokio::task::yield_now().await;
                Err(io::Error::other("cut"))
            });
            Body::from_stream(begin.chain(cut)).into_response()
        }
        Act::Hang => std::future::pending().await,
    }
}

fn endpoint(base_url: &str) -> ModelEndpoint {
    ModelEndpoint {
        name: "default".into(),
        provider: ModelProvider::Openai,
        model: "gpt-5".into(),
        base_url: base_url.into(),
        timeout_seconds: 30,
        context_window: 128_000,
        api_key: None,
    }
}

/// Pauses that a test can wait for; `whole` is how long the client tries.
fn patience(whole: Duration) -> Patience {
    let pause = || Backoff::new(Duration::from_millis(1), Duration::from_millis(2));
    Patience { whole, brisk: pause(), slow: pause(), missing: pause() }
}

fn client_of(endpoint: &ModelEndpoint, patience: Patience) -> Client {
    // Another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new(endpoint, "uid-1", patience, Redactor::default()).unwrap()
}

fn client(base_url: &str) -> Client {
    client_of(&endpoint(base_url), patience(PLENTY))
}

/// Asks, and tells what the client said it was waiting for.
async fn ask(client: &Client) -> (Result<Answer, Failure>, Vec<Waiting>) {
    let told = Mutex::new(Vec::new());
    let tell = |what| told.lock().unwrap().push(what);
    let outcome = ask_within(client, PLENTY, &Waits::new(&tell)).await;
    (outcome, told.into_inner().unwrap())
}

async fn ask_within(client: &Client, within: Duration, waits: &Waits<'_>) -> Result<Answer, Failure> {
    client.complete(&request(&[Turn::User("Refund A-17".into())]), within, waits).await
}

/// Nobody listens.
fn unheard() -> Waits<'static> {
    Waits::new(&|_| {})
}

fn request(turns: &[Turn]) -> ModelRequest<'_> {
    ModelRequest {
        stage: Stage::Plan,
        model: "default",
        system: "Be kind.".into(),
        turns: turns.into(),
        history: 0,
        tools: &[],
        temperature: None,
        reserve: 0,
    }
}

fn unavailable(message: &str) -> Waiting {
    Waiting::ModelUnavailable { message: message.to_owned() }
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
    let Waiting::ModelUnavailable { message } = &told[3] else { panic!("{:?}", told[3]) };
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
    assert!(waits.idle() >= Duration::from_millis(200), "{:?}", waits.idle());
}

#[test]
fn pauses_take_nothing_of_the_time_for_requests() {
    let (began, seconds) = (Instant::now(), Duration::from_secs);
    let mut tries = Tries::new(patience(seconds(3600)), seconds(10), began);
    // 4 s in a request, then a pause.
    assert_eq!(tries.pause(Pace::Asked(seconds(60)), began + seconds(4), Duration::ZERO), Some(seconds(60)));
    assert_eq!(tries.remaining(began + seconds(64), seconds(60)), seconds(6));
    assert_eq!(tries.pause(Pace::Asked(seconds(60)), began + seconds(65), seconds(60)), Some(seconds(60)));
    assert_eq!(tries.remaining(began + seconds(125), seconds(120)), seconds(5));
    assert_eq!(tries.pause(Pace::Brisk, began + seconds(130), seconds(120)), None, "no time is left for a request");
}

#[test]
fn patience_begins_where_the_model_first_failed() {
    let (began, seconds) = (Instant::now(), Duration::from_secs);
    let mut tries = Tries::new(patience(seconds(60)), seconds(3600), began);
    // A request that hung for longer than the patience is asked again all the same.
    let failed = began + seconds(120);
    assert_eq!(tries.pause(Pace::Asked(seconds(3600)), failed, Duration::ZERO), Some(seconds(60)));
    assert_eq!(tries.pause(Pace::Brisk, failed + seconds(60), seconds(60)), None);
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
    let long =
        json!({"error": {"message": "maximum context length is 128000 tokens", "code": "context_length_exceeded"}});
    for (status, body, reason) in [
        (400, long.to_string(), "The conversation is longer than the model's window"),
        (413, String::new(), "HTTP 413"),
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
    let mend = |what: Waiting| {
        std::fs::write(&path, "sk-right\n").unwrap();
        told.lock().unwrap().push(what);
    };
    let answer = ask_within(&client, PLENTY, &Waits::new(&mend)).await.unwrap();
    assert_eq!(answer.text, "Done");
    let keys: Vec<_> = server.asked().iter().map(|(headers, _)| headers[header::AUTHORIZATION].clone()).collect();
    assert_eq!(keys, ["Bearer sk-wrong", "Bearer sk-right"]);
    let told = told.into_inner().unwrap();
    let [Waiting::ModelUnavailable { message }] = &told[..] else { panic!("{told:?}") };
    let told = "answered HTTP 401: Incorrect API key provided: [redacted: default]. Check the key in its Secret";
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

#[tokio::test]
async fn a_key_that_is_not_there_is_waited_for_and_nothing_is_asked_without_it() {
    let (server, url) = Server::start([completion("Done")]).await;
    let (client, _dir, path) = with_key(&url, None);
    let missing = Waiting::SecretMissing { name: "llm".into(), key: "token".into() };
    assert_eq!(client.missing(), Some(missing.clone()));
    let told = Mutex::new(Vec::new());
    let put = |what: Waiting| {
        std::fs::write(&path, "sk-late").unwrap();
        told.lock().unwrap().push(what);
    };
    assert!(ask_within(&client, PLENTY, &Waits::new(&put)).await.is_ok());
    assert_eq!(told.into_inner().unwrap(), [missing]);
    assert_eq!(server.times(), 1);
    assert_eq!(client.missing(), None);
}

#[tokio::test]
async fn a_key_that_never_comes_ends_the_patience() {
    let (mut client, _dir, _path) = with_key("http://127.0.0.1:9", None);
    client.patience.whole = Duration::from_millis(10);
    let failure = ask(&client).await.0.unwrap_err();
    assert_eq!(failure.kind, ModelFailure::Unavailable);
    assert!(failure.message.contains("needs the key `token` of the Secret `llm`"), "{failure}");
}

#[tokio::test]
async fn successive_requests_share_their_bytes() {
    let asking = json!({"choices": [{"message": {"role": "assistant", "content": null, "refusal": null, "x": 0.1,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"z\":1,\"a\":2}"}}]}}]});
    let (server, url) = Server::start([say(200, asking.to_string()), completion("Done")]).await;
    let client = client(&url);
    let mut turns = vec![Turn::User("Refund A-17".into())];
    let answer = client.complete(&request(&turns), PLENTY, &unheard()).await.unwrap();
    // As the engine has it after a restart: from the log.
    let answer: Answer = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    turns.push(Turn::Assistant(answer.message));
    turns.push(Turn::ToolResult { id: "c1".into(), text: "paid".into() });
    client.complete(&request(&turns), PLENTY, &unheard()).await.unwrap();
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
        let error = Client::new(&endpoint(url), "uid-1", Patience::of(PLENTY), Redactor::default()).unwrap_err();
        assert!(error.to_string().contains("is not an http or https URL"), "{error}");
    }
    assert!(
        Client::new(&endpoint("https://models.example/v1"), "uid-1", Patience::of(PLENTY), Redactor::default()).is_ok()
    );
}

#[tokio::test]
async fn each_model_is_asked_by_its_name() {
    let (server, url) = Server::start([completion("Judged")]).await;
    let models = [
        ModelEndpoint { base_url: "http://127.0.0.1:1".into(), ..endpoint(&url) },
        ModelEndpoint { name: "fast".into(), model: "gpt-5-mini".into(), ..endpoint(&url) },
    ];
    let _ = rustls::crypto::ring::default_provider().install_default();
    let clients = Clients::new(&models, "uid-1", &patience(Duration::ZERO), &Redactor::default()).unwrap();
    let ask = async |model: &'static str| {
        let request = ModelRequest { model, ..request(&[]) };
        clients.complete(&request, PLENTY, &unheard()).await
    };
    assert_eq!(ask("fast").await.unwrap().text, "Judged");
    let body: Value = serde_json::from_slice(&server.asked()[0].1).unwrap();
    assert_eq!(body["model"], "gpt-5-mini");
    let unknown = ask("other").await.unwrap_err();
    assert_eq!(unknown.kind, ModelFailure::Unavailable);
    assert!(unknown.message.contains("`other`"), "{unknown}");
    assert_eq!(clients.missing("other"), None);
}
