//! Workers that take turns at any step, freeze, go on and die: whatever the order, each write replaces what its worker
//! has read, and everybody reads what was written last.

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

/// How far a worker is.
enum At<'a> {
    Begin,
    Read(String),
    Staged(Staged<'a>, Vec<u8>),
    Claimed(Staged<'a>),
}

/// What a worker does next.
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

/// What each note holds in truth: what was claimed last.
type Truth = BTreeMap<usize, Vec<u8>>;

impl<'a> Worker<'a> {
    fn step(&mut self, who: usize, cabinet: &'a OpenBank, truth: &mut Truth) {
        let name = Name::parse(NOTES[self.note]).unwrap();
        self.at = match std::mem::replace(&mut self.at, At::Begin) {
            At::Begin => {
                self.note = (self.note + 1) % NOTES.len();
                let name = Name::parse(NOTES[self.note]).unwrap();
                At::Read(held::expectation(cabinet.held(&name).unwrap().as_ref()).to_owned())
            }
            At::Read(expect) => {
                self.written += 1;
                let content = format!("{who}: {}\n", self.written).into_bytes();
                let author = author(&format!("{}-{who}", self.written));
                let wish = NoteWrite {
                    name: &name,
                    content: &content,
                    expect: &expect,
                    author: &author,
                    marks: &Marks::default(),
                };
                match cabinet.attempt(&wish, &format!("uid-{who}")) {
                    Ok(Attempt::Staged(staged, _)) => At::Staged(*staged, content),
                    Ok(Attempt::Retry) => At::Read(expect),
                    Ok(Attempt::Done(text)) => panic!("{text}"),
                    Err(_conflict) => At::Begin,
                }
            }
            At::Staged(mut staged, content) => {
                if staged.claim().unwrap() {
                    let replaced = truth.insert(self.note, content);
                    assert_eq!(staged.record.replaced, replaced.map(|replaced| Held::new(replaced).digest));
                    At::Claimed(staged)
                } else {
                    At::Begin
                }
            }
            At::Claimed(staged) => {
                staged.publish(cabinet).unwrap();
                At::Begin
            }
        };
    }

    /// Nothing that it has staged is tidied up.
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
    fn each_write_replaces_what_its_worker_has_read(acts in acts()) {
        let stand = Stand::new();
        let cabinets: Vec<OpenBank> = (0..WORKERS).map(|_| OpenBank::make(stand.dir.path()).unwrap()).collect();
        let mut workers: Vec<Worker<'_>> = (0..WORKERS).map(|_| Worker { at: At::Begin, note: 0, written: 0 }).collect();
        let mut truth = Truth::new();
        for (who, act) in acts {
            match act {
                Act::Step => workers[who].step(who, &cabinets[who], &mut truth),
                Act::Die => workers[who].die(),
            }
            for (note, name) in NOTES.iter().enumerate() {
                let held = cabinets[who].held(&Name::parse(name).unwrap()).unwrap();
                prop_assert_eq!(held.map(|held| held.bytes), truth.get(&note).cloned());
            }
        }
    }
}

/// Stages a write of `progress.md` that is not claimed yet.
fn staged<'a>(cabinet: &'a OpenBank, content: &str, expect: &str) -> Staged<'a> {
    let name = Name::parse("progress.md").unwrap();
    let wish = NoteWrite {
        name: &name,
        content: content.as_bytes(),
        expect,
        author: &author("7-0"),
        marks: &Marks::default(),
    };
    match cabinet.attempt(&wish, "uid-frozen") {
        Ok(Attempt::Staged(staged, _)) => *staged,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_worker_that_died_had_claimed_is_read_and_finished_by_the_next() {
    let stand = Stand::new();
    let cabinet = OpenBank::make(stand.dir.path()).unwrap();
    let mut dying = staged(&cabinet, "One.\n", NONE);
    assert!(dying.claim().unwrap());
    std::mem::forget(dying);
    assert!(!stand.at("progress.md").exists() && stand.bank().holds_notes());
    let read = stand.read("progress.md").unwrap();
    assert!(read.starts_with("One.\n"), "{read}");
    stand.write("techContext.md", "Rust.\n", NONE).unwrap();
    assert_eq!(stand.get("progress.md"), "One.\n");
}

/// Taken for none, its write would be lost.
#[test]
fn a_claim_that_cannot_be_read_is_an_error_and_none_is_made_after_it() {
    let stand = Stand::new();
    let cabinet = OpenBank::make(stand.dir.path()).unwrap();
    let mut dying = staged(&cabinet, "One.\n", NONE);
    assert!(dying.claim().unwrap());
    std::mem::forget(dying);
    let (claim, aside) = (stand.at(".ledger/00000000000000000001.json"), stand.dir.path().join("aside"));
    fs::rename(&claim, &aside).unwrap();
    fs::create_dir(&claim).unwrap();
    let write = stand.write("techContext.md", "Rust.\n", NONE).unwrap_err().to_string();
    for error in [write, stand.read("progress.md").unwrap_err().to_string()] {
        assert!(error.contains("cannot be used: 00000000000000000001.json cannot be read"), "{error}");
    }
    assert!(stand.bank().holds_notes() && stand.bank().consult()[0].text.is_err());
    fs::remove_dir(&claim).unwrap();
    fs::rename(&aside, &claim).unwrap();
    stand.write("techContext.md", "Rust.\n", NONE).unwrap();
    assert_eq!(stand.get("progress.md"), "One.\n");
}

/// Of a link that fails it is not known what it has done, until the claim is looked at.
#[test]
fn a_link_that_fails_may_have_claimed() {
    let stand = Stand::new();
    let cabinet = OpenBank::make(stand.dir.path()).unwrap();
    let lost = || Err(std::io::Error::other("no reply"));
    let claim = stand.at(".ledger/00000000000000000001.json");

    let mut unclaimed = staged(&cabinet, "One.\n", NONE);
    assert!(matches!(unclaimed.is_after(lost()), Err(ClaimError::Failed(_))));
    drop(unclaimed);
    assert_eq!(stand.ledger(false), [""; 0]);

    let mut unknown = staged(&cabinet, "One.\n", NONE);
    fs::create_dir(&claim).unwrap();
    assert!(matches!(unknown.is_after(lost()), Err(ClaimError::Unknown(_))));
    drop(unknown);
    // If it was claimed, its content is to be found.
    assert_eq!(stand.ledger(false).len(), 1);
    fs::remove_dir(&claim).unwrap();

    let mut claimed = staged(&cabinet, "One.\n", NONE);
    fs::write(&claim, serde_json::to_vec(&claimed.record).unwrap()).unwrap();
    assert!(claimed.is_after(lost()).unwrap());
    assert!(!staged_again(&mut claimed));
}

/// Whether a number can be claimed that is another's.
fn staged_again(other: &mut Staged<'_>) -> bool {
    other.record.staged.push('x');
    let is_ours = other.is_after(Err(std::io::ErrorKind::AlreadyExists.into())).unwrap();
    other.record.staged.pop();
    is_ours
}

#[test]
fn what_a_person_has_written_after_a_claim_stays() {
    let stand = Stand::of(&[("progress.md", "One.\n")]);
    let cabinet = OpenBank::make(stand.dir.path()).unwrap();
    let mut frozen = staged(&cabinet, "Two.\n", Held::new("One.\n".into()).hash());
    assert!(frozen.claim().unwrap());
    stand.put("progress.md", "By hand.\n");
    assert!(stand.read("progress.md").unwrap().starts_with("By hand.\n"));
    assert!(matches!(frozen.publish(&cabinet), Err(PublishError::ChangedByHand)));
    drop(frozen);
    assert_eq!((stand.get("progress.md").as_str(), stand.ledger(false)), ("By hand.\n", Vec::new()));
}

/// A worker is frozen just before it claims its number, and so many others write that the claim of that number is
/// removed as old: it must not get the number.
#[test]
fn old_claims_go_and_a_worker_that_slept_through_it_claims_nothing() {
    let stand = Stand::new();
    let cabinet = OpenBank::make(stand.dir.path()).unwrap();
    stand.write("details/kept.md", "x", NONE).unwrap();
    let mut frozen = staged(&cabinet, "Frozen.\n", NONE);
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
    // The last of each note stays: it says who has written what stands there.
    assert_eq!(claims[0], "00000000000000000001.json");
    assert!(stand.read("details/kept.md").unwrap().contains("written by Job"));
    assert!(!claims.contains(&"00000000000000000002.json".to_owned()));
    assert!(!frozen.claim().unwrap());
    assert_eq!(stand.get("progress.md"), "519");
}
