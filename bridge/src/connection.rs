//! The connection to one process of the MCP server: requests, and the messages that belong to each.
//!
//! Clients choose their ids by themselves. So each request gets a number of the connection, as its id and as its progress token.

use crate::message::{self, Kind, Message};
use crate::process::Process;
use crate::stop;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

/// The largest line that is read, in bytes. It exceeds the largest answer that a worker accepts, 32 MiB.
const MAX_LINE_BYTES: usize = 34 * 1024 * 1024;

/// The number of notifications that wait for a slow client. Later ones are dropped.
const MAX_NOTES: usize = 64;

/// The number of messages that wait for a slow process.
const MAX_MESSAGES: usize = 64;

/// The longest output that is no message and is logged, in characters.
const MAX_LOGGED_CHARS: usize = 4096;

/// The reason that a request has no answer, as a clause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The process cannot be started.
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    /// The process has ended.
    #[error("it ended, or closed its output, without an answer; its own output is in this log")]
    Closed,
    /// The process speaks neither era of the protocol.
    #[error("it does not speak MCP over its standard input and output: {0}")]
    Refused(String),
}

/// A connection to a process. The process ends when [`Connection::end`] is called, or when it closes its output.
#[derive(Debug)]
pub(crate) struct Connection {
    state: Mutex<State>,
    /// Whether several clients share the process.
    is_shared: bool,
    ending: Notify,
    reader: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct State {
    /// The messages to the process. `None` after the connection was closed.
    input: Option<mpsc::Sender<String>>,
    next: u64,
    /// The requests without an answer.
    waiting: BTreeMap<u64, Waiting>,
    last_used: Instant,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Waiting {
    id: Option<Box<RawValue>>,
    token: Option<Box<RawValue>>,
    notes: mpsc::Sender<String>,
    answer: oneshot::Sender<String>,
}

/// A part of the reply to a request.
#[derive(Debug)]
pub(crate) enum Part {
    /// A notification that belongs to the request.
    Note(String),
    /// The answer, which is the last part.
    Answer(String),
}

impl Connection {
    /// Starts a process.
    pub(crate) fn start(argv: &[String], is_shared: bool) -> Result<Arc<Self>, Error> {
        let (process, stdin, stdout) = Process::start(argv).map_err(Error::Start)?;
        let (input, messages) = mpsc::channel(MAX_MESSAGES);
        let state = State { input: Some(input), next: 1, waiting: BTreeMap::new(), last_used: Instant::now() };
        let connection =
            Arc::new(Self { state: Mutex::new(state), is_shared, ending: Notify::new(), reader: Mutex::default() });
        let writer = tokio::spawn(write(stdin, messages));
        let reader = tokio::spawn(Arc::clone(&connection).run(process, stdout, writer));
        *connection.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
        Ok(connection)
    }

    /// Sends a request.
    pub(crate) async fn request(self: &Arc<Self>, mut request: Message) -> Result<Reply, Error> {
        let (notes, received_notes) = mpsc::channel(MAX_NOTES);
        let (answer, received_answer) = oneshot::channel();
        let (number, input) = {
            let mut state = self.state();
            let input = state.input.clone().ok_or(Error::Closed)?;
            let number = state.next;
            state.next += 1;
            state.last_used = Instant::now();
            let waiting =
                Waiting { id: request.id().map(ToOwned::to_owned), token: request.wanted_token(), notes, answer };
            let raw = message::raw_number(number).ok_or(Error::Closed)?;
            if waiting.token.is_some() {
                request.set_wanted_token(raw.clone());
            }
            request.set_id(raw);
            state.waiting.insert(number, waiting);
            (number, input)
        };
        let reply = Reply { connection: Arc::clone(self), number, notes: received_notes, answer: received_answer };
        // If this future is dropped here, the request was not sent, and `reply` forgets it.
        input.send(request.to_line()).await.map_err(|_| Error::Closed)?;
        Ok(reply)
    }

    /// Sends a notification of a client.
    pub(crate) async fn notify(&self, mut notification: Message) -> Result<(), Error> {
        if notification.kind() == Some(Kind::Notification("notifications/cancelled".to_owned())) {
            let Some(number) = notification.param("requestId").and_then(|id| self.number_of(&id)) else {
                return Ok(());
            };
            notification.set_param("requestId", message::raw_number(number).ok_or(Error::Closed)?);
        }
        let input = self.state().input.clone().ok_or(Error::Closed)?;
        input.send(notification.to_line()).await.map_err(|_| Error::Closed)
    }

    /// Returns whether the process has ended, or is about to end.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().input.is_none()
    }

    /// Returns the time since which the process is idle; `None` while a request waits for its answer.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        state.waiting.is_empty().then_some(state.last_used)
    }

    /// Ends the process, and waits for its end. Requests without an answer get none.
    pub(crate) async fn end(&self) {
        self.ending.notify_one();
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader {
            let _ = reader.await;
        }
    }

