//! Reads the skill directories on a tenant's volume.

use std::fs;
use std::path::Path;

use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::JobStatus;
use serde_json::Value;

/// Returns the keys of the Jobs whose logs are in a skill directory.
pub(crate) fn jobs(skill_dir: &Path) -> Vec<String> {
    let dir = skill_dir.join("jobs");
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let dirs = entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    dirs.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the lines of a Job's log, with its segments in order.
pub(crate) fn log(skill_dir: &Path, key: &str) -> Vec<String> {
    let dir = skill_dir.join("jobs").join(key);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut segments: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    segments.sort();
    let text = segments
        .iter()
        .map(|path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    text.collect::<String>().lines().map(str::to_owned).collect()
}

/// Returns the contents of all files below a directory.
pub(crate) fn everything(dir: &Path) -> String {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let text = entries.map(|entry| {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", dir.display())).path();
        if path.is_dir() {
            everything(&path)
        } else {
            String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned()
        }
    });
    text.collect()
}

/// Checks that a skill directory has the Job's whole log, and that the status has its last position.
pub(crate) fn holds_the_job(skill_dir: &Path, key: &str, status: &JobStatus) {
    let lines = log(skill_dir, key);
    assert_gap_free(&lines);
    let log = status.log.as_ref().expect("a Job that ran has a log");
    let last = lines.last().expect("the log has lines");
    assert_eq!(log.path, format!("jobs/{key}"));
    assert_eq!(log.events, lines.len() as u64, "the status has the number of lines");
    assert_eq!(log.head, Digest::of_bytes(last.as_bytes()), "the status has the digest of the last line");

    let record = skill_dir.join(format!("jobs/{key}.json"));
    let record = fs::read_to_string(&record).unwrap_or_else(|error| panic!("{}: {error}", record.display()));
    let record: Value = serde_json::from_str(&record).expect("the record is JSON");
    let code = status.outcome.as_ref().map(|outcome| outcome.code.to_string());
    assert_eq!(record.pointer("/outcome/code").and_then(Value::as_str), code.as_deref(), "{record:#}");

    let skill = fs::read_to_string(skill_dir.join("skill.yaml")).expect("the skill directory has its Skill");
    assert!(skill.contains("Help customers track orders"), "{skill}");
}

/// Checks that the lines are numbered without a gap, and that each has the digest of the line before.
fn assert_gap_free(lines: &[String]) {
    let mut before = Digest::of_bytes(b"");
    for (index, line) in lines.iter().enumerate() {
        let read: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("line {index}: {error}: {line}"));
        assert_eq!(read["seq"], index as u64 + 1, "{line}");
        assert_eq!(read["prevhash"], before.to_string(), "{line}");
        before = Digest::of_bytes(line.as_bytes());
    }
}
