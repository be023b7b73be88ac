//! A server that is a program of this machine: MCP over its standard input and output, a message a line.
//!
//! A call is written at most once, and the `Wire` notes when its first byte leaves us, as for a server that is far away.
//! The program runs in a process group of its own: a terminal's ^C does not reach it, and its end takes what it started
//! with it.

mod process;
mod said;

use super::MAX_BODY;
use super::mend;
use super::news;
use super::wire::{self, Fate, Wire};
use bloomery_redact::Redactor;
pub(super) use process::Process;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use said::Said;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::process::Stdio as Pipe;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

/// Hears what a program writes to its standard error, line by line. It may hold control characters.
pub type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// How a server is started.
#[derive(Clone)]
pub struct Program {
    /// The program and its arguments. No shell reads them.
    pub argv: Vec<String>,
    /// Its whole environment: it inherits nothing, since ours may hold keys.
    pub env: BTreeMap<String, String>,
    /// Hears what it says on its standard error.
    pub listener: Listener,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of the environment may be secrets.
        f.debug_struct("Program").field("argv", &self.argv).finish_non_exhaustive()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may be secrets.
        write!(f, "`{}`", self.argv.first().map_or("", String::as_str))
    }
}

/// The pipes to a program that runs.
#[derive(Debug)]
pub(super) struct Stdio {
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    process: Process,
    wire: Wire,
    redactor: Redactor,
}

impl Stdio {
    /// Starts the program.
    ///
    /// # Errors
    /// Why it cannot be started, as the end of a sentence: it could not be at another time either.
    pub(super) fn start(program: &Program, wire: Wire, redactor: Redactor) -> Result<Self, String> {
        let Some((name, arguments)) = program.argv.split_first() else { return Err("it has no name".to_owned()) };
        let mut command = Command::new(name);
        command.args(arguments).env_clear().envs(&program.env).process_group(0).kill_on_drop(true);
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("it has no standard input or output".to_owned());
        };
        let said = Said::of(child.stderr.take(), program.listener.clone(), redactor.clone());
        wire.note_state();
        Ok(Self {
            input: Arc::new(Mutex::new(Some(input))),
            output: BufReader::new(output),
            line: Vec::new(),
            process: Process::of(child, said),
            wire,
            redactor,
        })
    }

    /// The program, as long as somebody holds it.
    pub(super) fn process(&self) -> Process {
        self.process.clone()
    }

    /// The next line, or none at the end of the output. Nothing is lost where the future is dropped.
    async fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let read = self.output.fill_buf().await?;
            if read.is_empty() {
                return Ok(None);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = read.get(..end.map_or(read.len(), |end| end + 1)).unwrap_or_default();
            if self.line.len() + part.len() > MAX_BODY {
                return Err(io::Error::other(format!("it wrote a line of more than {MAX_BODY} bytes")));
            }
            self.line.extend_from_slice(part);
            let used = part.len();
            self.output.consume(used);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }

    /// The next message, or why there will be none any more.
    async fn next_message(&mut self) -> Result<ServerJsonRpcMessage, String> {
        loop {
            let line = match self.next_line().await {
                Ok(Some(line)) => line,
                Ok(None) => {
                    self.process.note_closed();
                    return Err(self.ended().await);
                }
                Err(error) => return Err(error.to_string()),
            };
            // As over HTTP: of what is no UTF-8, nobody can say that it is this answer.
            let read = match std::str::from_utf8(&line) {
                Ok(text) => text,
                Err(_) if is_beside(&line) => continue,
                Err(error) => return Err(format!("it wrote what cannot be read: {error}")),
            };
            let text = mend::read(read, &self.redactor);
            match serde_json::from_str(&text) {
                Ok(message) => {
                    if let Some(news) = news::read(&text) {
                        self.wire.hear(None, news);
                    }
                    return Ok(message);
                }
                Err(_) if is_beside(&line) => {}
                Err(error) => return Err(format!("it wrote what is no message of MCP: {error}")),
            }
        }
    }

    async fn ended(&mut self) -> String {
        match self.process.end().await {
            Some(status) => format!("the program ended ({status})"),
            None => "the program closed its output".to_owned(),
        }
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (input, wire, process) = (self.input.clone(), self.wire.clone(), self.process.clone());
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let (id, token) = wire::of_request(&message);
            if let Some(id) = &id
                && !wire.begin(id, token)
            {
                return Err(io::Error::other("it was given up before it could be sent"));
            }
            let Err((sent, error)) = write(input.as_mut(), &line).await else { return Ok(()) };
            process.note_closed();
            if let Some(id) = &id {
                let why = format!("its input cannot be written: {error}");
                wire.note(id, if sent == 0 { Fate::Unsent(why) } else { Fate::Broken(why) });
            }
            Err(error)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.next_message().await {
            Ok(message) => Some(message),
            Err(why) => {
                self.wire.break_all(&why);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.input.lock().await.take();
        self.process.end().await;
        Ok(())
    }
}

/// Whether a line is no message. Not part of the protocol, and in wide use: programs that greet on their standard output.
fn is_beside(line: &[u8]) -> bool {
    line.trim_ascii_start().first() != Some(&b'{')
}

/// Writes a line; on an error, tells how many bytes of it have left us.
async fn write(input: Option<&mut ChildStdin>, line: &[u8]) -> Result<(), (usize, io::Error)> {
    let Some(input) = input else { return Err((0, io::ErrorKind::BrokenPipe.into())) };
    let mut sent = 0;
    while let Some(rest) = line.get(sent..).filter(|rest| !rest.is_empty()) {
        match input.write(rest).await {
            Ok(0) => return Err((sent, io::ErrorKind::WriteZero.into())),
            Ok(written) => sent += written,
            Err(error) => return Err((sent, error)),
        }
    }
    input.flush().await.map_err(|error| (sent, error))
}
