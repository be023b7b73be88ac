//! Attempts that are killed at every operation on their files.

use super::*;
use bloomery_engine::line::Entry;
use bloomery_journal::fixture::faulty::{Fault, Faulty};

/// What a conversation must say whatever happened on the way: its acts, without epochs and what they repeat.
fn acts(log: &[Entry]) -> Vec<&'static str> {
    let repeated = ["epoch.started", "model.requested"];
    log.iter().map(|entry| entry.event.name()).filter(|name| !repeated.contains(name)).collect()
}

/// Whether the log ends inside a call with effect.
fn is_inside_an_effect(log: &[Entry]) -> bool {
    log.last().is_some_and(|entry| matches!(entry.event, Event::ToolStarted { .. } | Event::ToolProgressed { .. }))
}

async fn stand(tells: bool) -> Stand {
    let mut stand = Stand::new(refund(), Refund::Answers).await;
    stand.shop.tells = tells;
    stand
}

async fn operations_of_a_run(tells: bool) -> (u32, Vec<&'static str>) {
    let stand = stand(tells).await;
    let files = Faulty::default();
    let operations = files.operations.clone();
    stand.run_with(1, files, Stop::default()).await.unwrap();
    (operations.get(), acts(&stand.log()))
}

#[rstest::rstest]
#[tokio::test]
async fn killed_anywhere_it_ends_the_same_and_each_effect_happens_once(#[values(false, true)] tells: bool) {
    let (operations, undisturbed) = Box::pin(operations_of_a_run(tells)).await;
    assert!(operations > 50, "{operations}");
    assert_eq!(undisturbed.contains(&"tool.progressed"), tells);
    for fault in [Fault::KillBefore, Fault::KillAfter] {
        for at in 0..operations {
            let stand = stand(tells).await;
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
            // Every answer that was logged was asked for once.
            assert_eq!(stand.model.request_count() - asked, 5 - answered, "{fault:?} at {at}");
            drop(killed);
        }
    }
}
