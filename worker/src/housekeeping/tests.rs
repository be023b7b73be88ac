use super::*;
use bloomery_crds::report::MAX_PRUNABLE;
use std::fs::{self, File};
use std::os::unix::fs::symlink;

const BOUNDS: Bounds = Bounds { max_age: Duration::MAX, max_count: 1, max_bytes: u64::MAX };

/// Writes a file of this size.
fn write(memory: &Path, name: &str, bytes: usize) {
    let file = memory.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "x".repeat(bytes)).unwrap();
}

#[test]
fn a_survey_has_the_size_of_each_directory_and_follows_no_link() {
    let memory = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "large", 1000);
    write(memory.path(), "skill.yaml", 7);
    write(memory.path(), "jobs/a/1.jsonl", 20);
    write(memory.path(), "jobs/a.json", 3);
    write(memory.path(), "focus-cache/abc", 100);
    write(memory.path(), "notes/deep/file", 5);
    symlink(outside.path(), memory.path().join("jobs/link")).unwrap();
    let survey = survey::survey(memory.path(), "own", BOUNDS, SystemTime::now());
    let directories: Vec<(&str, u64)> =
        survey.directories.iter().map(|directory| (directory.name.as_str(), directory.bytes)).collect();
    assert_eq!((survey.bytes, directories), (135, vec![("focus-cache", 100), ("jobs", 23), ("other", 12)]));
    assert_eq!(
        survey::survey(&memory.path().join("absent"), "own", BOUNDS, SystemTime::now()),
        MemorySurvey::default()
    );
}

#[test]
fn only_ended_runs_of_others_are_prunable_and_their_number_is_bounded() {
    let memory = tempfile::tempdir().unwrap();
    for key in ["own", "unfinished"] {
        write(memory.path(), &format!("jobs/{key}/1.jsonl"), 1);
    }
    write(memory.path(), "jobs/own.json", 1);
    for at in 0..MAX_PRUNABLE + 2 {
        write(memory.path(), &format!("jobs/k-{at}/1.jsonl"), 1);
        write(memory.path(), &format!("jobs/k-{at}.json"), 1);
    }
    // A tombstone without a log.
    write(memory.path(), "jobs/pruned.json", 1);
    let prunable = survey::survey(memory.path(), "own", BOUNDS, SystemTime::now()).prunable;
    assert_eq!(prunable.len(), MAX_PRUNABLE);
    assert!(prunable.iter().all(|key| key.starts_with("k-")), "{prunable:?}");
    let wide = Bounds { max_count: usize::MAX, ..BOUNDS };
    assert_eq!(survey::survey(memory.path(), "own", wide, SystemTime::now()).prunable, [""; 0]);
}

#[tokio::test]
async fn expired_entries_of_the_shared_cache_are_removed_before_the_first_survey() {
    let memory = tempfile::tempdir().unwrap();
    write(memory.path(), "cache/old", 100);
    write(memory.path(), "cache/new", 10);
    let old = File::options().append(true).open(memory.path().join("cache/old")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
    let (mut housekeeper, link) = Housekeeper::start(memory.path(), "own", BOUNDS);
    housekeeper.wait_for_survey(Duration::from_mins(1)).await;
    let survey = link.surveys.borrow().clone().unwrap();
    assert!(!memory.path().join("cache/old").exists() && memory.path().join("cache/new").exists());
    assert_eq!(survey.bytes, 10);
}
