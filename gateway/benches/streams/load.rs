//! The load: clients that follow Jobs, while events are added to the logs.

use crate::client::{Client, Received};
use crate::figures::{count, ms, us};
use crate::jobs::{FIRST, JobLog};
use crate::memory::memory;
use crate::server::Server;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The number of clients that connect at the same time. More than a listener's queue would have to try again.
const TURNS: usize = 64;

/// The time in which all clients connect.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);

/// The time between the last connection and the first event.
const PAUSE: Duration = Duration::from_secs(1);

/// One client of this many connects again and again, if any does.
const RECONNECTING: u32 = 10;

/// The two loads: 1,000 clients of one Job, and of 100 Jobs.
pub(crate) const LOADS: [Load; 2] = [
    Load { name: "1 Job", jobs: 1, clients: 1_000, interval: Duration::from_millis(100), events: 100 },
    Load { name: "100 Jobs", jobs: 100, clients: 10, interval: Duration::from_millis(500), events: 20 },
];

/// A load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    jobs: u32,
    /// The number of clients of each Job.
    clients: u32,
    /// The time between two events of a Job.
    interval: Duration,
    /// The number of events of each Job.
    events: u32,
}

/// The figures of a server under a load.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    /// The time from a durable event to its receipt that 99 % of the receipts do not exceed, in milliseconds.
    pub(crate) p99: f64,
    /// The CPU time for one client and one event, in microseconds.
    pub(crate) cpu: f64,
    /// The memory for one client, in KiB.
    pub(crate) memory: f64,
    /// The number of events that did not come, over all clients.
    pub(crate) missing: usize,
    /// The number of events that came again, over all clients.
    pub(crate) repeated: usize,
}

impl Measured {
    /// Returns the median of each figure, and the sum of the faults.
    pub(crate) fn median(all: &[Self]) -> Self {
        let median = |figure: fn(&Self) -> f64| {
            let mut values: Vec<f64> = all.iter().map(figure).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            p99: median(|measured| measured.p99),
            cpu: median(|measured| measured.cpu),
            memory: median(|measured| measured.memory),
            missing: all.iter().map(|measured| measured.missing).sum(),
            repeated: all.iter().map(|measured| measured.repeated).sum(),
        }
    }
}

/// Puts a load on a new server of a memory.
pub(crate) async fn measure(server: &Server, dir: &Path, load: Load, reconnects: bool) -> Measured {
    let logs: Vec<JobLog> = (0..load.jobs).map(|job| JobLog::new(dir, &key(job))).collect();
    let memory_before = memory(server.id()).now;
    let (turns, connected) = (Arc::new(Semaphore::new(TURNS)), Arc::new(Semaphore::new(0)));
    let mut clients = Vec::new();
    for job in 0..load.jobs {
        for nth in 0..load.clients {
            let client = Client {
                target: server.target.clone(),
                path: format!("/api/jobs/{}/events", key(job)),
                last: FIRST + u64::from(load.events),
                reconnects: reconnects && nth % RECONNECTING == 0,
            };
            clients.push((job, tokio::spawn(client.run(Arc::clone(&turns), Arc::clone(&connected)))));
        }
    }
    let all_connected = connected.acquire_many(load.jobs * load.clients);
    drop(tokio::time::timeout(CONNECT_TIMEOUT, all_connected).await.expect("all clients connect").unwrap());
    tokio::time::sleep(PAUSE).await;
    let cpu_before = server.cpu();
    let durable = tokio::task::spawn_blocking(move || write(logs, load)).await.unwrap();
    let (mut received, mut connections) = (Vec::new(), Vec::new());
    for (job, client) in clients {
        let (events, connection) = client.await.unwrap();
        received.push((job, events));
        connections.push(connection);
    }
    let cpu = us(server.cpu().saturating_sub(cpu_before));
    let memory = (memory(server.id()).now - memory_before) * 1024.0 / count(connections.len());
    let mut delays: Vec<Duration> =
        received.iter().flat_map(|(job, events)| delays(events, &durable[at(*job)])).collect();
    delays.sort_unstable();
    Measured {
        p99: ms(delays[delays.len() * 99 / 100]),
        cpu: cpu / count(delays.len()),
        memory,
        missing: at(load.events) * connections.len() - delays.len(),
        repeated: received.iter().map(|(_, events)| events.repeated).sum(),
    }
}

/// Returns the delays of the events of a client.
fn delays(received: &Received, durable: &[Instant]) -> Vec<Duration> {
    let delay = |&(id, time): &(u64, Instant)| {
        let written = usize::try_from(id - FIRST - 1).unwrap();
        // An event can be read shortly before it is durable.
        time.saturating_duration_since(durable[written])
    };
    received.events.iter().map(delay).collect()
}

/// Adds all events to the logs. Returns the times at which they were durable, by Job.
fn write(mut logs: Vec<JobLog>, load: Load) -> Vec<Vec<Instant>> {
    let began = Instant::now();
    let mut durable = vec![Vec::new(); logs.len()];
    for event in 0..load.events {
        for job in 0..load.jobs {
            // The events of the Jobs are spread over the interval.
            let due = began + load.interval * event + load.interval * job / load.jobs;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            logs[at(job)].add_message();
            durable[at(job)].push(Instant::now());
        }
    }
    durable
}

/// Returns the key of a Job.
fn key(job: u32) -> String {
    format!("k-{job}")
}

fn at(number: u32) -> usize {
    usize::try_from(number).unwrap()
}
