//! Measures a skill directory, and finds the logs of ended runs that exceed the bounds of the installation.

use super::retention::{Bounds, EndedLog, exceeding};
use crate::{focus, limit_ledger, record, shared_cache, tools, trace};
use bloomery_crds::report::{MAX_PRUNABLE, MemorySurvey};
use bloomery_crds::v1alpha1::DirectoryUsage;
use bloomery_journal::JOBS;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The known directories of a skill directory, each with an own line in the survey.
const DIRECTORIES: [&str; 6] = [JOBS, trace::DIR, shared_cache::DIR, focus::DIR, tools::BANK, limit_ledger::DIR];

/// The name of the line for everything else.
const OTHER: &str = "other";

/// The deepest directory that is measured.
const MAX_DEPTH: usize = 16;

/// Measures a skill directory. Links count as themselves. Files that vanish meanwhile are not counted.
pub fn survey(memory: &Path, own_key: &str, bounds: Bounds, now: SystemTime) -> MemorySurvey {
    let mut directories: BTreeMap<&str, u64> = BTreeMap::new();
    let mut logs = Vec::new();
    for (name, path) in entries(memory) {
        let known = DIRECTORIES.into_iter().find(|known| *known == name).unwrap_or(OTHER);
        let bytes = if known == JOBS { survey_jobs(&path, own_key, &mut logs) } else { size(&path, 0) };
        *directories.entry(known).or_default() += bytes;
    }
    let mut directories: Vec<DirectoryUsage> = directories
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(name, bytes)| DirectoryUsage { name: name.to_owned(), bytes })
        .collect();
    directories.sort_by_key(|directory| std::cmp::Reverse(directory.bytes));
    let mut prunable = exceeding(logs, bounds, now);
    prunable.truncate(MAX_PRUNABLE);
    MemorySurvey { bytes: directories.iter().map(|directory| directory.bytes).sum(), directories, prunable }
}

/// Measures the directory of the logs and records, and adds the logs of ended runs. A run with a record has ended.
fn survey_jobs(jobs: &Path, own_key: &str, logs: &mut Vec<EndedLog>) -> u64 {
    let mut total = 0_u64;
    for (key, path) in entries(jobs) {
        let bytes = size(&path, 0);
        total = total.saturating_add(bytes);
        // The names of temporary files and of logs that are being pruned begin with a dot.
        if key == own_key || key.starts_with('.') || !path.is_dir() {
            continue;
        }
        let record = fs::symlink_metadata(jobs.join(record::name(&key))).and_then(|record| record.modified());
        logs.extend(record.ok().map(|ended| EndedLog { key, ended, bytes }));
    }
    total
}

/// Returns the sum of the sizes of the files below a path, in bytes. Those below [`MAX_DEPTH`], or with a name that is not UTF-8, are not
/// counted.
fn size(path: &Path, depth: usize) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() && depth < MAX_DEPTH => {
            entries(path).map(|(_, entry)| size(&entry, depth + 1)).fold(0, u64::saturating_add)
        }
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    }
}

/// Returns the names and paths of the entries of a directory that can be read.
fn entries(dir: &Path) -> impl Iterator<Item = (String, std::path::PathBuf)> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}
