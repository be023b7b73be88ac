//! Workers that take single steps in random order, freeze, continue and are killed. Each write replaces the content that its
//! worker has read, and all workers read the last write.

use super::super::ledger::{ClaimError, PublishError, Staged};
use super::super::write::{Attempt, NoteWrite};
use super::*;
use crate::marks::Marks;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, SystemTime};

const NOTES: [&str; 2] = ["activeContext.md", "details/a.md"];
const WORKERS: usize = 3;

/// The progress of a worker with its write.
enum Progress<'a> {
    Begin,
    Read(String),
    Staged(Staged<'a>, Vec<u8>),
    Claimed(Staged<'a>),
}

/// The next act of a worker.
#[derive(Debug, Clone, Copy)]
enum Act {
    Step,
    Kill,
}

struct Worker<'a> {
    progress: Progress<'a>,
    /// The index of the note in [`NOTES`].
    note: usize,
    /// The number of writes that the worker has begun.
    writes: usize,
}

/// The expected content of each note, by its index in [`NOTES`]: the content that was claimed last.
type ExpectedContents = BTreeMap<usize, Vec<u8>>;

impl<'a> Worker<'a> {
    fn step(&mut self, id: usize, bank: &'a OpenBank, expected: &mut ExpectedContents) {
        let name = Name::parse(NOTES[self.note]).unwrap();
        self.progress = match std::mem::replace(&mut self.progress, Progress::Begin) {
            Progress::Begin => {
                self.note = (self.note + 1) % NOTES.len();
                let name = Name::parse(NOTES[self.note]).unwrap();
                Progress::Read(note_content::expected_hash(bank.content(&name).unwrap().as_ref()).to_owned())
            }
            Progress::Read(expect) => {
                self.writes += 1;
                let content = format!("{id}: {}\n", self.writes).into_bytes();
                let author = author(&format!("{}-{id}", self.writes));
                let request = NoteWrite {
                    name: &name,
                    content: &content,
                    expect: &expect,
                    author: &author,
                    marks: &Marks::default(),
                };
                match bank.attempt(&request, &format!("uid-{id}")) {
                    Ok(Attempt::Staged(staged, _)) => Progress::Staged(*staged, content),
                    Ok(Attempt::Retry) => Progress::Read(expect),
                    Ok(Attempt::Done(text)) => panic!("{text}"),
                    Err(_conflict) => Progress::Begin,
                }
            }
            Progress::Staged(mut staged, content) => {
                if staged.claim().unwrap() {
                    let replaced = expected.insert(self.note, content);
                    assert_eq!(staged.record.replaced, replaced.map(|replaced| NoteContent::new(replaced).digest));
                    Progress::Claimed(staged)
                } else {
                    Progress::Begin
                }
            }
            Progress::Claimed(staged) => {
                staged.publish(bank).unwrap();
                Progress::Begin
            }
        };
    }

