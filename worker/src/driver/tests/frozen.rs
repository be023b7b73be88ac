//! Attempts that freeze directly before or after they link a segment into place, and continue in every order
//! (`docs/explanation/engine.md`, section 7).

use super::*;
use crate::fixture::frozen::{Frozen, ResumeOnDrop, When};
use crate::fixture::stand;
use bloomery_engine::line::Entry;
use bloomery_journal::files::Files;
use bloomery_journal::fixture::checks::{assert_allowed, parse, tool_of};
use bloomery_testkit::sample;
use rstest::rstest;
use std::sync::{Arc, mpsc};
use std::thread;
use tokio::sync::oneshot;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs a test with a stand whose servers run on a separate thread, so that attempts may block their own threads.
fn with_stand(test: impl FnOnce(Stand)) {
    let (sender, receiver) = mpsc::channel();
    let (over, until_over) = oneshot::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            runtime().block_on(async {
                sender.send(Stand::with_twelve_steps().await).unwrap();
                let _ = until_over.await;
            });
        });
        // Dropped when the test ends or panics, which ends the servers.
        let _over = over;
        test(receiver.recv().unwrap());
    });
}

fn clear(stand: &mut Stand) {
    stand.clear();
    let dir = stand.memory();
    stand.shop.before_effect = Some(Arc::new(move |call| assert_allowed(&parse(&stand::lines(&Disk, &dir)), call)));
}

fn undisturbed(stand: &mut Stand) -> (Vec<Entry>, u32) {
    clear(stand);
    runtime().block_on(stand.run(1));
    let segments = fs::read_dir(stand.memory().join("jobs/k-1")).unwrap().count();
    (parse(&stand.lines(&Disk)), u32::try_from(segments).unwrap())
}

/// Starts the attempts one after the other, each when the one before is frozen. Then lets them continue in `order`, each when the one
/// before has ended. A last attempt finishes the run.
fn run(stand: &Stand, freezes: &[(u32, When)], order: &[usize]) {
    let frozen: Vec<Frozen> = freezes.iter().map(|(link, when)| Frozen::at(*link, *when)).collect();
    thread::scope(|scope| {
        let _resume = ResumeOnDrop(&frozen);
        let mut attempts = Vec::new();
        for (number, files) in (1..).zip(&frozen) {
            attempts.push(Some(scope.spawn(move || {
                let _running = files.running();
                runtime().block_on(stand.run_with(number, files.clone(), Stop::default())).unwrap()
            })));
            files.until_frozen();
        }
        for at in order {
            frozen[*at].resume();
            attempts[*at].take().unwrap().join().unwrap();
        }
    });
    runtime().block_on(stand.run(u32::try_from(freezes.len() + 1).unwrap()));
}

/// A killed attempt behaves like a frozen one that never continues, so kills are not tested here.
#[rstest]
fn two_frozen_attempts_that_continue_in_any_order_repeat_no_effect(
    #[values(When::Before, When::After)] first: When,
    #[values((1, When::Before), (1, When::After), (3, When::Before), (3, When::After))] second: (u32, When),
) {
    with_stand(|mut stand| {
        let (undisturbed, segments) = undisturbed(&mut stand);
        for link in (1..=segments).step_by(sample::distance()) {
            for order in [[0, 1], [1, 0]] {
                clear(&mut stand);
                run(&stand, &[(link, first), second], &order);
                stand.assert_sound(&Disk, &undisturbed);
            }
        }
    });
}

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[rstest]
fn three_attempts_frozen_at_a_claim_or_an_effect_repeat_no_effect(
    #[values(When::Before, When::After)] first: When,
    #[values(When::Before, When::After)] second: When,
    #[values(When::Before, When::After)] third: When,
) {
    with_stand(|mut stand| {
        let (undisturbed, _) = undisturbed(&mut stand);
        let refund = refund_link(&undisturbed, &stand);
        for link in [1, refund, refund + 1] {
            for order in ORDERS {
                clear(&mut stand);
                // The second attempt freezes at its claim, and the third at its first segment after its claim.
                run(&stand, &[(link, first), (1, second), (2, third)], &order);
                stand.assert_sound(&Disk, &undisturbed);
            }
        }
    });
}

/// Returns the number of the link that makes the start of the first refund durable, counted from 1.
fn refund_link(log: &[Entry], stand: &Stand) -> u32 {
    let started = log.iter().find_map(|entry| match &entry.event {
        Event::ToolStarted { call } if tool_of(log, call) == "refund" => Some(entry.seq),
        _ => None,
    });
    let names = Disk.list(&stand.memory().join("jobs/k-1")).unwrap();
    let firsts = names.iter().filter_map(|name| bloomery_journal::segment::seq_of(name));
    u32::try_from(firsts.filter(|first| *first <= started.unwrap()).count()).unwrap()
}
