//! The memory of processes. `gateway/benches` contains this file too.

use std::fs;

/// The memory of a process, in MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) now: f64,
    pub(crate) peak: f64,
}

/// Returns the memory of a process that runs.
pub(crate) fn memory(id: u32) -> Memory {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let mib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    };
    Memory { now: mib("VmRSS:"), peak: mib("VmHWM:") }
}
