//! Workers that take single steps in random order, freeze, continue and die. Each write replaces the content that its worker has
//! read, and all workers read the last write.

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

/// The progress of a worker.
enum At<'a> {
    Begin,
    Read(String),
    Staged(Staged<'a>, Vec<u8>),
    Claimed(Staged<'a>),
}

/// The next act of a worker.
#[derive(Debug, Clone, Copy)]
enum Act {
    Step,
    Die,
}

struct Worker<'a> {
    at: At<'a>,
    note: usize,
    written: usize,
}

/// The expected content of each note: the one claimed last.
type Truth = BTreeMap<usize, Vec<u8>>;

impl<'a> Worker<'a> {
    fn step(&mut self, who: usize, bank: &'a OpenBank, truth: &mut Truth) {
        let name = Name::parse(NOTES[self.note]).unwrap();
        self.at = match std::mem::replace(&mut self.at, At::Begin) {
            At::Begin => {
                self.note = (self.note + 1) % NOTES.len();
                let name = Name::parse(NOTES[self.note]).unwrap();
                At::Read(note_content::expected_hash(bank.content(&name).unwrap().as_ref()).to_owned())
            }
            At::Read(expect) => {
                self.written += 1;
                let content = format!("{who}: {}\n", self.written).into_bytes();
                let author = author(&format!("{}-{who}", self.written));
                let request = NoteWrite {
                    name: &name,
                    content: &content,
                    expect: &expect,
                    author: &author,
                    marks: &Marks::default(),
                };
                match bank.attempt(&request, &format!("uid-{who}")) {
                    Ok(Attempt::Staged(staged, _)) => At::Staged(*staged, content),
                    Ok(Attempt::Retry) => At::Read(expect),
                    Ok(Attempt::Done(text)) => panic!("{text}"),
                    Err(_conflict) => At::Begin,
                }
            }
            At::Staged(mut staged, content) => {
                if staged.claim().unwrap() {
                    let replaced = truth.insert(self.note, content);
                    assert_eq!(staged.record.replaced, replaced.map(|replaced| NoteContent::new(replaced).digest));
                    At::Claimed(staged)
                } else {
                    At::Begin
                }
            }
            At::Claimed(staged) => {
                staged.publish(bank).unwrap();
                At::Begin
            }
        };
    }

