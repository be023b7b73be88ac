//! `bloomery serve`: the real binary, as HTTP clients use it.

mod faults;

use super::resume::signal;
use super::setup::{SAYS_HELLO, SKILL, Setup, TIMEOUT};
use bloomery_testkit::greeter::ASKS;
use reqwest::{Client, RequestBuilder, StatusCode};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// The parameters of a Job of the Skill `greeter`.
const GREETING: &str = r#"{"goal": "Greet", "skillSlug": "greeter"}"#;

/// A running server.
pub(super) struct Server {
    child: Child,
    /// The next lines of the server's standard error.
    stderr: Lines<BufReader<ChildStderr>>,
    pub(super) url: String,
    pub(super) token: String,
}

impl Server {
    /// Starts a server with the Skill `greeter` in its memory, and waits until it listens.
    async fn start(setup: &Setup) -> Self {
        Self::start_on(setup, "0").await
    }

    /// Starts a server on a port.
    async fn start_on(setup: &Setup, port: &str) -> Self {
        setup.write("memory/greeter/skill.yaml", SKILL);
        let url = setup.url();
        let model = ["--model", "scripted", "--model-url", &url, "--patience", "5"];
        Self::listening(setup.command(&[&["serve", "--port", port], model.as_slice()].concat())).await
    }

    /// Starts a server with this command, and waits until it listens.
    pub(super) async fn listening(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut next = async |prefix: &str| {
            let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
            line.strip_prefix(prefix).unwrap_or_else(|| panic!("{prefix}: {line}")).to_owned()
        };
        let page = next("Serving ").await;
        let url = page.split_once("/#token=").unwrap().0.to_owned();
        let token = next("Authorization: Bearer ").await;
        Self { child, stderr: lines, url, token }
    }

    fn get(&self, path: &str) -> RequestBuilder {
        Client::new().get(format!("{}{path}", self.url)).bearer_auth(&self.token)
    }

    fn post(&self, path: &str, body: &'static str) -> RequestBuilder {
        let request = Client::new().post(format!("{}{path}", self.url)).bearer_auth(&self.token);
        request.header("content-type", "application/json").body(body)
    }

    /// Starts a Job of the Skill `greeter`, and returns its path.
    async fn start_job(&self) -> String {
        let response = self.post("/api/chat", GREETING).send().await.unwrap();
        response.headers()["location"].to_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_client_chats_with_a_skill_and_reads_the_job() {
    let setup = Setup::new(SAYS_HELLO).await;
    let mut server = Server::start(&setup).await;
    let chat =
        server.post("/api/chat", GREETING).header("accept", "text/event-stream").header("idempotency-key", "one");
    let response = chat.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let job = response.headers()["location"].to_str().unwrap().to_owned();
    // The response ends with the Job.
    let events = tokio::time::timeout(TIMEOUT, response.text()).await.unwrap().unwrap();
    assert!(events.contains("event: conversation.finished\n") && events.contains("Hello."), "{events}");

    let again = server.post("/api/chat", GREETING).header("idempotency-key", "one").send().await.unwrap();
    assert_eq!((again.status(), again.headers()["location"].to_str().unwrap()), (StatusCode::ACCEPTED, job.as_str()));
    let refused = Client::new().get(format!("{}{job}", server.url)).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let key = job.rsplit('/').next().unwrap().to_owned();
    setup.bloomery(&["get", &key]).await.assert(0, "Succeeded");

    signal(&server.child, "TERM");
    let exit = tokio::time::timeout(TIMEOUT, server.child.wait()).await.unwrap().unwrap();
    assert_eq!(exit.code(), Some(0));
}

/// Returns the number of an event of a stream of events.
fn id(event: &str) -> u64 {
    event.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().parse().unwrap()
}

/// Reads a stream of events until one has this name. Returns the event.
async fn wait_for_event(server: &Server, path: &str, name: &str) -> String {
    let mut response = server.get(path).send().await.unwrap();
    let mut text = String::new();
    let found = tokio::time::timeout(TIMEOUT, async {
        loop {
            let chunk = response.chunk().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            // The last part is not complete yet.
            let complete = text.rsplit_once("\n\n").map_or("", |(complete, _)| complete);
            if let Some(event) = complete.split("\n\n").find(|event| event.contains(name)) {
                return event.to_owned();
            }
        }
    });
    found.await.unwrap()
}

#[tokio::test]
async fn a_restart_loses_nothing() {
    let setup = Setup::new(ASKS).await;
    let mut server = Server::start(&setup).await;
    let job = server.start_job().await;
    let asked = wait_for_event(&server, &format!("{job}/events"), "event: user.asked").await;
    server.child.kill().await.unwrap();

    let mut server = Server::start(&setup).await;
    let line = tokio::time::timeout(TIMEOUT, server.stderr.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(line, format!("Jobs that go on: {}", job.rsplit('/').next().unwrap()));
    let reply = r#"{"question": "q-1", "text": "Jane"}"#;
    let replied = server.post(&format!("{job}/replies"), reply).send().await.unwrap();
    assert_eq!(replied.status(), StatusCode::ACCEPTED);
    // The client goes on after its last event.
    let request = server.get(&format!("{job}/events")).header("last-event-id", id(&asked).to_string());
    let events = tokio::time::timeout(TIMEOUT, async { request.send().await.unwrap().text().await.unwrap() });
    let events = events.await.unwrap();
    assert_eq!(id(&events), id(&asked) + 1);
    assert!(events.contains("event: user.replied\n") && events.contains("event: conversation.finished\n"), "{events}");
}

#[tokio::test]
async fn errors_name_what_requests_have() {
    let setup = Setup::new(SAYS_HELLO).await;
    let server = Server::start(&setup).await;
    let first = server.post("/api/chat", GREETING).header("idempotency-key", "one").send().await.unwrap();
    assert_eq!(first.status(), StatusCode::ACCEPTED);
    let (unknown, unbound) = (r#"{"goal": "Greet", "skillSlug": "greter"}"#, r#"{"goal": "Explain it"}"#);
    let other = r#"{"goal": "Thank", "skillSlug": "greeter"}"#;
    for (body, key, status, says) in [
        (unknown, "two", StatusCode::NOT_FOUND, "has no Skill greter. Did you mean"),
        (unbound, "two", StatusCode::BAD_REQUEST, "add to `resources` of `POST /api/chat`: codebase=PATH"),
        (other, "one", StatusCode::UNPROCESSABLE_ENTITY, "with other parameters: use another `Idempotency-Key`"),
        (unbound, "one", StatusCode::UNPROCESSABLE_ENTITY, "another Skill has a Job of the key"),
    ] {
        let response = server.post("/api/chat", body).header("idempotency-key", key).send().await.unwrap();
        assert_eq!(response.status(), status, "{body}");
        let problem = response.text().await.unwrap();
        assert!(problem.contains(says) && !problem.contains("bootstrap"), "{problem}");
    }
}

#[tokio::test]
async fn no_file_outside_of_the_root_can_be_bound() {
    let setup = Setup::new(SAYS_HELLO).await;
    let server = Server::start(&setup).await;
    let body = r#"{"goal": "Explain it", "projectPath": "/etc"}"#;
    let response = server.post("/api/chat", body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let problem = response.text().await.unwrap();
    assert!(problem.contains("codebase: the file or directory is not in the root"), "{problem}");
    assert!(!setup.path("memory/sw-dev-agent").exists());
}
