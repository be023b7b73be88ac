//! An MCP server over standard input and output whose tools are the scripts in a directory (`docs/explanation/tools.md`).
//!
//! It is a program like any other stdio server: `serve` starts it, and so does the worker in local mode. Its standard output has only
//! messages. It ends when its input ends, and kills the scripts that run.

mod arguments;
mod directory;
mod run;

use crate::arguments::Scripts as Arguments;
use crate::message::{self, Kind, METHOD_NOT_FOUND, Message};
use crate::stop;
use arguments::Call;
use directory::Directory;
use run::Runner;
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The version of the protocol, if the client names none.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// The error code of a request with parameters that are not valid.
const INVALID_PARAMS: i64 = -32602;

/// The number of messages that wait.
const MAX_MESSAGES: usize = 64;

/// The scripts, and how they are run.
#[derive(Debug)]
struct Server {
    directory: Directory,
    runner: Runner,
}

/// Answers requests until the input ends.
///
/// # Errors
/// If the directory cannot be read, or the output cannot be written.
pub(crate) async fn serve(arguments: Arguments) -> io::Result<()> {
    let Arguments { dir, work_dir, timeout_seconds, max_output } = arguments;
    let runner = Runner { work_dir, time_limit: Duration::from_secs(timeout_seconds), max_output };
    let server = Arc::new(Server { directory: Directory::read(&dir)?, runner });
    let mut messages = read_input();
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Some(message) => {
                    let server = Arc::clone(&server);
                    answers.spawn(async move { server.answer(&message).await });
                }
                // Dropping the answers kills their scripts.
                None => return Ok(()),
            },
            Some(ended) = answers.join_next() => if let Ok(Some(answer)) = ended {
                write_line(&answer)?;
            },
        }
    }
}

/// Reads messages in a thread of its own. A line that is no message is logged.
fn read_input() -> mpsc::Receiver<Message> {
    let (sender, messages) = mpsc::channel(MAX_MESSAGES);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Some(message) = Message::read(&line) else {
                stop::log("the client sent a line that is no message");
                continue;
            };
            if sender.blocking_send(message).is_err() {
                return;
            }
        }
    });
    messages
}

/// Writes a message. The client reads all the time, so this does not block for long.
fn write_line(answer: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{answer}")?;
    output.flush()
}

impl Server {
    /// Returns the answer to a message; none if it is not a request.
    async fn answer(&self, message: &Message) -> Option<String> {
        let Some(Kind::Request(method)) = message.kind() else { return None };
        let id = message.id()?;
        let result = match method.as_str() {
            "initialize" => Ok(initialize(message)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": self.directory.tools()})),
            "tools/call" => match self.find(message) {
                Ok((file, call)) => Ok(self.runner.run(file, call).await),
                Err(fault) => Err((INVALID_PARAMS, fault)),
            },
            _ => Err((METHOD_NOT_FOUND, format!("there is no method {method}"))),
        };
        Some(match result {
            Ok(result) => message::result(id, &result),
            Err((code, fault)) => message::error(Some(id), code, &fault),
        })
    }

    /// Returns the file and the arguments of a call.
    fn find(&self, message: &Message) -> Result<(&Path, Call), String> {
        let param = |name| message.param(name).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let name = param("name").and_then(|name| name.as_str().map(str::to_owned)).ok_or("the call names no tool")?;
        let file = self.directory.file(&name).ok_or_else(|| format!("there is no tool {name:?}"))?;
        Ok((file, Call::read(param("arguments").unwrap_or(Value::Null))?))
    }
}

fn initialize(message: &Message) -> Value {
    let version = message.param("protocolVersion").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    json!({
        "protocolVersion": version.as_deref().unwrap_or(PROTOCOL_VERSION),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bloomery-scripts", "version": env!("CARGO_PKG_VERSION")},
    })
}
