//! The transport to a local program: MCP over its standard input and output, one message per line.
//!
//! As over HTTP, a call is written at most once, and the [`DeliveryLog`] records whether it was sent.
//!
//! The program runs in a separate process group. Therefore a ^C in the terminal does not reach it, and the processes that it started
//! are killed when it ends.

mod oversized_line;
mod process;
mod stderr;

use crate::delivery::{self, Delivery, DeliveryLog};
use crate::program::Program;
use crate::{notification, repair};
use bloomery_redact::Redactor;
use oversized_line::OversizedLine;
pub(crate) use process::Process;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io;
use std::process::Stdio as Pipe;
use std::sync::Arc;
pub use stderr::StderrEnd;
use stderr::StderrReader;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

/// The reason that a program cannot be started, as a clause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The command line is empty.
    #[error("its command line is empty")]
    EmptyCommandLine,
    /// The operating system refused to start the program.
    #[error("it cannot be started: {0}")]
    Spawn(io::Error),
    /// The program was started without pipes.
    #[error("it has no standard input or output")]
    NoPipes,
}

/// The reason that a program sends no more messages, as a clause.
struct EndOfOutput(String);

/// The transport to a running program.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    /// The kept parts of the line that is being read, if the line is larger than the limit.
    oversized: Option<OversizedLine>,
    /// The size limit of a line, in bytes.
    max_answer: usize,
    process: Process,
    deliveries: DeliveryLog,
    redactor: Redactor,
}

impl StdioTransport {
    /// Starts the program.
    ///
    /// # Errors
    /// If the program cannot be started. A retry would fail again.
    pub(crate) fn start(
        program: &Program,
        deliveries: DeliveryLog,
        redactor: Redactor,
        max_answer: usize,
    ) -> Result<Self, StartError> {
        let Some((name, arguments)) = program.argv.split_first() else { return Err(StartError::EmptyCommandLine) };
        let mut command = Command::new(name);
        command.args(arguments).env_clear().envs(&program.env).process_group(0).kill_on_drop(true);
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        let mut child = command.spawn().map_err(StartError::Spawn)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(StartError::NoPipes);
        };
        let stderr = StderrReader::start(child.stderr.take(), program.listener.clone(), redactor.clone());
        deliveries.record_server_state();
        Ok(Self {
            input: Arc::new(Mutex::new(Some(input))),
            output: BufReader::new(output),
            line: Vec::new(),
            oversized: None,
            max_answer,
            process: Process::new(child, stderr),
            deliveries,
            redactor,
        })
    }

    /// Returns a handle to the program, which runs as long as a handle exists.
    pub(crate) fn process(&self) -> Process {
        self.process.clone()
    }

    /// Reads the next line. Returns `None` at the end of the output. Dropping the future loses no data.
    ///
    /// If an answer is larger than the limit, only its beginning and its end are kept, and a small message stands for the answer.
    async fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let read = self.output.fill_buf().await?;
            if read.is_empty() {
                return Ok(None);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = read.get(..end.map_or(read.len(), |end| end + 1)).unwrap_or_default();
            let used = part.len();
            match &mut self.oversized {
                Some(line) => line.push(part),
                None if self.line.len() + part.len() > self.max_answer => {
                    self.line.extend_from_slice(part);
                    self.oversized = Some(OversizedLine::begin(&std::mem::take(&mut self.line), self.max_answer)?);
                }
                None => self.line.extend_from_slice(part),
            }
            self.output.consume(used);
            if end.is_some() {
                return match self.oversized.take() {
                    Some(line) => line.finish(self.max_answer).map(Some),
                    None => Ok(Some(std::mem::take(&mut self.line))),
                };
            }
        }
    }

    /// Reads the next message.
    ///
    /// # Errors
    /// If there will be no more messages.
    async fn next_message(&mut self) -> Result<ServerJsonRpcMessage, EndOfOutput> {
        loop {
            let line = match self.next_line().await {
                Ok(Some(line)) => line,
                Ok(None) => {
                    self.process.note_closed();
                    return Err(EndOfOutput(self.describe_end().await));
                }
                Err(error) => return Err(EndOfOutput(error.to_string())),
            };
            // As over HTTP, a message that is not UTF-8 proves nothing about a call.
            let read = match std::str::from_utf8(&line) {
                Ok(text) => text,
                Err(_) if !is_message(&String::from_utf8_lossy(&line)) => continue,
                Err(error) => return Err(EndOfOutput(format!("it wrote a line that is not UTF-8: {error}"))),
            };
            let text = repair::read(read, &self.redactor);
            match serde_json::from_str(&text) {
                Ok(message) => {
                    if let Some(message) = notification::read(&text) {
                        self.deliveries.receive(None, message);
                    }
                    return Ok(message);
                }
                Err(_) if !is_message(&text) => {}
                Err(error) => return Err(EndOfOutput(format!("it wrote a line that is not an MCP message: {error}"))),
            }
        }
    }

    async fn describe_end(&mut self) -> String {
        match self.process.end().await {
            Some(status) => format!("the program ended ({status})"),
            None => "the program closed its output".to_owned(),
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (input, deliveries, process) = (self.input.clone(), self.deliveries.clone(), self.process.clone());
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let (id, token) = delivery::request_ids(&message);
            if let Some(id) = &id
                && !deliveries.begin(id, token)
            {
                return Err(io::Error::other("the call was abandoned before it was sent"));
            }
            let Err((sent, error)) = write(input.as_mut(), &line).await else { return Ok(()) };
            process.note_closed();
            if let Some(id) = &id {
                let reason = format!("its input cannot be written: {error}");
                deliveries
                    .record(Some(id), if sent == 0 { Delivery::NotSent(reason) } else { Delivery::Broken(reason) });
            }
            Err(error)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.next_message().await {
            Ok(message) => Some(message),
            Err(EndOfOutput(reason)) => {
                self.deliveries.break_all(&reason);
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

/// The fields that distinguish a message from a log line in JSON. Each is `None` if it is missing.
#[derive(Default, Deserialize)]
struct MessageFields {
    jsonrpc: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Returns whether a line is a message, even a malformed one. The protocol forbids other lines, but many programs print a greeting or
/// their log to standard output.
fn is_message(line: &str) -> bool {
    if !line.trim_start().starts_with('{') {
        return false;
    }
    match serde_json::from_str(line) {
        Ok(MessageFields { jsonrpc, id, result, error }) => {
            jsonrpc.is_some() || id.is_some() && (result.is_some() || error.is_some())
        }
        Err(_) => line.contains("\"jsonrpc\""),
    }
}

/// Writes a line. An error contains the number of bytes that were sent.
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
