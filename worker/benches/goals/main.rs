//! `make bench`: measures the engine, and compares the figures with a floor that is measured in the same run. The floor is a bare
//! client that makes the same requests and writes the same segments.
//!
//! Most goals are limits for ratios. A few are absolute limits, such as the time of a gate's decision. The run fails if a goal is
//! missed. Tests do not measure time.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement fails by panicking, as tests do"
)]

mod call;
mod durable;
mod figures;
mod floor;
mod gate;
mod import;
mod job;
mod memory;
mod player;
mod prefix;
mod process;
mod resume;
mod rows;
mod script;
mod servers;
mod skill;
mod steps;
mod times;

use figures::Figures;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The source of the events in each log.
const SOURCE: &str = "/namespaces/acme/skilljobs/refund/k-1";

/// The run key of each Job.
const RUN_KEY: &str = "k-1";

/// A directory of a file system in memory, where the time of the disk is not measured.
const IN_MEMORY: &str = "/dev/shm";

/// Creates a directory below `root`, which stays until `root` is removed. If each run removed its directory, later measurements would be
/// distorted: when ext4 creates a file, it examines each inode that was deleted in the last minutes.
fn new_dir(root: &Path) -> PathBuf {
    tempfile::tempdir_in(root).unwrap().keep()
}

fn main() -> ExitCode {
    // `cargo bench` adds flags. The other arguments select sections.
    let sections: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |section: &str| sections.is_empty() || sections.iter().any(|name| name == section);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut figures = Figures::default();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let on_disk = tempfile::tempdir_in(kept).unwrap();
    let disk = on_disk.path();
    if wanted("gate") {
        gate::measure(&mut figures);
    }
    if wanted("resume") {
        resume::measure(&mut figures, disk);
    }
    if wanted("import") {
        import::measure(&mut figures, disk);
    }
    runtime.block_on(async {
        if wanted("prefix") {
            prefix::measure(&mut figures, disk).await;
        }
        if wanted("durable") {
            durable::measure(&mut figures, disk).await;
        }
        if wanted("steps") {
            steps::measure(&mut figures, disk).await;
        }
        if wanted("reads") {
            steps::measure_reads(&mut figures, disk).await;
        }
        if wanted("call") {
            call::measure(&mut figures, disk).await;
        }
        if wanted("start") {
            process::measure_start(&mut figures, disk).await;
            process::measure_local_start(&mut figures, disk).await;
        }
        if wanted("peak") {
            process::measure_peak(&mut figures, disk).await;
        }
        if wanted("results") {
            process::measure_results(&mut figures, disk).await;
        }
        if wanted("memory") && Path::new(IN_MEMORY).is_dir() {
            let in_memory = tempfile::tempdir_in(IN_MEMORY).unwrap();
            steps::report(&mut figures, in_memory.path()).await;
        }
    });
    print!("{}", figures.table());
    let file = std::env::var_os("BLOOMERY_BENCH_JSON").map_or_else(|| kept.join("bench.json"), PathBuf::from);
    std::fs::write(&file, figures.json()).unwrap();
    println!("\n{}", file.display());
    if figures.has_missed_goal() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
