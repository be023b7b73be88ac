//! `make bench ONLY=gateway`: measures how `bloomery serve` sends the events of Jobs to 1,000 clients, and compares it with a floor that is
//! measured in the same run. The floor is a minimal server of events in axum, which follows the same logs. Servers in Node and Python that do
//! the same are reported.
//!
//! The bench writes the logs, so it knows when each event is durable. All servers look for events of another process each 200 ms.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement fails by panicking, as tests do"
)]

mod client;
#[path = "../../../worker/benches/goals/figures.rs"]
mod figures;
mod floor;
mod jobs;
mod load;
#[path = "../../../worker/benches/goals/memory.rs"]
mod memory;
mod server;

use figures::{Figures, count};
use load::{LOADS, Load, Measured, measure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{Kind, Server};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The name of the section.
const SECTION: &str = "gateway";

/// A directory of a file system in memory, where the time of the disk is not measured.
const IN_MEMORY: &str = "/dev/shm";

/// The number of measurements of the gateway and of the floor. The median counts.
const ROUNDS: usize = 3;

/// The most that the gateway may need of what the floor needs.
const GOAL: f64 = 1.3;

/// The time after which an idle server has released what it needed for its start.
const IDLE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    if let Some(jobs) = std::env::var_os(server::FLOOR) {
        floor::run(jobs.into());
        return ExitCode::SUCCESS;
    }
    // Child processes inherit the limit. The gateway raises its own.
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files }).unwrap();
    // `prepare::new_job` makes the client of the Job's model.
    bloomery_http::install_tls_provider();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut figures = Figures::default();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let root = tempfile::tempdir_in(if Path::new(IN_MEMORY).is_dir() { Path::new(IN_MEMORY) } else { kept }).unwrap();
    runtime.block_on(async {
        measure_idle(&mut figures, root.path()).await;
        for load in LOADS {
            compare(&mut figures, root.path(), load).await;
            measure_reconnects(&mut figures, root.path(), load).await;
            report_others(&mut figures, root.path(), load).await;
        }
    });
    print!("{}", figures.table());
    let file = kept.join("bench-gateway.json");
    std::fs::write(&file, figures.json()).unwrap();
    println!("\n{}", file.display());
    if figures.has_missed_goal() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Measures the memory of a gateway after a few requests.
async fn measure_idle(figures: &mut Figures, root: &Path) {
    let server = Server::start(Kind::Gateway, &jobs::new_memory(root)).unwrap();
    for path in ["/api/skills", "/api/jobs"] {
        client::get(&server.target, path).await;
    }
    tokio::time::sleep(IDLE).await;
    figures.require(SECTION, "idle, peak memory", (memory::memory(server.id()).peak, "MiB"), 20.0);
}

/// Measures a load on a new server of a kind. Returns `None` if the machine cannot run it.
async fn measure_on(kind: Kind, root: &Path, load: Load, reconnects: bool) -> Option<Measured> {
    let memory = jobs::new_memory(root);
    let server = Server::start(kind, &memory)?;
    Some(measure(&server, &memory, load, reconnects).await)
}

/// Measures the gateway and the floor in turns, and compares them.
async fn compare(figures: &mut Figures, root: &Path, load: Load) {
    let (mut gateway, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        gateway.extend(measure_on(Kind::Gateway, root, load, false).await);
        floor.extend(measure_on(Kind::Floor, root, load, false).await);
    }
    let (gateway, floor) = (Measured::median(&gateway), Measured::median(&floor));
    report(figures, load, "gateway", &gateway);
    report(figures, load, "floor", &floor);
    figures.require(SECTION, format!("{}, gateway: missing events", load.name), (count(gateway.missing), ""), 0.0);
    for (what, of_gateway, of_floor) in [
        ("delay p99", gateway.p99, floor.p99),
        ("CPU", gateway.cpu, floor.cpu),
        ("memory", gateway.memory, floor.memory),
    ] {
        let name = format!("{}: {what}, gateway to floor", load.name);
        figures.require(SECTION, name, (of_gateway / of_floor, "x"), GOAL);
    }
}

/// Checks that clients that connect again miss no event, and get none twice.
async fn measure_reconnects(figures: &mut Figures, root: &Path, load: Load) {
    let measured = measure_on(Kind::Gateway, root, load, true).await.expect("the gateway runs");
    let name = |what: &str| format!("{}, 10 % of the clients connect again: {what}", load.name);
    figures.report(SECTION, name("delay p99"), measured.p99, "ms");
    figures.require(SECTION, name("missing events"), (count(measured.missing), ""), 0.0);
    figures.require(SECTION, name("repeated events"), (count(measured.repeated), ""), 0.0);
}

/// Reports the servers in other languages that the machine can run.
async fn report_others(figures: &mut Figures, root: &Path, load: Load) {
    for (kind, name) in [(Kind::Node, "node:http"), (Kind::Starlette, "Starlette")] {
        match measure_on(kind, root, load, false).await {
            Some(measured) => report(figures, load, name, &measured),
            None => eprintln!("{SECTION}: {name} is not measured, because it is not installed"),
        }
    }
}

fn report(figures: &mut Figures, load: Load, server: &str, measured: &Measured) {
    let name = |what: &str| format!("{}, {server}: {what}", load.name);
    figures.report(SECTION, name("delay p99"), measured.p99, "ms");
    figures.report(SECTION, name("CPU for a client and an event"), measured.cpu, "us");
    figures.report(SECTION, name("memory for a client"), measured.memory, "KiB");
}
