use super::fixture::failing::Failing;
use super::fixture::faulty::{Fault, Faulty};
use super::fixture::{self, SOURCE};
use super::*;
use bloomery_crds::v1alpha1::LogPosition;
use bloomery_engine::event::CallId;
use bloomery_engine::line::{Chain, Entry, EventTime};
use bloomery_engine::{Conversation, Event};
use files::{Disk, Files};
use proptest::prelude::*;
use rstest::rstest;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

mod interleaving;

fn event(n: usize) -> Event {
    Event::ToolStarted { call: CallId::new(1, n) }
}

fn stamp() -> EventTime {
    EventTime { time: "2026-01-01T00:00:00.000Z".into(), elapsed_ms: 1 }
}

async fn claim_with<F: Files>(files: F, memory: &Path, uid: &str) -> Result<Claimed<F>, Error> {
    let store = Store::open(files, memory, "k-1", uid)?;
    claim_store(store, None).await
}

async fn claim_store<F: Files>(store: Store<F>, acknowledged: Option<&LogPosition>) -> Result<Claimed<F>, Error> {
    let chain = Chain::new(SOURCE).with_acknowledged(acknowledged);
    fixture::claim_at_once(store, chain, &mut Conversation::new(fixture::run()), 1).await
}

async fn log_of(memory: &Path, uid: &str) -> Log<Disk> {
    claim_with(Disk, memory, uid).await.unwrap().log
}

fn add<F: Files>(log: &mut Log<F>, n: usize) -> Result<(), Error> {
    log.append(event(n), stamp())?;
    log.sync()
}

fn dir(memory: &Path) -> PathBuf {
    memory.join("jobs/k-1")
}

fn read_all(memory: &Path) -> Result<Vec<Entry>, Error> {
    read_with(&Store::open(Disk, memory, "k-1", "reader")?)
}

fn read_with(store: &Store<Disk>) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    store.read(&mut Chain::new(SOURCE), |entry| entries.push(entry.clone()))?;
    Ok(entries)
}

fn epochs(memory: &Path) -> Vec<u64> {
    let started = |entry: Entry| match entry.event {
        Event::EpochStarted { epoch, .. } => Some(epoch),
        _ => None,
    };
    read_all(memory).unwrap().into_iter().filter_map(started).collect()
}

fn names(memory: &Path) -> Vec<String> {
    let mut names = Disk.list(&dir(memory)).unwrap();
    names.sort();
    names
}