    /// Ends the worker without removing its staged files. The next step starts a new one.
    fn kill(&mut self) {
        match std::mem::replace(&mut self.progress, Progress::Begin) {
            Progress::Staged(staged, _) | Progress::Claimed(staged) => std::mem::forget(staged),
            Progress::Begin | Progress::Read(_) => {}
        }
    }
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![9 => Just(Act::Step), 1 => Just(Act::Kill)];
    prop::collection::vec((0..WORKERS, act), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn each_write_replaces_the_content_that_its_worker_has_read(acts in acts()) {
        let fixture = Fixture::new();
        let banks: Vec<OpenBank> = (0..WORKERS).map(|_| OpenBank::open_or_create(fixture.dir.path()).unwrap()).collect();
        let new_worker = |_| Worker { progress: Progress::Begin, note: 0, writes: 0 };
        let mut workers: Vec<Worker<'_>> = (0..WORKERS).map(new_worker).collect();
        let mut expected = ExpectedContents::new();
        for (id, act) in acts {
            match act {
                Act::Step => workers[id].step(id, &banks[id], &mut expected),
                Act::Kill => workers[id].kill(),
            }
            for (note, name) in NOTES.iter().enumerate() {
                let content = banks[id].content(&Name::parse(name).unwrap()).unwrap();
                prop_assert_eq!(content.map(|content| content.bytes), expected.get(&note).cloned());
            }
        }
    }
}

/// Stages a write of `progress.md` that is not claimed yet.
fn staged<'a>(bank: &'a OpenBank, content: &str, expect: &str) -> Staged<'a> {
    let name = Name::parse("progress.md").unwrap();
    let request = NoteWrite {
        name: &name,
        content: content.as_bytes(),
        expect,
        author: &author("7-0"),
        marks: &Marks::default(),
    };
    match bank.attempt(&request, "uid-frozen") {
        Ok(Attempt::Staged(staged, _)) => *staged,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_next_worker_reads_and_publishes_the_claim_of_a_killed_worker() {
    let fixture = Fixture::new();
    let bank = OpenBank::open_or_create(fixture.dir.path()).unwrap();
    let mut killed = staged(&bank, "One.\n", NONE);
    assert!(killed.claim().unwrap());
    std::mem::forget(killed);
    assert!(!fixture.at("progress.md").exists() && fixture.bank().has_notes());
    let read = fixture.read("progress.md").unwrap();
    assert!(read.starts_with("One.\n"), "{read}");
    fixture.write("techContext.md", "Rust.\n", NONE).unwrap();
    assert_eq!(fixture.get("progress.md"), "One.\n");
}

/// The write of a claim may not be published yet, so ignoring the claim would lose the write.
#[test]
fn a_claim_that_cannot_be_read_is_an_error_and_stops_further_claims() {
    let fixture = Fixture::new();
    let bank = OpenBank::open_or_create(fixture.dir.path()).unwrap();
    let mut killed = staged(&bank, "One.\n", NONE);
    assert!(killed.claim().unwrap());
    std::mem::forget(killed);
    let (claim, aside) = (fixture.at(".ledger/00000000000000000001.json"), fixture.dir.path().join("aside"));
    fs::rename(&claim, &aside).unwrap();
    fs::create_dir(&claim).unwrap();
    let write = fixture.write("techContext.md", "Rust.\n", NONE).unwrap_err().to_string();
    for error in [write, fixture.read("progress.md").unwrap_err().to_string()] {
        assert!(error.contains("cannot be opened: 00000000000000000001.json cannot be read"), "{error}");
    }
    assert!(fixture.bank().has_notes() && fixture.bank().consult()[0].text.is_err());
    fs::remove_dir(&claim).unwrap();
    fs::rename(&aside, &claim).unwrap();
    fixture.write("techContext.md", "Rust.\n", NONE).unwrap();
    assert_eq!(fixture.get("progress.md"), "One.\n");
}

/// After an error of the link, the worker reads the claim to find out whether the link exists.
#[test]
fn a_number_may_be_claimed_although_the_link_returned_an_error() {
    let fixture = Fixture::new();
    let bank = OpenBank::open_or_create(fixture.dir.path()).unwrap();
    let lost = || Err(std::io::Error::other("no reply"));
    let claim = fixture.at(".ledger/00000000000000000001.json");

    let mut unclaimed = staged(&bank, "One.\n", NONE);
    assert!(matches!(unclaimed.owns_number(lost()), Err(ClaimError::Failed(_))));
    drop(unclaimed);
    assert_eq!(fixture.staged_files(), [""; 0]);

    let mut unknown = staged(&bank, "One.\n", NONE);
    fs::create_dir(&claim).unwrap();
    assert!(matches!(unknown.owns_number(lost()), Err(ClaimError::Unknown(_))));
    drop(unknown);
    // The content stays, because the number may be claimed.
    assert_eq!(fixture.staged_files().len(), 1);
    fs::remove_dir(&claim).unwrap();

    let mut claimed = staged(&bank, "One.\n", NONE);
    fs::write(&claim, serde_json::to_vec(&claimed.record).unwrap()).unwrap();
    assert!(claimed.owns_number(lost()).unwrap());
    assert!(!owns_number_of_another(&mut claimed));
}

/// Returns whether a worker whose record differs from that of the claim owns the number.
fn owns_number_of_another(other: &mut Staged<'_>) -> bool {
    other.record.staged.push('x');
    let is_ours = other.owns_number(Err(std::io::ErrorKind::AlreadyExists.into())).unwrap();
    other.record.staged.pop();
    is_ours
}

#[test]
fn a_manual_change_after_a_claim_stays() {
    let fixture = Fixture::with_notes(&[("progress.md", "One.\n")]);
    let bank = OpenBank::open_or_create(fixture.dir.path()).unwrap();
    let mut frozen = staged(&bank, "Two.\n", NoteContent::new("One.\n".into()).hash());
    assert!(frozen.claim().unwrap());
    fixture.put("progress.md", "By hand.\n");
    assert!(fixture.read("progress.md").unwrap().starts_with("By hand.\n"));
    assert!(matches!(frozen.publish(&bank), Err(PublishError::ChangedByHand)));
    drop(frozen);
    assert_eq!((fixture.get("progress.md").as_str(), fixture.staged_files()), ("By hand.\n", Vec::new()));
}

/// A worker is frozen before it claims its number. Meanwhile others write so many notes that the claim of that number is pruned.
#[test]
fn a_worker_that_was_frozen_cannot_claim_a_pruned_number() {
    let fixture = Fixture::new();
    let bank = OpenBank::open_or_create(fixture.dir.path()).unwrap();
    fixture.write("details/kept.md", "x", NONE).unwrap();
    let mut frozen = staged(&bank, "Frozen.\n", NONE);
    let mut hash = NONE.to_owned();
    let age = |by: u64| {
        for name in fixture.claims() {
            let file = File::options().append(true).open(fixture.at(&format!(".ledger/{name}"))).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_hours(by)).unwrap();
        }
    };
    for number in 0..520 {
        hash = hash_in(&fixture.write("progress.md", &number.to_string(), &hash).unwrap());
        if number == 505 {
            age(2);
        }
    }
    let claims = fixture.claims();
    assert!(claims.len() < 300, "{}", claims.len());
    // The last claim of each note stays, because it names the author.
    assert_eq!(claims[0], "00000000000000000001.json");
    assert!(fixture.read("details/kept.md").unwrap().contains("written by Job"));
    assert!(!claims.contains(&"00000000000000000002.json".to_owned()));
    assert!(!frozen.claim().unwrap());
    assert_eq!(fixture.get("progress.md"), "519");
}
