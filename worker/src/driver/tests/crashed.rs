//! Power losses at every file operation, which lose everything that was not synced (`docs/explanation/engine.md`, section 7).

use super::*;
use crate::fixture::volatile::{Crash, Keeps, Volatile};
use bloomery_engine::line::Entry;
use bloomery_journal::fixture::checks::{answers, assert_allowed, assert_kept, interrupted_tool, parse};
use bloomery_testkit::sample;
use bloomery_testkit::twelve_steps::ANSWERS;
use rstest::rstest;
use std::sync::Arc;

/// Clears the stand, and returns a new disk for it. Before each effect, the shop asserts that the durable part of the log allows it.
fn disk(stand: &mut Stand) -> Volatile {
    stand.clear();
    let disk = Volatile::new(&stand.memory());
    let (watched, dir) = (disk.clone(), stand.memory());
    stand.shop.before_effect = Some(Arc::new(move |call| {
        let left = watched.after_power_loss();
        assert_allowed(&parse(&crate::fixture::stand::lines(&left, &dir)), call);
    }));
    disk
}

/// Runs the Job without a power loss. Returns its log and the number of file operations.
async fn undisturbed(stand: &mut Stand) -> (Vec<Entry>, u32) {
    let disk = disk(stand);
    stand.run_with(1, disk.clone(), Stop::default()).await.unwrap();
    (parse(&stand.lines(&disk)), disk.operations())
}

#[rstest]
#[tokio::test]
async fn after_a_power_loss_at_any_operation_the_run_ends_as_without_it(
    #[values(Crash::Before, Crash::After)] crash: fn(u32) -> Crash,
    #[values(Keeps::Nothing, Keeps::Everything)] keeps: Keeps,
) {
    let mut stand = Stand::with_twelve_steps().await;
    let (undisturbed, operations) = undisturbed(&mut stand).await;
    assert!(operations > 100, "{operations}");
    let mut during_refund = 0;
    for crash in (0..operations).step_by(sample::distance()).map(crash) {
        let disk = disk(&mut stand);
        disk.crash_at(crash);
        let _ = stand.run_with(1, disk.clone(), Stop::default()).await;
        disk.restart(keeps);
        let left = stand.lines(&disk);
        assert_kept(&stand.printed.text(), &left);
        let (asked, left_log) = (stand.model.request_count(), parse(&left));

        assert_eq!(stand.run_with(2, disk.clone(), Stop::default()).await.unwrap(), Exit::Finished, "{crash:?}");
        let lines = stand.lines(&disk);
        assert_eq!(lines[..left.len()], left, "{crash:?}: the prefix has changed");
        stand.assert_sound(&disk, &undisturbed);
        if interrupted_tool(&left_log).as_deref() == Some("refund") {
            during_refund += 1;
            assert_eq!(outcome(&stand, 2), OutcomeCode::ToolIndeterminate, "{crash:?}");
        } else {
            assert_eq!(outcome(&stand, 2), OutcomeCode::Succeeded, "{crash:?}");
            // A recorded model answer is not requested again.
            assert_eq!(stand.model.request_count() - asked, ANSWERS - answers(&left_log), "{crash:?}");
        }
    }
    assert!(during_refund > 0, "no power loss happened during a refund");
}