    /// Reads the output of the process until its end.
    async fn run(self: Arc<Self>, process: Process, stdout: ChildStdout, writer: JoinHandle<()>) {
        let mut output = BufReader::new(stdout);
        let was_ended = loop {
            tokio::select! {
                line = next_line(&mut output) => match line {
                    Ok(Some(line)) => self.receive(&line),
                    Ok(None) => break false,
                    Err(error) => {
                        stop::log(&format!("the output of the MCP server cannot be read: {error}"));
                        break false;
                    }
                },
                () = self.ending.notified() => break true,
            }
        };
        {
            let mut state = self.state();
            state.input = None;
            state.waiting.clear();
        }
        // Closes the input of the process.
        writer.abort();
        let _ = writer.await;
        let status = process.end().await;
        if !was_ended {
            stop::log(&format!("a process of the MCP server ended ({status})"));
        }
    }

    /// Passes on a line of the process.
    fn receive(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let Some(message) = Message::read(&line) else {
            let text: String = line.trim_end().chars().take(MAX_LOGGED_CHARS).collect();
            return stop::log(&format!("the MCP server wrote a line that is no message: {text}"));
        };
        match message.kind() {
            Some(Kind::Answer) => self.receive_answer(message),
            Some(Kind::Notification(method)) => self.receive_notification(&method, message),
            Some(Kind::Request(method)) => self.answer_request(&method, &message),
            None => {}
        }
    }

    fn receive_answer(&self, mut answer: Message) {
        let mut state = self.state();
        let Some(waiting) = answer.id().and_then(message::number).and_then(|number| state.waiting.remove(&number))
        else {
            return;
        };
        state.last_used = Instant::now();
        if let Some(id) = waiting.id {
            answer.set_id(id);
        }
        // This fails if the client has gone.
        let _ = waiting.answer.send(answer.to_line());
    }

    fn receive_notification(&self, method: &str, mut note: Message) {
        let state = self.state();
        let named = |member| note.param(member).as_deref().and_then(message::number);
        let (waiting, replaced) = match method {
            "notifications/progress" => {
                let Some(waiting) = named("progressToken").and_then(|number| state.waiting.get(&number)) else {
                    return;
                };
                (waiting, waiting.token.clone().map(|token| ("progressToken", token)))
            }
            "notifications/cancelled" => {
                let Some(waiting) = named("requestId").and_then(|number| state.waiting.get(&number)) else { return };
                (waiting, waiting.id.clone().map(|id| ("requestId", id)))
            }
            // It names no request. Without other clients, the newest request is the best place for it.
            _ if !self.is_shared => {
                let Some((_, waiting)) = state.waiting.last_key_value() else { return };
                (waiting, None)
            }
            _ => return,
        };
        if let Some((member, value)) = replaced {
            note.set_param(member, value);
        }
        let _ = waiting.notes.try_send(note.to_line());
    }

    /// Answers a request of the process. Workers offer servers nothing to request.
    fn answer_request(&self, method: &str, request: &Message) {
        let Some(id) = request.id() else { return };
        let answer = match method {
            "ping" => message::result(id, &json!({})),
            _ => message::error(Some(id), message::METHOD_NOT_FOUND, "the client offers no capabilities"),
        };
        if let Some(input) = &self.state().input {
            let _ = input.try_send(answer);
        }
    }

    /// Returns the number of a client's request.
    fn number_of(&self, id: &RawValue) -> Option<u64> {
        let state = self.state();
        let has_id = |waiting: &Waiting| waiting.id.as_ref().is_some_and(|known| known.get() == id.get());
        state.waiting.iter().find(|(_, waiting)| has_id(waiting)).map(|(number, _)| *number)
    }

    /// Forgets a request whose client has gone. In the newer era, the end of a client's stream also cancels its request.
    fn abandon(&self, number: u64) {
        let mut state = self.state();
        let is_waiting = state.waiting.contains_key(&number);
        if !is_waiting || !self.is_shared {
            return;
        }
        state.waiting.remove(&number);
        let cancelled =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number}}}}}"#);
        if let Some(input) = &state.input {
            let _ = input.try_send(cancelled);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reply to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    connection: Arc<Connection>,
    number: u64,
    notes: mpsc::Receiver<String>,
    answer: oneshot::Receiver<String>,
}

impl Reply {
    /// Returns the next part; `None` if the process ended before it answered.
    pub(crate) async fn next(&mut self) -> Option<Part> {
        tokio::select! {
            biased;
            Some(note) = self.notes.recv() => Some(Part::Note(note)),
            answer = &mut self.answer => answer.ok().map(Part::Answer),
        }
    }

    /// Returns the answer without the notifications before it.
    pub(crate) async fn answer(&mut self) -> Option<String> {
        loop {
            if let Part::Answer(answer) = self.next().await? {
                return Some(answer);
            }
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.connection.abandon(self.number);
    }
}

/// Writes messages to the process, each as a line. A line is never cut, because no client waits for this task.
async fn write(mut stdin: ChildStdin, mut messages: mpsc::Receiver<String>) {
    while let Some(mut line) = messages.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Reads a line, without its line feed. Returns `None` at the end of the output.
async fn next_line(output: &mut BufReader<ChildStdout>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let read = output.fill_buf().await?;
        if read.is_empty() {
            return Ok(None);
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(read.len(), |end| end + 1);
        line.extend_from_slice(read.get(..end.unwrap_or(read.len())).unwrap_or_default());
        output.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
        if line.len() > MAX_LINE_BYTES {
            return Err(io::Error::other(format!("a line has more than {MAX_LINE_BYTES} bytes")));
        }
    }
}
