use super::*;
use crate::fixture::volatile::{Crash, Keeps, Volatile};
use bloomery_journal::files::Disk;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use bloomery_redact::Redactor;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

fn cache(memory: &Path, budget: u64) -> FocusCache {
    FocusCache::new(memory, "uid-1", budget)
}

/// Stores one text.
fn keep(cache: &FocusCache, files: &impl Files, text: &str) -> io::Result<Digest> {
    let [handle] = <[_; 1]>::try_from(cache.keep(files, &[text])).unwrap();
    handle
}

/// Sets the time at which an entry was used last.
fn set_last_use(cache: &FocusCache, handle: &Digest, ago: Duration) {
    let file = File::options().write(true).open(cache.dir.join(name(handle))).unwrap();
    file.set_modified(SystemTime::now() - ago).unwrap();
}

fn names(cache: &FocusCache) -> Vec<String> {
    let mut names = Disk.list(&cache.dir).unwrap();
    names.sort();
    names
}

#[test]
fn a_stored_text_is_read_in_parts_by_its_handle() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), DEFAULT_BUDGET_BYTES);
    let text = "order ".repeat(5000);
    let handle = keep(&cache, &Disk, &text).unwrap();
    assert_eq!(handle, Digest::of_bytes(text.as_bytes()));
    assert_eq!(names(&cache), [name(&handle)]);
    assert_eq!(name(&handle).len(), 64);
    let read = cache
        .read(&Disk, &format!("{{\"handle\":\"{handle}\",\"offset\":6,\"bytes\":5}}"), &Redactor::default())
        .unwrap();
    assert_eq!(read, "order\n[bytes 6 to 11 of 30000; continue with offset 11]");
    let whole = cache.read(&Disk, &format!("{{\"handle\":\"{handle}\"}}"), &Redactor::default()).unwrap();
    assert!(whole.ends_with("[bytes 0 to 8192 of 30000; continue with offset 8192]"), "{whole}");
}

#[test]
fn jobs_that_store_the_same_text_share_an_entry() {
    let memory = tempfile::tempdir().unwrap();
    let one = cache(memory.path(), DEFAULT_BUDGET_BYTES);
    let other = FocusCache::new(memory.path(), "uid-2", DEFAULT_BUDGET_BYTES);
    let handle = keep(&one, &Disk, "the same").unwrap();
    set_last_use(&one, &handle, Duration::from_hours(1));
    assert_eq!(keep(&other, &Disk, "the same").unwrap(), handle);
    assert_eq!(names(&one), [name(&handle)]);
    let age = fs::metadata(one.dir.join(name(&handle))).unwrap().modified().unwrap().elapsed().unwrap();
    assert!(age < Duration::from_mins(30), "it was used just now");
}

/// The Jobs store more than the budget, so entries are evicted meanwhile.
#[test]
fn concurrent_jobs_read_what_they_stored_or_nothing() {
    let memory = tempfile::tempdir().unwrap();
    let jobs = ["uid-1", "uid-2", "uid-3", "uid-4"];
    std::thread::scope(|scope| {
        for job in jobs {
            let cache = FocusCache::new(memory.path(), job, 2_000);
            scope.spawn(move || {
                for n in 0..100 {
                    // Half of the texts are the same for all Jobs.
                    let text = if n % 2 == 0 { format!("{n}").repeat(50) } else { format!("{job} {n}").repeat(50) };
                    let handle = keep(&cache, &Disk, &text).unwrap();
                    let read = cache.get(&Disk, &handle);
                    assert!(read.is_none_or(|read| read == text.as_bytes()), "{job} {n}");
                }
            });
        }
    });
    let cache = cache(memory.path(), 2_000);
    let handle = keep(&cache, &Disk, "the last").unwrap();
    assert_eq!(cache.get(&Disk, &handle).as_deref(), Some(&b"the last"[..]));
    let held: u64 = names(&cache).iter().map(|name| fs::metadata(cache.dir.join(name)).unwrap().len()).sum();
    assert!(held <= 2_000, "{held}");
}

#[test]
fn the_least_recently_used_entry_is_evicted_first_and_the_newest_never() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), 25);
    let [a, b] = ["aaaaaaaaaa", "bbbbbbbbbb"].map(|text| keep(&cache, &Disk, text).unwrap());
    set_last_use(&cache, &a, Duration::from_hours(2));
    set_last_use(&cache, &b, Duration::from_hours(1));
    assert!(cache.get(&Disk, &a).is_some(), "reading marks it as used");
    let c = keep(&cache, &Disk, "cccccccccc").unwrap();
    assert!(cache.get(&Disk, &b).is_none());
    assert!(cache.get(&Disk, &a).is_some() && cache.get(&Disk, &c).is_some());
    let large = keep(&cache, &Disk, &"x".repeat(100)).unwrap();
    assert_eq!(names(&cache), [name(&large)]);
    let together = ["d".repeat(20), "e".repeat(20)].map(|text| (Digest::of_bytes(text.as_bytes()), text));
    cache.keep(&Disk, &together.each_ref().map(|(_, text)| text.as_str()));
    assert!(together.iter().all(|(handle, text)| cache.get(&Disk, handle).as_deref() == Some(text.as_bytes())));
}

