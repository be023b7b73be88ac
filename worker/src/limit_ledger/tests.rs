use super::*;
use bloomery_crds::v1alpha1::Policy;
use bloomery_engine::event::CallId;
use bloomery_engine::rules::limits::reservation_of;
use bloomery_journal::files::Disk;
use bloomery_journal::fixture::failing::Failing;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use serde_json::json;
use std::fs;
use std::io::ErrorKind;

/// The number of calls that fit into the limit of [`policy`].
const FITTING: usize = 5;

fn policy() -> Policy {
    let limit = json!({"tool": "send_money", "sum": "amount", "per": "skill", "window": "24h", "max": 100 * FITTING});
    serde_json::from_value(json!({ "limits": [limit] })).unwrap()
}

fn key(nth: usize) -> Digest {
    Digest::of_bytes(nth.to_string().as_bytes())
}

/// Reserves 100 for a call.
fn reserve(ledger: &LimitLedger, files: &impl Files, nth: usize) -> ReservationAnswer {
    let call = CallId::new(1, nth);
    let reservation = reservation_of(&policy(), "send_money", &json!({"amount": 100}), &call, key(nth)).unwrap();
    ledger.reserve(files, &reservation)
}

fn ledger(dir: &Path, writer: &str) -> LimitLedger {
    LimitLedger::new(dir, writer)
}

fn entries(dir: &Path) -> usize {
    ledger(dir, "reader").latest(&Disk).unwrap().1.entries.len()
}

#[test]
fn a_reservation_is_made_once_and_returned_once() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = ledger(dir.path(), "a");
    assert!(reserve(&ledger, &Disk, 0).reserved && reserve(&ledger, &Disk, 0).reserved);
    assert_eq!(entries(dir.path()), 1);
    ledger.give_back(&Disk, &key(0)).unwrap();
    ledger.give_back(&Disk, &key(0)).unwrap();
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn concurrent_jobs_cannot_pass_a_limit_together() {
    let dir = tempfile::tempdir().unwrap();
    let reserved = std::thread::scope(|scope| {
        let job = |job: usize| {
            let ledger = ledger(dir.path(), &format!("job-{job}"));
            scope.spawn(move || (0..3).filter(|nth| reserve(&ledger, &Disk, job * 3 + nth).reserved).count())
        };
        let jobs: Vec<_> = (0..8).map(job).collect();
        jobs.into_iter().map(|job| job.join().unwrap()).sum::<usize>()
    });
    assert_eq!((reserved, entries(dir.path())), (FITTING, FITTING));
}

#[test]
fn old_states_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = ledger(dir.path(), "a");
    for nth in 0..40 {
        assert!(reserve(&ledger, &Disk, nth).reserved);
        ledger.give_back(&Disk, &key(nth)).unwrap();
    }
    let files = fs::read_dir(dir.path().join(DIR)).unwrap().count();
    assert_eq!(files, usize::try_from(KEPT_STATES).unwrap());
}

/// A worker reads the ledger and freezes. Others change it so often that the next number of the frozen worker is free again.
#[test]
fn a_worker_that_was_frozen_for_long_loses_no_amount_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let frozen = ledger(dir.path(), "frozen");
    let other = ledger(dir.path(), "other");
    let call = CallId::new(1, 0);
    let reservation = reservation_of(&policy(), "send_money", &json!({"amount": 100}), &call, key(0)).unwrap();
    let (mut answer, mut is_first) = (None, true);
    frozen
        .change(&Disk, &|ledger| ledger.contains(&key(0)), &mut |ledger| {
            if std::mem::take(&mut is_first) {
                for nth in 1..=FITTING {
                    assert!(reserve(&other, &Disk, nth).reserved);
                }
                for _ in 0..KEPT_STATES {
                    other.give_back(&Disk, &key(1)).unwrap();
                    assert!(reserve(&other, &Disk, 1).reserved);
                }
            }
            let (decided, next) = reservation.decide(ledger, now().unwrap());
            answer = Some(decided);
            next
        })
        .unwrap();
    assert!(!answer.unwrap().reserved, "the others have spent the whole limit");
    assert_eq!(entries(dir.path()), FITTING);
}

#[test]
fn a_worker_that_is_killed_at_any_operation_reserves_its_call_once() {
    for at in 0.. {
        for fault in [Fault::KillBefore, Fault::KillAfter] {
            let dir = tempfile::tempdir().unwrap();
            let killed = Faulty::killed(at, fault);
            let answer = reserve(&ledger(dir.path(), "killed"), &killed, 0);
            if killed.operations.get() <= at {
                assert!(answer.reserved && at > 5);
                return;
            }
            assert!(reserve(&ledger(dir.path(), "next"), &Disk, 0).reserved);
            assert_eq!(entries(dir.path()), 1);
        }
    }
}

#[test]
fn a_ledger_that_cannot_be_written_has_a_fault() {
    // The directory, a state and its link are the three writes of the first reservation.
    for at in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let answer = reserve(&ledger(dir.path(), "a"), &Failing::from(at, ErrorKind::StorageFull), 0);
        assert!(!answer.reserved && answer.fault.is_some(), "{at}: {answer:?}");
        assert!(reserve(&ledger(dir.path(), "a"), &Failing::never(), 0).reserved);
    }
}

#[test]
fn a_ledger_that_cannot_be_read_has_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(DIR)).unwrap();
    fs::write(dir.path().join(DIR).join(name(7)), "{}").unwrap();
    let answer = reserve(&ledger(dir.path(), "a"), &Disk, 0);
    assert!(answer.fault.unwrap().starts_with("00000000000000000007.json cannot be read"));
    assert!(ledger(dir.path(), "a").give_back(&Disk, &key(0)).is_err());
}
