//! Clients of events. They parse as little as they can, so that their own time hardly counts.

use crate::jobs::FIRST;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// The time without an event after which a client gives up.
const SILENCE: Duration = Duration::from_mins(1);

/// The number of events after which a client connects again, if it does.
const EVENTS_OF_A_CONNECTION: usize = 10;

/// The address of a server, and the token that it requires.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) token: String,
}

/// A client of one Job.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) target: Target,
    pub(crate) path: String,
    /// The number of the last event.
    pub(crate) last: u64,
    /// Whether it connects again and again.
    pub(crate) reconnects: bool,
}

/// The events that a client has received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The number and the time of each event that was written while the client was connected.
    pub(crate) events: Vec<(u64, Instant)>,
    /// The number of events that came again.
    pub(crate) repeated: usize,
    last: u64,
}

impl Client {
    /// Connects when it is the client's turn, and follows the Job until the last event. Returns the connection too, so that it stays open.
    pub(crate) async fn run(self, turns: Arc<Semaphore>, connected: Arc<Semaphore>) -> (Received, TcpStream) {
        let (mut received, mut buffer, mut rest) = (Received::default(), vec![0; 8 << 10], Vec::new());
        let turn = turns.acquire().await.unwrap();
        let (mut stream, body) = connect(&self.target, &self.path, None).await;
        drop(turn);
        connected.add_permits(1);
        received.add(&ids(&mut rest, &body));
        let mut connected_at = 0;
        while received.last < self.last {
            if self.reconnects && received.events.len() >= connected_at + EVENTS_OF_A_CONNECTION {
                connected_at = received.events.len();
                rest.clear();
                let body;
                (stream, body) = connect(&self.target, &self.path, Some(received.last)).await;
                received.add(&ids(&mut rest, &body));
                continue;
            }
            match tokio::time::timeout(SILENCE, stream.read(&mut buffer)).await {
                Ok(Ok(length)) if length > 0 => received.add(&ids(&mut rest, &buffer[..length])),
                ended => {
                    eprintln!("gateway: a client of {} ended after {}: {ended:?}", self.path, received.last);
                    break;
                }
            }
        }
        (received, stream)
    }
}

impl Received {
    fn add(&mut self, ids: &[u64]) {
        let now = Instant::now();
        for &id in ids {
            if id <= self.last {
                self.repeated += 1;
                continue;
            }
            self.last = id;
            if id > FIRST {
                self.events.push((id, now));
            }
        }
    }
}

/// Sends a request that must succeed.
pub(crate) async fn get(target: &Target, path: &str) {
    connect(target, path, None).await;
}

/// Sends a request. Returns the connection and the beginning of the body.
async fn connect(target: &Target, path: &str, last: Option<u64>) -> (TcpStream, Vec<u8>) {
    let Target { host, token } = target;
    let mut stream = TcpStream::connect(host).await.unwrap();
    let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{last}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::with_capacity(8 << 10);
    let end = loop {
        if let Some(at) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        assert!(stream.read_buf(&mut head).await.unwrap() > 0, "{host}{path} has no response");
    };
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
    let body = head.split_off(end);
    (stream, body)
}

/// Returns the ids in the complete lines of a stream. `rest` is the beginning of the last line.
fn ids(rest: &mut Vec<u8>, bytes: &[u8]) -> Vec<u64> {
    let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (lines, beginning) = bytes.split_at(complete);
    if lines.is_empty() {
        rest.extend_from_slice(beginning);
        return Vec::new();
    }
    rest.extend_from_slice(lines);
    let ids = rest.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"id: "));
    let ids = ids.map(|id| str::from_utf8(id).unwrap().trim_end().parse::<u64>().unwrap()).collect();
    rest.clear();
    rest.extend_from_slice(beginning);
    ids
}
