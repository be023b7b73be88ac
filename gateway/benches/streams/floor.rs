//! The floor: a minimal server of events. It follows the logs, but it checks nothing, and each client begins with the next event.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use axum::serve::ListenerExt;
use bloomery_journal::segment;
use futures::stream::{self, Stream};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::broadcast;

/// The interval at which the local runtime looks for events of another process.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The most events that wait for a client.
const WAITING: usize = 1_024;

/// An event with its number.
type Line = Arc<(u64, String)>;

/// The logs that are followed.
struct Floor {
    /// The directory with a log for each Job.
    jobs: PathBuf,
    followed: Mutex<BTreeMap<String, broadcast::Sender<Line>>>,
}

/// Serves the logs in a directory until the process is killed.
pub(crate) fn run(jobs: PathBuf) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        println!("http://{}", listener.local_addr().unwrap());
        let floor = Arc::new(Floor { jobs, followed: Mutex::default() });
        let routes = Router::new().route("/api/jobs/{job}/events", get(follow)).with_state(floor);
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
        axum::serve(listener, routes).await.unwrap();
    });
}

async fn follow(
    State(floor): State<Arc<Floor>>,
    Path(job): Path<String>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(stream::unfold(floor.subscribe(job), next)).keep_alive(KeepAlive::default())
}

/// Waits for the next event.
async fn next(mut lines: broadcast::Receiver<Line>) -> Option<(Result<Event, Infallible>, broadcast::Receiver<Line>)> {
    let line = lines.recv().await.ok()?;
    let event = Event::default().id(line.0.to_string()).event("user.message").data(&line.1);
    Some((Ok(event), lines))
}

impl Floor {
    /// Returns the further events of a Job.
    fn subscribe(&self, job: String) -> broadcast::Receiver<Line> {
        let mut followed = self.followed.lock().unwrap();
        if let Some(lines) = followed.get(&job) {
            return lines.subscribe();
        }
        let (lines, receiver) = broadcast::channel(WAITING);
        tokio::spawn(read(self.jobs.join(&job), lines.clone()));
        followed.insert(job, lines);
        receiver
    }
}

/// Reads a log after its first event.
async fn read(log: PathBuf, lines: broadcast::Sender<Line>) {
    let mut next = crate::jobs::FIRST + 1;
    loop {
        let Ok(segment) = std::fs::read_to_string(log.join(segment::name(next))) else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        for line in segment.lines() {
            // Nobody may listen.
            let _ = lines.send(Arc::new((next, line.to_owned())));
            next += 1;
        }
    }
}
