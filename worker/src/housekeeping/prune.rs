//! Removes the logs of ended runs. Their outcome records stay, so that a Job with the run key takes over the outcome and repeats nothing.

use crate::record::Record;
use bloomery_journal::JOBS;
use std::fs;
use std::io;
use std::path::Path;

/// The beginning of the name of a log that is being removed. It is no run key.
const RENAMED_PREFIX: &str = ".pruned-";

/// Removes the log of a run that has ended. A worker sees all of the log or nothing of it, because the directory is renamed first.
///
/// # Errors
/// If the outcome of the run cannot be read from its record, or a file operation fails.
pub fn prune(memory: &Path, key: &str) -> io::Result<()> {
    if Record::read(memory, key)?.outcome.is_none() {
        return Err(io::Error::other("its record has no outcome"));
    }
    let jobs = memory.join(JOBS);
    let renamed = jobs.join(format!("{RENAMED_PREFIX}{key}"));
    fs::rename(jobs.join(key), &renamed)?;
    fs::remove_dir_all(&renamed)
}

/// Removes the rest of logs whose removal was interrupted. What cannot be removed stays for the next worker.
pub fn remove_leftovers(memory: &Path) {
    let entries = fs::read_dir(memory.join(JOBS)).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(RENAMED_PREFIX)) {
        let _ = fs::remove_dir_all(entry.path());
    }
}