#[tokio::test]
async fn each_sync_is_one_segment_named_by_its_first_line() {
    let memory = tempfile::tempdir().unwrap();
    let mut log = log_of(memory.path(), "uid-1").await;
    log.append(event(0), stamp()).unwrap();
    log.append(event(1), stamp()).unwrap();
    log.sync().unwrap();
    log.sync().unwrap();
    add(&mut log, 2).unwrap();
    log.close();
    assert_eq!(names(memory.path()), [1, 2, 4].map(segment::name));
    let read = read_all(memory.path()).unwrap();
    assert_eq!(read.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(read[3].event, event(2));
    assert_eq!((log.position().events, log.position().path.as_str()), (4, "jobs/k-1"));
}

#[tokio::test]
async fn an_event_that_was_not_synced_is_not_in_the_log() {
    let memory = tempfile::tempdir().unwrap();
    let log = log_of(memory.path(), "uid-1").await;
    log.append(event(0), stamp()).unwrap();
    assert_eq!((log.position().events, log.end().events), (1, 2), "only a durable position is reported");
    drop(log);
    assert_eq!(read_all(memory.path()).unwrap().len(), 1);
}

#[tokio::test]
async fn after_a_claim_the_previous_worker_is_superseded_before_it_acts() {
    let memory = tempfile::tempdir().unwrap();
    let mut first = log_of(memory.path(), "uid-1").await;
    add(&mut first, 0).unwrap();
    first.append(event(1), stamp()).unwrap();
    let mut second = log_of(memory.path(), "uid-2").await;
    assert!(matches!(first.sync(), Err(Error::Superseded { .. })));
    assert!(matches!(first.append(event(2), stamp()), Err(Error::Closed)));
    assert!(matches!(first.sync(), Err(Error::Closed)));
    add(&mut second, 3).unwrap();
    assert_eq!(epochs(memory.path()), [1, 2]);
    assert_eq!(read_all(memory.path()).unwrap().last().unwrap().event, event(3));
}

#[tokio::test]
async fn a_worker_that_loses_a_claim_reads_the_new_events_and_claims_the_next_epoch() {
    let memory = tempfile::tempdir().unwrap();
    let other = memory.path().to_owned();
    let claim_first = move || {
        let ran = std::thread::spawn(move || futures::executor::block_on(log_of(&other, "uid-2")));
        let _ = ran.join().unwrap();
    };
    let files = Faulty { before_link: std::cell::RefCell::new(Some(Box::new(claim_first))), ..Faulty::default() };
    let mut log = claim_with(files, memory.path(), "uid-1").await.unwrap().log;
    assert_eq!(epochs(memory.path()), [1, 2]);
    add(&mut log, 0).unwrap();
    assert_eq!(read_all(memory.path()).unwrap().len(), 3);
}

fn exists_although_linked(done: io::Result<()>) -> io::Result<()> {
    done.and(Err(io::ErrorKind::AlreadyExists.into()))
}

fn fails_although_linked(done: io::Result<()>) -> io::Result<()> {
    done.and(Err(io::Error::other("the server is gone")))
}

#[tokio::test]
async fn a_claim_whose_reply_was_lost_counts_as_the_claim_of_another_worker() {
    let memory = tempfile::tempdir().unwrap();
    let files = Faulty::default();
    files.link_reply.set(Some(exists_although_linked));
    let mut log = claim_with(files, memory.path(), "uid-1").await.unwrap().log;
    assert_eq!(epochs(memory.path()), [1, 2]);
    add(&mut log, 0).unwrap();
}

#[tokio::test]
async fn a_sync_whose_reply_was_lost_ends_the_epoch_and_the_next_epoch_reads_its_events() {
    let memory = tempfile::tempdir().unwrap();
    for (reply, n) in [(exists_although_linked as fn(_) -> _, 0), (fails_although_linked, 1)] {
        let mut log = claim_with(Faulty::default(), memory.path(), &format!("uid-{n}")).await.unwrap().log;
        log.files().link_reply.set(Some(reply));
        let failed = add(&mut log, n).unwrap_err();
        assert_eq!(matches!(failed, Error::Superseded { .. }), n == 0, "{failed}");
        assert!(matches!(log.sync(), Err(Error::Closed)));
        assert_eq!(read_all(memory.path()).unwrap().last().unwrap().event, event(n));
    }
    assert_eq!(epochs(memory.path()), [1, 2]);
}

#[tokio::test]
async fn a_failed_sync_is_never_retried() {
    let memory = tempfile::tempdir().unwrap();
    let healthy = claim_with(Faulty::default(), memory.path(), "uid-0").await.unwrap().log;
    let operations = healthy.files().operations.get();
    // Creation, link, removal of the temporary file, sync of the directory.
    for step in 0..4 {
        let memory = tempfile::tempdir().unwrap();
        let files = Faulty::killed(operations + step, Fault::KillBefore);
        let mut log = claim_with(files, memory.path(), "uid-1").await.unwrap().log;
        assert!(matches!(add(&mut log, 0), Err(Error::Io { .. })), "{step}");
        assert!(matches!(log.sync(), Err(Error::Closed)), "{step}");
    }
}

#[rstest]
#[case::cut_in_a_line(|text: String| text[..text.len() - 5].to_owned(), (2, 2), "cut off")]
// Missing lines at the end of a segment are detected at the start of the next one.
#[case::cut_between_lines(|text: String| text.lines().next().unwrap().to_owned() + "\n", (3, 1), "is missing")]
#[case::emptied(|_| String::new(), (2, 1), "empty")]
#[case::edited(|text: String| text.replacen("1-0", "1-9", 1), (2, 2), "edited")]
#[case::not_json(|text: String| format!("x{text}"), (2, 1), "cannot be read")]
#[case::reordered(|text: String| text.lines().rev().collect::<Vec<_>>().join("\n") + "\n", (2, 1), "is missing")]
#[case::of_another_job(|text: String| text.replace("/refund/", "/other/"), (2, 1), "belongs to")]
#[tokio::test]
async fn the_error_of_a_changed_segment_names_the_file_and_the_line(
    #[case] change: fn(String) -> String,
    #[case] (seq, line): (u64, u64),
    #[case] expected: &str,
) {
    let memory = tempfile::tempdir().unwrap();
    let mut log = log_of(memory.path(), "uid-1").await;
    log.append(event(0), stamp()).unwrap();
    add(&mut log, 1).unwrap();
    add(&mut log, 2).unwrap();
    let file = dir(memory.path()).join(segment::name(2));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, change(text)).unwrap();
    let error = claim_with(Disk, memory.path(), "uid-2").await.unwrap_err();
    let Error::Broken { file: named, line: at, reason } = &error else { panic!("{error}") };
    assert!(reason.contains(expected), "{reason}");
    assert_eq!((named, *at), (&dir(memory.path()).join(segment::name(seq)), line), "{error}");
    assert!(error.to_string().contains("is not continued"), "{error}");
}

