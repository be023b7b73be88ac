//! Attempts that are asked to stop, or taken over.

use super::*;
use bloomery_testkit::report_server::Reply;

/// Hangs where the model is asked for the second time.
fn hangs_after_the_reads() -> Vec<Answer> {
    let mut script = refund();
    script.insert(1, Answer::HangsOnce);
    script
}

/// A Job whose first attempt was drained when its reads were done.
pub(super) async fn parked_after_the_reads() -> Stand {
    let stand = Stand::new(hangs_after_the_reads(), Refund::Answers).await;
    let stop = Stop::default();
    let drain = async {
        stand.model.until_requests(2).await;
        stop.request(StopReason::Drain);
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Parked(ParkReason::Drain));
    stand
}

#[tokio::test]
async fn a_drain_drops_the_request_parks_and_the_next_attempt_goes_on() {
    let stand = parked_after_the_reads().await;
    assert_eq!(stand.events().last(), Some(&"parked"));
    let message = stand.termination(1);
    assert_eq!((message.end, message.outcome, message.acked), (PodEnd::Parked(ParkReason::Drain), None, true));
    let last = stand.reports().pop().unwrap().report;
    assert_eq!((last.end, last.projection.phase), (Some(PodEnd::Parked(ParkReason::Drain)), Phase::Queued));

    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded);
    assert_eq!(stand.shop.effects().len(), 2);
    // The reads are in the log and were not asked for again; the dropped request was.
    assert_eq!(stand.model.request_count(), 6);
}

#[tokio::test]
async fn a_drain_lets_a_call_with_effect_finish() {
    let stand = Stand::new(refund(), Refund::Waits).await;
    let stop = Stop::default();
    let drain = async {
        stand.shop.until_effects(1).await;
        stop.request(StopReason::Drain);
        stand.shop.let_go();
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Parked(ParkReason::Drain));
    let events = stand.events();
    assert_eq!(events[events.len() - 4..], ["tool.started", "tool.completed", "tool.ruled", "parked"]);
    stand.run(2).await;
    assert_eq!((outcome(&stand, 2), stand.shop.effects().len()), (OutcomeCode::Succeeded, 2));
}

#[tokio::test]
async fn what_a_server_tells_of_a_call_is_in_the_log_and_printed_while_it_is_under_way() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.shop.tells = true;
    let stand = stand;
    let seen = async {
        while !stand.printed.text().contains("refund: it is on its way") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let events = stand.events();
        assert_eq!(events[events.len() - 2..], ["tool.started", "tool.progressed"]);
        stand.shop.let_go();
    };
    let (exit, ()) = tokio::join!(stand.run(1), seen);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
    let log = stand.log();
    let told = log.iter().filter(|entry| matches!(entry.event, Event::ToolProgressed { .. }));
    assert_eq!(told.count(), 2, "once of each call with effect");
}

#[tokio::test]
async fn a_call_that_outlasts_the_grace_is_for_a_person() {
    let stand = Stand::new(refund(), Refund::Waits).await.impatient();
    let stop = Stop::default();
    let drain = async {
        stand.shop.until_effects(1).await;
        stop.request(StopReason::Drain);
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Finished);
    assert_eq!((outcome(&stand, 1), stand.shop.effects().len()), (OutcomeCode::ToolIndeterminate, 1));
}

#[tokio::test]
async fn a_drain_before_anything_was_begun_parks_at_once() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    let stop = Stop::default();
    stop.request(StopReason::Drain);
    assert_eq!(stand.run_with(1, Disk, stop).await.unwrap(), Exit::Parked(ParkReason::Drain));
    assert_eq!(stand.events(), ["epoch.started", "parked"]);
    assert!(stand.model.requests().is_empty());
}

#[tokio::test]
async fn an_attempt_whose_log_was_taken_over_does_nothing_more() {
    let stand = Stand::new(hangs_after_the_reads(), Refund::Answers).await;
    let stop = Stop::default();
    let frozen = stand.run_with(1, Disk, stop.clone());
    let other = async {
        stand.model.until_requests(2).await;
        assert_eq!(stand.run(2).await, Exit::Finished);
        let log = stand.log();
        // The frozen attempt is let go on: it parks, and finds its name taken.
        stop.request(StopReason::Drain);
        log
    };
    let (exit, log) = tokio::join!(frozen, other);
    assert_eq!(exit.unwrap(), Exit::Superseded);
    assert_eq!(stand.log(), log);
    let message = stand.termination(1);
    assert_eq!((message.end, message.outcome, message.log), (PodEnd::Superseded, None, None));
    assert_eq!((outcome(&stand, 2), stand.shop.effects().len()), (OutcomeCode::Succeeded, 2));
}

#[tokio::test]
async fn an_attempt_that_the_operator_calls_superseded_stops() {
    let mut stand = Stand::new(hangs_after_the_reads(), Refund::Answers).await;
    stand.operator = bloomery_testkit::report_server::ReportServer::start([Reply::Status(410)]).await;
    assert_eq!(stand.run(1).await, Exit::Superseded);
    assert_eq!(stand.termination(1).end, PodEnd::Superseded);
    assert!(!stand.events().contains(&"parked"));
}

#[tokio::test]
async fn starts_that_get_nowhere_end_as_a_crash_loop() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.shop.unlisted.lock().unwrap() = u32::MAX;
    for attempt in 1..=3 {
        // Killed while it waits for its tools.
        let run = stand.run_with(attempt, Disk, Stop::default());
        let claimed = usize::try_from(attempt).unwrap();
        tokio::select! {
            _ = run => panic!("it has nothing to end with"),
            _ = stand.operator.until_received(|taken| taken.iter().filter(|t| t.report.waiting.is_some()).count() >= claimed) => {}
        }
    }
    assert_eq!(stand.run(4).await, Exit::Finished);
    assert_eq!(outcome(&stand, 4), OutcomeCode::CrashLoop);
}

#[tokio::test]
async fn a_job_whose_pods_are_drained_before_they_get_anywhere_ends_too() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.shop.unlisted.lock().unwrap() = u32::MAX;
    for attempt in 1..=20 {
        let stop = Stop::default();
        stop.request(StopReason::Drain);
        assert_eq!(stand.run_with(attempt, Disk, stop).await.unwrap(), Exit::Parked(ParkReason::Drain));
    }
    assert_eq!(stand.run(21).await, Exit::Finished);
    let outcome = stand.termination(21).outcome.unwrap();
    assert_eq!(outcome.code, OutcomeCode::CrashLoop);
    assert!(outcome.message.contains("drain"), "{}", outcome.message);
}