    /// Dies without removing its staged files.
    fn die(&mut self) {
        match std::mem::replace(&mut self.at, At::Begin) {
            At::Staged(staged, _) | At::Claimed(staged) => std::mem::forget(staged),
            At::Begin | At::Read(_) => {}
        }
    }
}

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![9 => Just(Act::Step), 1 => Just(Act::Die)];
    prop::collection::vec((0..WORKERS, act), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn each_write_replaces_the_content_that_its_worker_has_read(acts in acts()) {
        let stand = Stand::new();
        let banks: Vec<OpenBank> = (0..WORKERS).map(|_| OpenBank::open_or_create(stand.dir.path()).unwrap()).collect();
        let mut workers: Vec<Worker<'_>> = (0..WORKERS).map(|_| Worker { at: At::Begin, note: 0, written: 0 }).collect();
        let mut truth = Truth::new();
        for (who, act) in acts {
            match act {
                Act::Step => workers[who].step(who, &banks[who], &mut truth),
                Act::Die => workers[who].die(),
            }
            for (note, name) in NOTES.iter().enumerate() {
                let content = banks[who].content(&Name::parse(name).unwrap()).unwrap();
                prop_assert_eq!(content.map(|content| content.bytes), truth.get(&note).cloned());
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
fn the_claim_of_a_worker_that_died_is_read_and_published_by_the_next() {
    let stand = Stand::new();
    let bank = OpenBank::open_or_create(stand.dir.path()).unwrap();
    let mut dying = staged(&bank, "One.\n", NONE);
    assert!(dying.claim().unwrap());
    std::mem::forget(dying);
    assert!(!stand.at("progress.md").exists() && stand.bank().has_notes());
    let read = stand.read("progress.md").unwrap();
    assert!(read.starts_with("One.\n"), "{read}");
    stand.write("techContext.md", "Rust.\n", NONE).unwrap();
    assert_eq!(stand.get("progress.md"), "One.\n");
}

/// If the claim were ignored, its write would be lost.
#[test]
fn a_claim_that_cannot_be_read_is_an_error_and_stops_further_claims() {
    let stand = Stand::new();
    let bank = OpenBank::open_or_create(stand.dir.path()).unwrap();
    let mut dying = staged(&bank, "One.\n", NONE);
    assert!(dying.claim().unwrap());
    std::mem::forget(dying);
    let (claim, aside) = (stand.at(".ledger/00000000000000000001.json"), stand.dir.path().join("aside"));
    fs::rename(&claim, &aside).unwrap();
    fs::create_dir(&claim).unwrap();
    let write = stand.write("techContext.md", "Rust.\n", NONE).unwrap_err().to_string();
    for error in [write, stand.read("progress.md").unwrap_err().to_string()] {
        assert!(error.contains("cannot be opened: 00000000000000000001.json cannot be read"), "{error}");
    }
    assert!(stand.bank().has_notes() && stand.bank().consult()[0].text.is_err());
    fs::remove_dir(&claim).unwrap();
    fs::rename(&aside, &claim).unwrap();
    stand.write("techContext.md", "Rust.\n", NONE).unwrap();
    assert_eq!(stand.get("progress.md"), "One.\n");
}

/// Whether a failed link has claimed the number is decided by reading the claim.
#[test]
fn a_link_that_fails_may_have_claimed_the_number() {
    let stand = Stand::new();
    let bank = OpenBank::open_or_create(stand.dir.path()).unwrap();
    let lost = || Err(std::io::Error::other("no reply"));
    let claim = stand.at(".ledger/00000000000000000001.json");

    let mut unclaimed = staged(&bank, "One.\n", NONE);
    assert!(matches!(unclaimed.owns_number(lost()), Err(ClaimError::Failed(_))));
    drop(unclaimed);
    assert_eq!(stand.ledger(false), [""; 0]);

    let mut unknown = staged(&bank, "One.\n", NONE);
    fs::create_dir(&claim).unwrap();
    assert!(matches!(unknown.owns_number(lost()), Err(ClaimError::Unknown(_))));
    drop(unknown);
    // The content stays, because the number may be claimed.
    assert_eq!(stand.ledger(false).len(), 1);
    fs::remove_dir(&claim).unwrap();

    let mut claimed = staged(&bank, "One.\n", NONE);
    fs::write(&claim, serde_json::to_vec(&claimed.record).unwrap()).unwrap();
    assert!(claimed.owns_number(lost()).unwrap());
    assert!(!owns_number_of_another(&mut claimed));
}

/// Returns whether a number that another worker owns counts as claimed.
fn owns_number_of_another(other: &mut Staged<'_>) -> bool {
    other.record.staged.push('x');
    let is_ours = other.owns_number(Err(std::io::ErrorKind::AlreadyExists.into())).unwrap();
    other.record.staged.pop();
    is_ours
}

#[test]
fn a_manual_change_after_a_claim_stays() {
    let stand = Stand::of(&[("progress.md", "One.\n")]);
    let bank = OpenBank::open_or_create(stand.dir.path()).unwrap();
    let mut frozen = staged(&bank, "Two.\n", NoteContent::new("One.\n".into()).hash());
    assert!(frozen.claim().unwrap());
    stand.put("progress.md", "By hand.\n");
    assert!(stand.read("progress.md").unwrap().starts_with("By hand.\n"));
    assert!(matches!(frozen.publish(&bank), Err(PublishError::ChangedByHand)));
    drop(frozen);
    assert_eq!((stand.get("progress.md").as_str(), stand.ledger(false)), ("By hand.\n", Vec::new()));
}

/// A worker is frozen before it claims its number. Meanwhile others write so many notes that the claim of that number is pruned.
#[test]
fn a_worker_that_was_frozen_cannot_claim_a_pruned_number() {
    let stand = Stand::new();
    let bank = OpenBank::open_or_create(stand.dir.path()).unwrap();
    stand.write("details/kept.md", "x", NONE).unwrap();
    let mut frozen = staged(&bank, "Frozen.\n", NONE);
    let mut hash = NONE.to_owned();
    let age = |by: u64| {
        for name in stand.ledger(true) {
            let file = File::options().append(true).open(stand.at(&format!(".ledger/{name}"))).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_hours(by)).unwrap();
        }
    };
    for number in 0..520 {
        hash = hash_in(&stand.write("progress.md", &number.to_string(), &hash).unwrap());
        if number == 505 {
            age(2);
        }
    }
    let claims = stand.ledger(true);
    assert!(claims.len() < 300, "{}", claims.len());
    // The last claim of each note stays, because it names the author.
    assert_eq!(claims[0], "00000000000000000001.json");
    assert!(stand.read("details/kept.md").unwrap().contains("written by Job"));
    assert!(!claims.contains(&"00000000000000000002.json".to_owned()));
    assert!(!frozen.claim().unwrap());
    assert_eq!(stand.get("progress.md"), "519");
}