#[test]
fn directories_are_synced_and_listed_once_for_each_call() {
    let operations = |texts: &[&str]| {
        let memory = tempfile::tempdir().unwrap();
        let disk = Faulty::default();
        assert!(cache(memory.path(), DEFAULT_BUDGET_BYTES).keep(&disk, texts).iter().all(Result::is_ok));
        disk.operations.get()
    };
    let of_an_entry = ["look for it", "remove a leftover", "create", "rename"].len();
    let more = operations(&["a", "b", "c"]) - operations(&["a"]);
    assert_eq!(usize::try_from(more).unwrap(), 2 * of_an_entry);
    assert_eq!(operations(&[]), 0);
}

#[test]
fn an_entry_with_a_handle_survives_a_power_loss() {
    let memory = Path::new("/memory");
    let texts = ["a", "b", "c"];
    for at in 0.. {
        let disk = Volatile::new(memory);
        let cache = cache(memory, DEFAULT_BUDGET_BYTES);
        disk.crash_at(Crash::Before(at));
        let kept = cache.keep(&disk, &texts);
        disk.restart(Keeps::Nothing);
        for (handle, text) in kept.iter().zip(texts) {
            let Ok(handle) = handle else { continue };
            assert_eq!(cache.get(&disk, handle).as_deref(), Some(text.as_bytes()), "power loss before operation {at}");
        }
        if disk.operations() <= at {
            assert!(kept.iter().all(Result::is_ok));
            break;
        }
    }
}

#[test]
fn old_temporary_files_are_removed_and_recent_ones_stay() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), 1000);
    keep(&cache, &Disk, "x").unwrap();
    for (name, age) in [(".tmp-dead", 3600), (".tmp-alive", 1)] {
        let file = File::create(cache.dir.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    keep(&cache, &Disk, "y").unwrap();
    assert_eq!(names(&cache).iter().filter(|name| name.starts_with('.')).collect::<Vec<_>>(), [".tmp-alive"]);
}

#[test]
fn a_changed_entry_is_ignored_and_replaced_when_it_is_stored_again() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), DEFAULT_BUDGET_BYTES);
    let handle = keep(&cache, &Disk, "as it was").unwrap();
    fs::write(cache.dir.join(name(&handle)), "forged").unwrap();
    assert_eq!(cache.get(&Disk, &handle), None);
    keep(&cache, &Disk, "as it was").unwrap();
    assert_eq!(cache.get(&Disk, &handle).as_deref(), Some("as it was".as_bytes()));
}

#[test]
fn binary_data_is_stored_and_reading_it_as_text_names_its_kind() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), DEFAULT_BUDGET_BYTES);
    let image = b"\x89PNG\r\n\x1a\n\xff\xfe";
    let [handle] = <[_; 1]>::try_from(cache.keep(&Disk, &[image])).unwrap();
    let handle = handle.unwrap();
    assert_eq!(cache.get(&Disk, &handle).as_deref(), Some(&image[..]));
    let error = cache.read(&Disk, &format!("{{\"handle\":\"{handle}\"}}"), &Redactor::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("{handle} is an image (PNG) of 10 bytes, which cannot be read as text."));
}

#[test]
fn invalid_arguments_are_an_error_for_the_model() {
    let memory = tempfile::tempdir().unwrap();
    let cache = cache(memory.path(), DEFAULT_BUDGET_BYTES);
    let handle = keep(&cache, &Disk, "short").unwrap();
    let unknown = Digest::of_bytes(b"unknown");
    for (arguments, says) in [
        (format!("{{\"handle\":\"{unknown}\"}}"), "was removed"),
        ("{\"handle\":\"../../jobs/k-1.json\"}".to_owned(), "is not a handle"),
        (format!("{{\"handle\":\"{handle}\",\"offset\":5}}"), "has 5 bytes, so offset 5 is behind its end"),
        (format!("{{\"handle\":\"{handle}\",\"lines\":5}}"), "unknown field `lines`"),
    ] {
        let error = cache.read(&Disk, &arguments, &Redactor::default()).unwrap_err().to_string();
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
            let cache = cache(memory.path(), DEFAULT_BUDGET_BYTES);
            let kept = keep(&cache, &Faulty::killed(at, fault), text);
            let file = cache.dir.join(name(&handle));
            assert!(!file.exists() || fs::read_to_string(&file).unwrap() == text);
            assert_eq!(keep(&cache, &Disk, text).unwrap(), handle);
            assert_eq!(cache.get(&Disk, &handle).as_deref(), Some(text.as_bytes()));
            if kept.is_ok() {
                break;
            }
        }
    }
}

/// The secret is registered after the result was stored.
#[test]
fn parts_do_not_contain_a_part_of_a_secret() {
    let memory = tempfile::tempdir().unwrap();
    let cache = FocusCache::new(memory.path(), "uid-1", DEFAULT_BUDGET_BYTES);
    let handle = cache.keep(&Disk, &["the key is 0123456789."]).remove(0).unwrap();
    let redactor = Redactor::default();
    redactor.learn("key", b"0123456789");
    for offset in 0..20 {
        let arguments = format!("{{\"handle\":\"{handle}\",\"offset\":{offset},\"bytes\":5}}");
        let read = cache.read(&Disk, &arguments, &redactor).unwrap();
        assert!(!read.contains("012") && !read.contains("789"), "{read}");
    }
}
