use super::*;
use crate::fixture::faulty::{Fault, Faulty};
use crate::log::files::Disk;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

fn cache(memory: &Path, budget: u64) -> FocusCache {
    FocusCache::new(memory, "uid-1", budget)
}

/// Says that an entry was used so long ago.
fn used(cache: &FocusCache, handle: &Digest, ago: Duration) {
    let file = File::options().write(true).open(cache.dir.join(name(handle))).unwrap();
    file.set_modified(SystemTime::now() - ago).unwrap();
}

fn names(cache: &FocusCache) -> Vec<String> {
    let mut names = Disk.list(&cache.dir).unwrap();
    names.sort();
    names
}

#[test]
fn what_is_kept_is_read_in_parts_by_its_handle() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), BUDGET);
    let text = "order ".repeat(5000);
    let handle = cache.keep(&Disk, &text).unwrap();
    assert_eq!(handle, Digest::of_bytes(text.as_bytes()));
    assert_eq!(names(&cache), [name(&handle)]);
    assert_eq!(name(&handle).len(), 64);
    let read = cache.read(&Disk, &format!("{{\"handle\":\"{handle}\",\"offset\":6,\"bytes\":5}}")).unwrap();
    assert_eq!(read, "order\n[bytes 6 to 11 of 30000; go on with offset 11]");
    let whole = cache.read(&Disk, &format!("{{\"handle\":\"{handle}\"}}")).unwrap();
    assert!(whole.ends_with("[bytes 0 to 8192 of 30000; go on with offset 8192]"), "{whole}");
}

#[test]
fn two_jobs_that_keep_the_same_text_share_an_entry() {
    let memory = tempfile::tempdir().unwrap();
    let one = cache(memory.path(), BUDGET);
    let other = FocusCache::new(memory.path(), "uid-2", BUDGET);
    let handle = one.keep(&Disk, "the same").unwrap();
    used(&one, &handle, Duration::from_hours(1));
    assert_eq!(other.keep(&Disk, "the same").unwrap(), handle);
    assert_eq!(names(&one), [name(&handle)]);
    let age = fs::metadata(one.dir.join(name(&handle))).unwrap().modified().unwrap().elapsed().unwrap();
    assert!(age < Duration::from_mins(30), "it was used just now");
}

#[test]
fn the_least_recently_used_entry_goes_first_and_the_newest_never() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), 25);
    let [a, b] = ["aaaaaaaaaa", "bbbbbbbbbb"].map(|text| cache.keep(&Disk, text).unwrap());
    used(&cache, &a, Duration::from_hours(2));
    used(&cache, &b, Duration::from_hours(1));
    assert!(cache.get(&Disk, &a).is_some(), "now it is the latest used");
    let c = cache.keep(&Disk, "cccccccccc").unwrap();
    assert!(cache.get(&Disk, &b).is_none());
    assert!(cache.get(&Disk, &a).is_some() && cache.get(&Disk, &c).is_some());
    let large = cache.keep(&Disk, &"x".repeat(100)).unwrap();
    assert_eq!(names(&cache), [name(&large)]);
}

#[test]
fn what_a_dead_writer_left_goes_and_what_a_living_one_writes_stays() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), 1000);
    cache.keep(&Disk, "x").unwrap();
    for (name, age) in [(".tmp-dead", 3600), (".tmp-alive", 1)] {
        let file = File::create(cache.dir.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    cache.keep(&Disk, "y").unwrap();
    assert_eq!(names(&cache).iter().filter(|name| name.starts_with('.')).collect::<Vec<_>>(), [".tmp-alive"]);
}

#[test]
fn a_changed_entry_is_not_used_and_is_mended_when_it_is_kept_again() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), BUDGET);
    let handle = cache.keep(&Disk, "as it was").unwrap();
    fs::write(cache.dir.join(name(&handle)), "forged").unwrap();
    assert_eq!(cache.get(&Disk, &handle), None);
    cache.keep(&Disk, "as it was").unwrap();
    assert_eq!(cache.get(&Disk, &handle).as_deref(), Some("as it was"));
}

#[test]
fn what_the_model_gets_wrong_is_a_sentence() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), BUDGET);
    let handle = cache.keep(&Disk, "short").unwrap();
    let unknown = Digest::of_bytes(b"unknown");
    for (arguments, says) in [
        (format!("{{\"handle\":\"{unknown}\"}}"), "is not kept any more"),
        ("{\"handle\":\"../../jobs/k-1.json\"}".to_owned(), "is no handle"),
        (format!("{{\"handle\":\"{handle}\",\"offset\":5}}"), "has 5 bytes, so nothing begins at offset 5"),
        (format!("{{\"handle\":\"{handle}\",\"lines\":5}}"), "unknown field `lines`"),
    ] {
        let error = cache.read(&Disk, &arguments).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_crash_at_any_operation_leaves_an_entry_whole_or_absent() {
    let text = "whole or absent";
    let handle = Digest::of_bytes(text.as_bytes());
    for fault in [Fault::KillBefore, Fault::KillAfter] {
        for at in 0.. {
            let memory = tempfile::tempdir().unwrap();
            let cache = cache(memory.path(), BUDGET);
            let kept = cache.keep(&Faulty::killed(at, fault), text);
            let file = cache.dir.join(name(&handle));
            assert!(!file.exists() || fs::read_to_string(&file).unwrap() == text);
            assert_eq!(cache.keep(&Disk, text).unwrap(), handle);
            assert_eq!(cache.get(&Disk, &handle).as_deref(), Some(text));
            if kept.is_ok() {
                break;
            }
        }
    }
}