#[rstest]
#[case(2)]
#[case(1)]
#[tokio::test]
async fn the_error_of_a_missing_segment_names_the_file(#[case] seq: u64) {
    let memory = tempfile::tempdir().unwrap();
    let mut log = log_of(memory.path(), "uid-1").await;
    add(&mut log, 0).unwrap();
    add(&mut log, 1).unwrap();
    fs::remove_file(dir(memory.path()).join(segment::name(seq))).unwrap();
    let error = claim_with(Disk, memory.path(), "uid-2").await.unwrap_err();
    assert!(error.to_string().contains(&segment::name(seq)), "{error}");
    assert!(error.to_string().contains(&format!("missing, but {} exists", segment::name(seq + 1))), "{error}");
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_not_continued() {
    let memory = tempfile::tempdir().unwrap();
    let mut log = log_of(memory.path(), "uid-1").await;
    add(&mut log, 0).unwrap();
    add(&mut log, 1).unwrap();
    let known = log.position();
    for kept in (0..3).rev() {
        fs::remove_file(dir(memory.path()).join(segment::name(kept + 1))).unwrap();
        let store = Store::open(Disk, memory.path(), "k-1", "uid-2").unwrap();
        let error = claim_store(store, Some(&known)).await.unwrap_err();
        assert!(matches!(error, Error::Lost { events, known: 3, .. } if events == kept), "{error}");
        assert!(error.to_string().contains("backup"), "{error}");
    }
    assert_eq!(epochs(memory.path()), [0_u64; 0], "no epoch begins");
}

#[tokio::test]
async fn a_log_that_was_replaced_by_another_is_not_continued() {
    let [memory, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let mut logs = Vec::new();
    for (n, memory) in [&memory, &other].into_iter().enumerate() {
        let mut log = log_of(memory.path(), "uid-1").await;
        add(&mut log, n).unwrap();
        logs.push(log.position());
    }
    let store = Store::open(Disk, memory.path(), "k-1", "uid-2").unwrap();
    let error = claim_store(store, Some(&logs[1])).await.unwrap_err();
    assert!(error.to_string().contains("differs from the line that the operator has acknowledged"), "{error}");
    let store = Store::open(Disk, memory.path(), "k-1", "uid-3").unwrap();
    assert_eq!(claim_store(store, Some(&logs[0])).await.unwrap().entry.seq, 3);
}

#[tokio::test]
async fn a_segment_leaves_no_temporary_file() {
    let memory = tempfile::tempdir().unwrap();
    let mut log = log_of(memory.path(), "uid-1").await;
    add(&mut log, 0).unwrap();
    add(&mut log, 1).unwrap();
    assert_eq!(names(memory.path()), [1, 2, 3].map(segment::name));
    log.close();
    assert!(matches!(add(&mut log, 2), Err(Error::Closed)));
}

#[tokio::test]
async fn a_temporary_file_that_another_worker_removes_is_written_again_and_its_link_fails() {
    let memory = tempfile::tempdir().unwrap();
    let mut log = claim_with(Faulty::default(), memory.path(), "uid-1").await.unwrap().log;
    let other = memory.path().to_owned();
    let claim_first = move || {
        let ran = std::thread::spawn(move || futures::executor::block_on(log_of(&other, "uid-2")));
        let _ = ran.join().unwrap();
    };
    log.files().before_link.replace(Some(Box::new(claim_first)));
    assert!(matches!(add(&mut log, 0), Err(Error::Superseded { .. })));
    assert_eq!(epochs(memory.path()), [1, 2]);
    assert_eq!(names(memory.path()), [1, 2].map(segment::name));
}

#[tokio::test]
async fn a_segment_that_cannot_be_written_is_removed() {
    let [counted, memory] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let sound = Failing::never();
    claim_with(sound.clone(), counted.path(), "uid-1").await.unwrap();
    let full = Failing::from(sound.writes(), io::ErrorKind::StorageFull);
    let mut log = claim_with(full, memory.path(), "uid-1").await.unwrap().log;
    assert!(matches!(add(&mut log, 0), Err(Error::Full { .. })));
    assert!(!names(memory.path()).contains(&".tmp-uid-1-2".to_owned()), "{:?}", names(memory.path()));
}

#[tokio::test]
async fn a_claim_removes_the_temporary_files_of_killed_workers_up_to_its_own_segment() {
    let memory = tempfile::tempdir().unwrap();
    let mut killed = log_of(memory.path(), "uid-1").await;
    add(&mut killed, 0).unwrap();
    for other in [".tmp-uid-1-3", ".tmp-uid-2-4", ".tmp-uid-2-x", ".probe-uid-2"] {
        fs::write(dir(memory.path()).join(other), "").unwrap();
    }
    let log = log_of(memory.path(), "uid-3").await;
    log.close();
    let left = [".probe-uid-2".to_owned(), ".tmp-uid-2-4".into(), ".tmp-uid-2-x".into()];
    assert_eq!(names(memory.path()), [&left[..], &[1, 2, 3].map(segment::name)].concat());
    // The first worker was only frozen. Its next segment is refused.
    assert!(matches!(add(&mut killed, 1), Err(Error::Superseded { .. })));
    assert_eq!(epochs(memory.path()), [1, 2]);
}

#[tokio::test]
async fn leftovers_are_removed_and_other_files_ignored() {
    let memory = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir(memory.path())).unwrap();
    for name in [".tmp-uid-1-1", ".probe-uid-1", ".tmp-uid-2-1", "notes.txt", "1.jsonl"] {
        fs::write(dir(memory.path()).join(name), "half a li").unwrap();
    }
    let mut log = log_of(memory.path(), "uid-1").await;
    add(&mut log, 0).unwrap();
    log.close();
    assert_eq!(names(memory.path()), [segment::name(1), segment::name(2), "1.jsonl".into(), "notes.txt".into()]);
}

#[tokio::test]
async fn a_wall_clock_that_was_set_back_only_changes_the_displayed_times() {
    let memory = tempfile::tempdir().unwrap();
    let log = log_of(memory.path(), "uid-1").await;
    for time in ["2026-01-01T00:00:00.000Z", "1999-12-31T23:59:59.999Z"] {
        log.append(event(0), EventTime { time: time.into(), elapsed_ms: 7 }).unwrap();
        log.sync().unwrap();
    }
    let mut conversation = Conversation::new(fixture::run());
    let store = Store::open(Disk, memory.path(), "k-1", "uid-2").unwrap();
    let claimed = fixture::claim_at_once(store, Chain::new(SOURCE), &mut conversation, 2).await.unwrap();
    assert_eq!((claimed.entry.seq, conversation.epoch()), (4, 2));
    // The monotonic clock measures work.
    assert_eq!(conversation.budget().worked_ms(), 14);
}

/// A mount of an object store. The text names the feature that it lacks.
struct ObjectStore(&'static str);

impl Files for ObjectStore {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.create_dir(dir)
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn create(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        if self.0 == "read-only" {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if self.0 == "exclusive creation" { fs::write(file, content) } else { Disk.create(file, content) }
    }
    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        match self.0 {
            "exclusive hard links" => fs::copy(file, name).map(|_| ()),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
    fn rename(&self, file: &Path, name: &Path) -> io::Result<()> {
        Disk.rename(file, name)
    }
    fn remove(&self, file: &Path) -> io::Result<()> {
        Disk.remove(file)
    }
    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        Disk.read(file)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        Disk.list(dir)
    }
}

#[rstest]
#[case("exclusive creation", "exclusive creation of files")]
#[case("exclusive hard links", "exclusive hard links")]
#[case("hard links", "no hard links")]
#[case("read-only", "VolumeReadOnly")]
fn a_volume_that_cannot_keep_a_log_is_refused_with_the_remedy(#[case] lacks: &'static str, #[case] expected: &str) {
    let memory = tempfile::tempdir().unwrap();
    let error = Store::open(ObjectStore(lacks), memory.path(), "k-1", "uid-1").err().unwrap().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(error.contains(&*memory.path().to_string_lossy()), "{error}");
    assert!(error.contains("Use a volume") || error.contains("Mount the volume writable"), "{error}");
}

#[rstest]
#[case("../k-2", "uid-1")]
#[case("", "uid-1")]
#[case("k-1", "a/b")]
#[case("k-1", "..")]
fn a_name_that_is_not_a_plain_file_name_is_refused(#[case] run_key: &str, #[case] uid: &str) {
    let memory = tempfile::tempdir().unwrap();
    let error = Store::open(Disk, memory.path(), run_key, uid).err().unwrap();
    assert!(error.to_string().contains("file name"), "{error}");
    assert!(Disk.list(memory.path()).unwrap().is_empty());
}
