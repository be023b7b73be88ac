//! `make bench`: the numbers of the engine, each compared with a floor that is measured in the same run.
//!
//! Ratios decide; absolute figures are reported, and two of them decide as well: the gate's decision and the fold. A
//! goal that is missed makes the run fail. No test measures time, and this is no test.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement of what does not work is worth nothing: it ends where something is wrong"
)]

mod call;
mod durable;
mod figures;
mod floor;
mod gate;
mod job;
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

/// Names the conversation in its log.
const SOURCE: &str = "/namespaces/acme/skilljobs/refund/k-1";

/// Names the log of every Job here.
const RUN_KEY: &str = "k-1";

/// A directory of a file system that keeps everything in memory: what the engine costs where the disk costs nothing.
const IN_MEMORY: &str = "/dev/shm";

/// A directory of its own below `root`, which goes with `root` only: ext4 does not give out an inode that was deleted in the
/// last minutes, and looks at each of them when it makes a file. Among the files of runs that were cleared away, most of
/// what a segment costs would be that.
fn fresh(root: &Path) -> PathBuf {
    tempfile::tempdir_in(root).unwrap().keep()
}

fn main() -> ExitCode {
    // `cargo bench` adds flags of its own; anything else picks sections.
    let picked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |section: &str| picked.is_empty() || picked.iter().any(|name| name == section);
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
        if wanted("call") {
            call::measure(&mut figures, disk).await;
        }
        if wanted("start") {
            process::start(&mut figures, disk).await;
        }
        if wanted("peak") {
            process::peak(&mut figures, disk).await;
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
    if figures.missed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
