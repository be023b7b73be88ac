//! A running bridge, and a Job that calls its server.

use bloomery_crds::Digest;
use bloomery_crds::run::McpEndpoint;
use bloomery_engine::event::{CallId, ToolProgress};
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::{ListedTool, ToolSource};
use bloomery_mcp::{CallOutcome, Client, ServerTokens};
use bloomery_redact::Redactor;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A time limit that no call reaches.
const PLENTY: Duration = Duration::from_mins(1);

/// A running bridge, which ends with the test.
pub(crate) struct Bridge {
    child: Child,
    log: BufReader<ChildStderr>,
    /// The log of the bridge until it listened.
    started: String,
    url: String,
}

impl Bridge {
    /// Starts the bridge before the server with this command line, and waits until it listens.
    pub(crate) fn start(flags: &[&str], server: &[String]) -> Self {
        Self::wait(command(flags, server))
    }

    /// Starts the bridge before the server that listens at `server_port`, and waits until it listens.
    pub(crate) fn guard(flags: &[&str], server_port: u16) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery-bridge"));
        command.args(["guard", LISTEN]).arg(format!("--port={server_port}")).args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Self::wait(command)
    }

    fn wait(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut started = String::new();
        let url = loop {
            let begin = started.len();
            assert_ne!(log.read_line(&mut started).unwrap(), 0, "the bridge ended before it listened: {started}");
            if let Some((_, url)) = started[begin..].split_once(" is served at ") {
                break url.trim_end().to_owned();
            }
        };
        Self { child, log, started, url }
    }

    /// Runs the bridge until it ends by itself. Returns its log.
    pub(crate) fn run_to_end(server: &[String]) -> (ExitStatus, String) {
        let output = command(&[], server).output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    }

    /// Returns the URL of the MCP endpoint.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// Asks the bridge to stop.
    pub(crate) fn terminate(&self) {
        let kill = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(kill.success());
    }

    /// Waits for the end of the bridge.
    pub(crate) fn exit_status(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Stops the bridge, and returns its log.
    pub(crate) fn stop(mut self) -> String {
        self.terminate();
        let mut log = std::mem::take(&mut self.started);
        self.log.read_to_string(&mut log).unwrap();
        log
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets the system choose a free port, so that no other test can take it.
const LISTEN: &str = "--listen=127.0.0.1:0";

fn command(flags: &[&str], server: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bloomery-bridge"));
    let is_open = flags.iter().all(|flag| !flag.starts_with("--token-key"));
    command.args(["serve", LISTEN]).args(is_open.then_some("--open"));
    command.args(flags).arg("--").args(server);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Installs the provider of TLS. This fails if another test has installed it.
pub(crate) fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The client of a Job, and the tools at its start.
pub(crate) struct Job {
    pub(crate) client: Client,
    pub(crate) tools: Vec<ListedTool>,
}

impl Job {
    pub(crate) async fn at(url: String) -> Self {
        install_provider();
        Self::with(Client::new(&McpEndpoint { url }, Redactor::default()).unwrap()).await
    }

    /// Returns a Job whose client sends a token.
    pub(crate) async fn with_token(url: String, tokens: &ServerTokens) -> Self {
        install_provider();
        Self::with(Client::with_token(&McpEndpoint { url }, tokens.clone(), Redactor::default()).unwrap()).await
    }

    async fn with(client: Client) -> Self {
        let tools = client.list(PLENTY).await.unwrap();
        Self { client, tools }
    }

    /// Calls a tool without arguments.
    pub(crate) async fn call(&self, tool: &str) -> (CallOutcome, Vec<ToolProgress>) {
        self.call_with(tool, "{}").await
    }

    /// Calls a tool.
    pub(crate) async fn call_with(&self, tool: &str, arguments: &str) -> (CallOutcome, Vec<ToolProgress>) {
        self.call_within(tool, arguments, PLENTY).await
    }

    /// Calls a tool, and gives up after this time if the call cannot be sent.
    pub(crate) async fn call_within(
        &self,
        tool: &str,
        arguments: &str,
        within: Duration,
    ) -> (CallOutcome, Vec<ToolProgress>) {
        let definition = self.tools.iter().find(|listed| listed.name == tool).unwrap().digest();
        let id = CallId::new(7, 0);
        let call = ToolCall {
            id: &id,
            tool,
            arguments,
            key: Digest::of_bytes(b"the key"),
            idempotent: false,
            read_only: false,
            sent_before: false,
            source: ToolSource::Server,
            definition: &definition,
            timeout_seconds: None,
        };
        let progress = RefCell::new(Vec::new());
        let called = self.client.call(&call, within, &|report| progress.borrow_mut().push(report)).await;
        (called.outcome, progress.into_inner())
    }

    /// Calls a tool without arguments that completes, and returns its text.
    pub(crate) async fn completed(&self, tool: &str) -> String {
        self.completed_with(tool, "{}").await
    }

    /// Calls a tool that completes, and returns its text.
    pub(crate) async fn completed_with(&self, tool: &str, arguments: &str) -> String {
        match self.call_with(tool, arguments).await.0 {
            CallOutcome::Completed { text, .. } => text,
            other => panic!("{tool}: {other:?}"),
        }
    }
}
