use super::*;
use crate::job::fixtures::{report, stamp, status};
use bloomery_crds::report::ParkReason;
use proptest::prelude::*;

fn apply(standing: &JobStatus, report: &Report) -> JobStatus {
    match merge(standing, report, &stamp(9)) {
        Merged::Nothing => standing.clone(),
        Merged::Now(status) | Merged::Later(status) => *status,
    }
}

fn is_now(standing: &JobStatus, report: &Report) -> bool {
    matches!(merge(standing, report, &stamp(9)), Merged::Now(_))
}

fn reason(status: &JobStatus) -> String {
    conditions::find(&status.conditions, ConditionType::Ready).unwrap().reason.clone()
}

#[test]
fn the_first_report_of_an_attempt_is_told_at_once_and_the_next_can_wait() {
    let started = status(1, Phase::Starting);
    let first = report(1, 1, 3, Phase::Running);
    assert!(is_now(&started, &first));
    let running = apply(&started, &first);
    assert_eq!((running.phase, reason(&running).as_str()), (Some(Phase::Running), "Running"));
    assert_eq!(merge(&running, &first, &stamp(90)), Merged::Nothing);
    let second = report(1, 1, 5, Phase::Finalizing);
    assert!(!is_now(&running, &second));
    assert_eq!((ack(&running, &second), ack(&apply(&running, &second), &second)), (3, 5));
}

#[test]
fn a_report_breaks_the_silence() {
    let mut started = status(3, Phase::Starting);
    started.attempt.as_mut().unwrap().silent = Some(2);
    assert_eq!(apply(&started, &report(3, 1, 3, Phase::Running)).attempt.unwrap().silent, None);
}

#[test]
fn an_outcome_ends_the_job_and_stays() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let last = report(1, 1, 9, Phase::Succeeded);
    assert!(is_now(&running, &last));
    let ended = apply(&running, &last);
    assert_eq!((ended.phase, reason(&ended).as_str()), (Some(Phase::Succeeded), "Succeeded"));
    assert!(ended.completion_time.is_some());
    let other = report(1, 2, 12, Phase::Escalated);
    assert_eq!(merge(&ended, &other, &stamp(99)), Merged::Nothing);
    // Nothing will ever be written of it, so nobody need wait for that.
    assert_eq!(ack(&ended, &other), 12);
}

#[test]
fn parking_queues_the_job_and_nothing_of_the_same_attempt_takes_it_back() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let mut parks = report(1, 1, 4, Phase::Running);
    parks.end = Some(End::Parked(ParkReason::Drain));
    assert!(is_now(&running, &parks));
    let parked = apply(&running, &parks);
    assert_eq!((parked.phase, reason(&parked).as_str()), (Some(Phase::Queued), "Parked"));
    for late in [parks, report(1, 1, 4, Phase::Running), report(1, 1, 6, Phase::Running)] {
        assert_eq!(apply(&parked, &late).phase, Some(Phase::Queued));
    }
    assert_eq!(apply(&parked, &report(1, 1, 6, Phase::Succeeded)).phase, Some(Phase::Succeeded));
}

#[test]
fn what_a_worker_waits_for_is_told_when_it_begins_and_when_it_ends() {
    let running = apply(&status(1, Phase::Starting), &report(1, 1, 3, Phase::Running));
    let mut waits = report(1, 1, 3, Phase::Running);
    waits.waiting = Some(Waiting::SecretMissing { name: "llm".into(), key: "token".into() });
    assert!(is_now(&running, &waits));
    let waiting = apply(&running, &waits);
    assert_eq!(reason(&waiting), "SecretMissing");
    assert_eq!(merge(&waiting, &waits, &stamp(99)), Merged::Nothing);
    let goes_on = report(1, 1, 3, Phase::Running);
    assert!(is_now(&waiting, &goes_on));
    assert_eq!(reason(&apply(&waiting, &goes_on)), "Running");
}

#[test]
fn who_was_superseded_and_who_is_of_another_attempt_says_nothing() {
    let running = apply(&status(2, Phase::Starting), &report(2, 2, 5, Phase::Running));
    let mut superseded = report(2, 2, 6, Phase::Running);
    superseded.end = Some(End::Superseded);
    for report in [superseded, report(1, 3, 9, Phase::Succeeded), report(3, 3, 9, Phase::Succeeded)] {
        assert_eq!(merge(&running, &report, &stamp(9)), Merged::Nothing);
    }
    assert_eq!(merge(&JobStatus::default(), &report(1, 1, 1, Phase::Running), &stamp(9)), Merged::Nothing);
}

#[test]
fn a_log_that_forgot_is_not_followed() {
    let running = apply(&status(2, Phase::Starting), &report(2, 2, 5, Phase::Running));
    let forgot = report(2, 3, 4, Phase::Running);
    assert_eq!(merge(&running, &forgot, &stamp(9)), Merged::Nothing);
    assert_eq!(ack(&running, &forgot), 5);
}

/// Reports of one attempt at distinct places of its log, the last of which may be the outcome.
fn reports() -> impl Strategy<Value = Vec<Report>> {
    let places = prop::collection::btree_set((1_u64..4, 1_u64..30), 1..8);
    let sorted = places.prop_map(|places| {
        // A log grows: later epochs have more events.
        places.into_iter().map(|(epoch, events)| (epoch, epoch * 100 + events)).collect::<Vec<_>>()
    });
    (sorted, any::<bool>(), prop::collection::vec(any::<bool>(), 8)).prop_map(|(places, ends, finalizing)| {
        let last = places.len() - 1;
        let phase = |at: usize| match finalizing[at] {
            _ if ends && at == last => Phase::Succeeded,
            true => Phase::Finalizing,
            false => Phase::Running,
        };
        places.iter().enumerate().map(|(at, (epoch, events))| report(2, *epoch, *events, phase(at))).collect()
    })
}

fn rank(status: &JobStatus) -> (bool, u64, u64) {
    let epoch = status.attempt.as_ref().and_then(|attempt| attempt.epoch).unwrap_or(0);
    (status.is_terminal(), epoch, status.log.as_ref().map_or(0, |log| log.events))
}

proptest! {
    #[test]
    fn order_and_repetition_of_reports_do_not_matter(
        (reports, order) in reports().prop_flat_map(|reports| {
            let twice: Vec<Report> = reports.iter().chain(&reports).cloned().collect();
            (Just(reports), Just(twice).prop_shuffle())
        }),
    ) {
        let start = status(2, Phase::Starting);
        let in_order = reports.iter().fold(start.clone(), |status, report| apply(&status, report));
        let mut shuffled = start;
        for report in &order {
            let next = apply(&shuffled, report);
            prop_assert!(rank(&next) >= rank(&shuffled), "never backwards");
            shuffled = next;
        }
        prop_assert_eq!(shuffled, in_order);
    }
}
