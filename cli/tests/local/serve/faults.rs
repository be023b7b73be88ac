//! Faults of clients and of the server.

use super::{GREETING, Server};
use crate::resume::HOLDS;
use crate::setup::{SAYS_HELLO, SKILL, Setup, TIMEOUT};
use bloomery_embed::local::drive_mark::DriveMark;
use bloomery_embed::run::options::{ModelOptions, RunOptions};
use bloomery_embed::run::prepare;
use bloomery_engine::Event;
use bloomery_engine::line::{Chain, EventTime};
use bloomery_journal::Store;
use bloomery_journal::files::Disk;
use bloomery_redact::Redactor;
use futures::future::join_all;
use reqwest::{Response, StatusCode};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// A client that follows a Job.
struct Follower {
    response: Response,
    /// The received part of the last line.
    rest: Vec<u8>,
    /// The numbers of the received events.
    ids: Vec<u64>,
}

impl Follower {
    /// Follows a Job from its first event.
    async fn start(server: &Server, job: &str) -> Self {
        Self { response: Self::connect(server, job, None).await, rest: Vec::new(), ids: Vec::new() }
    }

    async fn connect(server: &Server, job: &str, last: Option<u64>) -> Response {
        let mut request = server.get(&format!("{job}/events"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = tokio::time::timeout(TIMEOUT, request.send()).await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response
    }

    /// Goes on at another server, after the last event.
    async fn go_on(&mut self, server: &Server, job: &str) {
        // The connection broke within a line, or after it.
        self.rest.clear();
        self.response = Self::connect(server, job, self.ids.last().copied()).await;
    }

    /// Reads until an event has come.
    async fn read_until(&mut self, seq: u64) {
        while !self.ids.contains(&seq) {
            assert!(self.read().await, "the response has ended after {:?}", self.ids);
        }
    }

    /// Reads until the response ends.
    async fn read_to_end(&mut self) {
        while self.read().await {}
    }

    /// Reads more events. Returns false after the end of the response.
    async fn read(&mut self) -> bool {
        let chunk = tokio::time::timeout(TIMEOUT, self.response.chunk()).await.unwrap();
        let Ok(Some(chunk)) = chunk else { return false };
        self.rest.extend_from_slice(&chunk);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return true };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        let lines = String::from_utf8(lines).unwrap();
        self.ids
            .extend(lines.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse::<u64>().unwrap()));
        true
    }
}

/// Returns the number of events in the log of a Job of the Skill `greeter`.
fn durable_events(setup: &Setup, key: &str) -> u64 {
    u64::try_from(setup.log(&format!("greeter/jobs/{key}")).len()).unwrap()
}

#[tokio::test]
async fn clients_of_a_killed_server_go_on_at_the_next_one() {
    let setup = Setup::new(HOLDS).await;
    let mut server = Server::start(&setup).await;
    let job = server.start_job().await;
    let key = job.rsplit('/').next().unwrap();
    setup.wait_for_held(1).await;
    let mut followers = Vec::new();
    for seq in 1..=durable_events(&setup, key) {
        let mut follower = Follower::start(&server, &job).await;
        follower.read_until(seq).await;
        followers.push(follower);
    }

    server.child.kill().await.unwrap();
    join_all(followers.iter_mut().map(Follower::read_to_end)).await;
    let next = Server::start_on(&setup, server.url.rsplit(':').next().unwrap()).await;
    assert_eq!(next.url, server.url);
    let refused = server.get(&job).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "each server has its own token");
    // The Job goes on, and ends.
    let cancelled = next.post(&format!("{job}/cancel"), "").send().await.unwrap();
    assert_eq!(cancelled.status(), StatusCode::ACCEPTED);
    for follower in &mut followers {
        follower.go_on(&next, &job).await;
        follower.read_to_end().await;
    }
    let all: Vec<u64> = (1..=durable_events(&setup, key)).collect();
    for follower in followers {
        assert_eq!(follower.ids, all);
    }
}

/// Stores a Job with these user messages. No process drives it. With the mark, a server does not continue it.
fn store_job(setup: &Setup, key: &str, messages: &[String]) -> DriveMark {
    let model =
        ModelOptions { model: Some("scripted".into()), model_url: Some(setup.url()), ..ModelOptions::default() };
    let options = RunOptions {
        goal: Some("Greet".into()),
        skill: Some("greeter".into()),
        run_key: Some(key.into()),
        model,
        ..RunOptions::new(setup.path("memory"))
    };
    let (job, inputs) = prepare::new_job(&options, Redactor::default()).unwrap();
    let store = Store::open(Disk, &job.directory.dir, key, "test").unwrap();
    let mut chain = Chain::new(inputs.source());
    let messages = messages.iter().map(|text| Event::UserMessage { text: text.clone(), by: "ada".into(), nth: None });
    for event in [Event::EpochStarted { epoch: 1, attempt: 1, after_disruption: false }].into_iter().chain(messages) {
        let first = chain.events() + 1;
        let stamp = EventTime { time: "2026-01-01T00:00:00.000Z".into(), elapsed_ms: 1 };
        let (line, _) = chain.append(event, stamp).unwrap();
        store.add(first, format!("{line}\n").as_bytes()).unwrap();
    }
    DriveMark::set(&job.directory.log(key)).unwrap()
}

