//! Attempts that have to stop, or that another attempt supersedes.

use super::*;
use bloomery_testkit::report_server::Reply;

/// Returns the script of a refund whose second request hangs.
fn hangs_after_the_reads() -> Vec<Answer> {
    let mut script = refund();
    script.insert(1, Answer::HangsOnce);
    script
}

/// Returns a stand whose first attempt was drained after its reads.
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
async fn a_drain_drops_the_request_and_parks_and_the_next_attempt_continues() {
    let stand = parked_after_the_reads().await;
    assert_eq!(stand.events().last(), Some(&"parked"));
    let message = stand.termination(1);
    assert_eq!((message.end, message.outcome, message.acked), (PodEnd::Parked(ParkReason::Drain), None, true));
    let last = stand.reports().pop().unwrap().report;
    assert_eq!((last.end, last.projection.phase), (Some(PodEnd::Parked(ParkReason::Drain)), Phase::Queued));

    assert_eq!(stand.run(2).await, Exit::Finished);
    assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded);
    assert_eq!(stand.shop.effects().len(), 2);
    // The dropped request is repeated. The reads are in the log, so they are not.
    assert_eq!(stand.model.request_count(), 6);
}

#[tokio::test]
async fn a_drain_lets_a_call_with_effect_finish() {
    let stand = Stand::new(refund(), Refund::Waits).await;
    let stop = Stop::default();
    let drain = async {
        stand.shop.until_effects(1).await;
        stop.request(StopReason::Drain);
        stand.shop.answer_calls();
    };
    let (exit, ()) = tokio::join!(stand.run_with(1, Disk, stop.clone()), drain);
    assert_eq!(exit.unwrap(), Exit::Parked(ParkReason::Drain));
    let events = stand.events();
    assert_eq!(events[events.len() - 4..], ["tool.started", "tool.completed", "tool.ruled", "parked"]);
    stand.run(2).await;
    assert_eq!((outcome(&stand, 2), stand.shop.effects().len()), (OutcomeCode::Succeeded, 2));
}

#[tokio::test]
async fn progress_is_recorded_and_printed_while_the_call_runs() {
    let mut stand = Stand::new(refund(), Refund::Waits).await;
    stand.shop.reports_progress = true;
    let stand = stand;
    let seen = async {
        while !stand.printed.text().contains("refund: it is on its way") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let events = stand.events();
        assert_eq!(events[events.len() - 2..], ["tool.started", "tool.progressed"]);
        stand.shop.answer_calls();
    };
    let (exit, ()) = tokio::join!(stand.run(1), seen);
    assert_eq!((exit, outcome(&stand, 1)), (Exit::Finished, OutcomeCode::Succeeded));
    let log = stand.log();
    let reports = log.iter().filter(|entry| matches!(entry.event, Event::ToolProgressed { .. }));
    assert_eq!(reports.count(), 2, "one for each call with an effect");
}

#[tokio::test]
async fn a_call_that_outlasts_the_grace_is_indeterminate() {
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
async fn a_drain_before_the_first_act_parks_at_once() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    let stop = Stop::default();
    stop.request(StopReason::Drain);
    assert_eq!(stand.run_with(1, Disk, stop).await.unwrap(), Exit::Parked(ParkReason::Drain));
    assert_eq!(stand.events(), ["epoch.started", "parked"]);
    assert!(stand.model.requests().is_empty());
}

#[tokio::test]
async fn an_attempt_whose_log_was_continued_by_another_is_superseded() {
    let stand = Stand::new(hangs_after_the_reads(), Refund::Answers).await;
    let stop = Stop::default();
    let frozen = stand.run_with(1, Disk, stop.clone());
    let other = async {
        stand.model.until_requests(2).await;
        assert_eq!(stand.run(2).await, Exit::Finished);
        let log = stand.log();
        // The frozen attempt continues. It tries to park, and finds the name of its segment taken.
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
async fn an_attempt_stops_when_the_operator_answers_that_it_is_superseded() {
    let mut stand = Stand::new(hangs_after_the_reads(), Refund::Answers).await;
    stand.operator = bloomery_testkit::report_server::ReportServer::start([Reply::Status(410)]).await;
    assert_eq!(stand.run(1).await, Exit::Superseded);
    assert_eq!(stand.termination(1).end, PodEnd::Superseded);
    assert!(!stand.events().contains(&"parked"));
}

#[tokio::test]
async fn attempts_that_are_killed_without_progress_end_the_job_as_a_crash_loop() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.shop.failing_lists.lock().unwrap() = u32::MAX;
    for attempt in 1..=3 {
        // The run is dropped while it waits for its tools, which has the effect of a kill.
        let run = stand.run_with(attempt, Disk, Stop::default());
        let waiting = usize::try_from(attempt).unwrap();
        tokio::select! {
            _ = run => panic!("the attempt ended while its server was missing"),
            _ = stand.operator.until_received(|received| received.iter().filter(|one| one.report.waiting.is_some()).count() >= waiting) => {}
        }
    }
    assert_eq!(stand.run(4).await, Exit::Finished);
    assert_eq!(outcome(&stand, 4), OutcomeCode::CrashLoop);
}

#[tokio::test]
async fn attempts_that_are_drained_without_progress_end_the_job_too() {
    let stand = Stand::new(refund(), Refund::Answers).await;
    *stand.shop.failing_lists.lock().unwrap() = u32::MAX;
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
