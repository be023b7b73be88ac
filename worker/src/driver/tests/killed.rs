//! Attempts that are killed at every file operation.

use super::*;
use bloomery_engine::line::Entry;
use bloomery_journal::fixture::faulty::{Fault, Faulty};
use bloomery_testkit::sample;

/// Returns the events that no kill may change. Epochs and repeated requests are left out.
fn acts(log: &[Entry]) -> Vec<&'static str> {
    let repeated = ["epoch.started", "model.requested"];
    log.iter().map(|entry| entry.event.name()).filter(|name| !repeated.contains(name)).collect()
}

/// Returns whether the log ends inside a call with an effect.
fn is_inside_an_effect(log: &[Entry]) -> bool {
    log.last().is_some_and(|entry| matches!(entry.event, Event::ToolStarted { .. } | Event::ToolProgressed { .. }))
}

async fn stand(reports_progress: bool) -> Stand {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    stand.shop.reports_progress = reports_progress;
    stand
}

async fn operations_of_a_run(reports_progress: bool) -> (u32, Vec<&'static str>) {
    let stand = stand(reports_progress).await;
    let files = Faulty::default();
    let operations = files.operations.clone();
    stand.run_with(1, files, Stop::default()).await.unwrap();
    (operations.get(), acts(&stand.log()))
}

#[rstest::rstest]
#[tokio::test]
async fn after_a_kill_at_any_operation_the_run_ends_the_same_and_repeats_no_effect(
    #[values(false, true)] reports_progress: bool,
) {
    let (operations, undisturbed) = Box::pin(operations_of_a_run(reports_progress)).await;
    assert!(operations > 50, "{operations}");
    assert_eq!(undisturbed.contains(&"tool.progressed"), reports_progress);
    for fault in [Fault::KillBefore, Fault::KillAfter] {
        for at in (0..operations).step_by(sample::distance()) {
            let stand = stand(reports_progress).await;
            let killed = stand.run_with(1, Faulty::killed(at, fault), Stop::default()).await;
            let left = stand.log();
            let inside = is_inside_an_effect(&left);
            let asked = stand.model.request_count();
            let answered = left.iter().filter(|entry| entry.event.name() == "model.answered").count();

            assert_eq!(stand.run(2).await, Exit::Finished, "{fault:?} at {at}");
            let log = stand.log();
            assert_eq!(log[..left.len()], left, "{fault:?} at {at}: acknowledged events changed");
            let effects = stand.shop.effects();
            let unique: std::collections::BTreeSet<_> = effects.iter().collect();
            assert_eq!(unique.len(), effects.len(), "{fault:?} at {at}: {effects:?}");
            if inside {
                assert_eq!(outcome(&stand, 2), OutcomeCode::ToolIndeterminate, "{fault:?} at {at}");
                continue;
            }
            assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded, "{fault:?} at {at}");
            assert_eq!(effects.len(), 2, "{fault:?} at {at}");
            assert_eq!(acts(&log), undisturbed, "{fault:?} at {at}");
            // A recorded model answer is not requested again.
            assert_eq!(stand.model.request_count() - asked, 5 - answered, "{fault:?} at {at}");
            drop(killed);
        }
    }
}