#[tokio::test]
async fn clients_that_never_read_cost_the_others_nothing() {
    const CLIENTS: usize = 20;
    /// The most memory of the server, in KiB. The log has 20 MB, so copies for all clients would need 400 MB.
    const MEMORY: u64 = 200 << 10;
    let setup = Setup::new(SAYS_HELLO).await;
    setup.write("memory/greeter/skill.yaml", SKILL);
    let messages = vec!["much ".repeat(40_000); 100];
    let _mark = store_job(&setup, "k-1", &messages);
    let mut server = Server::start(&setup).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let mut silent = Vec::new();
    for _ in 0..CLIENTS {
        // A small buffer, so that the kernel does not store the response.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
        let request = format!(
            "GET /api/jobs/k-1/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n",
            server.token
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    for _ in 0..2 {
        let mut follower = Follower::start(&server, "/api/jobs/k-1").await;
        follower.read_until(durable_events(&setup, "k-1")).await;
        assert!(follower.ids.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{:?}", follower.ids);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id().unwrap())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < MEMORY, "the server needed {peak} KiB");
    assert_eq!(server.child.try_wait().unwrap(), None);
    drop(silent);
}

/// Clients without a request keep their places for 10 s only. Until then, the kernel lets further clients wait.
#[tokio::test]
async fn thousands_of_connections_do_not_keep_a_client_out() {
    const CONNECTIONS: u64 = 10_000;
    let allowed = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: allowed.maximum, ..allowed }).unwrap();
    let count = allowed.maximum.map_or(CONNECTIONS, |files| CONNECTIONS.min(files.saturating_sub(1_000)));
    assert!(count >= 2_000, "the limit of open files is too low: {allowed:?}");
    let setup = Setup::new(SAYS_HELLO).await;
    let mut server = Server::start(&setup).await;
    let address = server.url.strip_prefix("http://").unwrap();
    // A client whose connection does not begin soon gives up.
    let connect = || tokio::time::timeout(Duration::from_secs(3), TcpStream::connect(address));
    let connected = join_all((0..count).map(|_| connect())).await;
    let idle: Vec<TcpStream> = connected.into_iter().filter_map(|connected| connected.ok()?.ok()).collect();
    assert!(idle.len() >= 1_000, "only {} connections began", idle.len());

    let response = tokio::time::timeout(TIMEOUT, server.get("/api/skills").send()).await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.text().await.unwrap().contains("greeter"));
    assert_eq!(server.child.try_wait().unwrap(), None);
    drop(idle);
}

#[tokio::test]
async fn a_client_that_sends_too_slowly_is_refused() {
    let setup = Setup::new(SAYS_HELLO).await;
    let server = Server::start(&setup).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let head = format!("Host: {address}\r\nAuthorization: Bearer {}\r\n", server.token);
    let body = "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
    let slow_headers = trickle(address, format!("GET /api/jobs HTTP/1.1\r\n{head}"), "X-More: x\r\n");
    let slow_body = trickle(address, format!("POST /api/chat HTTP/1.1\r\n{head}{body}"), " ");
    let (headers, body) = tokio::join!(slow_headers, slow_body);
    assert!(!headers.contains("200 OK"), "{headers}");
    assert!(body.starts_with("HTTP/1.1 408 ") && body.contains("The body did not arrive within"), "{body}");
}

/// Sends a text, and then a small part again and again, until the server closes the connection. Returns the response.
async fn trickle(address: &str, text: String, part: &str) -> String {
    let (mut receiver, mut sender) = TcpStream::connect(address).await.unwrap().into_split();
    let send = async {
        let mut sent = sender.write_all(text.as_bytes()).await;
        while sent.is_ok() {
            tokio::time::sleep(Duration::from_millis(200)).await;
            sent = sender.write_all(part.as_bytes()).await;
        }
    };
    let mut response = Vec::new();
    let receive = async {
        // The connection may be reset.
        let _ = receiver.read_to_end(&mut response).await;
    };
    let ended = tokio::time::timeout(TIMEOUT, async { tokio::join!(send, receive) }).await;
    assert!(ended.is_ok(), "the server waits for the client");
    String::from_utf8(response).unwrap()
}

#[tokio::test]
async fn requests_that_are_too_large_or_of_other_sites_are_refused() {
    let setup = Setup::new(SAYS_HELLO).await;
    let server = Server::start(&setup).await;
    let chat = || server.post("/api/chat", GREETING);
    let large = format!(r#"{{"goal": "{}"}}"#, "x".repeat(70_000));
    for (request, status) in [
        (chat().body(large), StatusCode::PAYLOAD_TOO_LARGE),
        (chat().header("host", "evil.example"), StatusCode::FORBIDDEN),
        (chat().header("origin", "https://evil.example"), StatusCode::FORBIDDEN),
        (chat().header("origin", "null"), StatusCode::FORBIDDEN),
    ] {
        assert_eq!(request.send().await.unwrap().status(), status);
    }
    // Nothing was started.
    assert_eq!(server.get("/api/jobs").send().await.unwrap().text().await.unwrap(), r#"{"items":[]}"#);
    // A browser asks before it sends a request with a token to another site.
    let asked = reqwest::Client::new()
        .request(reqwest::Method::OPTIONS, format!("{}/api/chat", server.url))
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST");
    let answer = asked.send().await.unwrap();
    assert!(!answer.status().is_success());
    assert_eq!(answer.headers().get("access-control-allow-origin"), None);
}
