//! Buffers the progress that servers report for running calls. The driver records it in batches while the calls run, so that people
//! see it. The rate is limited, because each batch is a segment of the log.

use bloomery_engine::event::{CallId, ToolProgress};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The shortest interval between two batches.
const MIN_BATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The interval to the next batch is at least the elapsed time divided by this number. A call of 4 minutes has about 30 batches.
const INTERVAL_DIVISOR: u32 = 6;

/// The number of reports of one call that are all recorded. Of later ones, only the last in each batch is recorded.
const MAX_REPORTS_PER_CALL: usize = 32;

/// Progress that is not recorded yet.
#[derive(Debug)]
pub(super) struct ProgressBuffer {
    began: Instant,
    state: RefCell<State>,
    added: Notify,
}

#[derive(Debug)]
struct State {
    pending: Vec<(CallId, ToolProgress)>,
    /// The number of reports of each call.
    counts: BTreeMap<CallId, usize>,
    /// The earliest time of the next batch.
    next: Instant,
}

/// The time of the next batch.
#[derive(Debug, PartialEq)]
enum Due {
    Now(Vec<(CallId, ToolProgress)>),
    At(Instant),
    /// Nothing is pending.
    Never,
}

impl ProgressBuffer {
    /// Creates the buffer of calls that begin now.
    pub(super) fn new() -> Self {
        let began = Instant::now();
        let state = State { pending: Vec::new(), counts: BTreeMap::new(), next: began };
        Self { began, state: RefCell::new(state), added: Notify::new() }
    }

    /// Adds a report of a call. Above [`MAX_REPORTS_PER_CALL`], it replaces the call's last pending one.
    pub(super) fn add(&self, call: &CallId, report: ToolProgress) {
        let mut state = self.state.borrow_mut();
        let State { pending, counts, .. } = &mut *state;
        let count = counts.entry(call.clone()).or_default();
        *count += 1;
        let last = pending.iter_mut().rev().find(|(id, _)| id == call).filter(|_| *count > MAX_REPORTS_PER_CALL);
        match last {
            Some((_, last)) => *last = report,
            None => pending.push((call.clone(), report)),
        }
        self.added.notify_one();
    }

    /// Waits until a batch is due, and takes everything that is pending.
    pub(super) async fn due(&self) -> Vec<(CallId, ToolProgress)> {
        loop {
            match self.take(Instant::now()) {
                Due::Now(batch) => return batch,
                Due::At(next) => sleep_until(next).await,
                Due::Never => self.added.notified().await,
            }
        }
    }

    fn take(&self, now: Instant) -> Due {
        let mut state = self.state.borrow_mut();
        if state.pending.is_empty() {
            return Due::Never;
        }
        if state.next > now {
            return Due::At(state.next);
        }
        state.next = now + MIN_BATCH_INTERVAL.max((now - self.began) / INTERVAL_DIVISOR);
        Due::Now(std::mem::take(&mut state.pending))
    }

    /// Takes the pending reports of a finished call.
    pub(super) fn take_call(&self, call: &CallId) -> Vec<ToolProgress> {
        let mut state = self.state.borrow_mut();
        let (of_call, others) = std::mem::take(&mut state.pending).into_iter().partition(|(id, _)| id == call);
        state.pending = others;
        let of_call: Vec<(CallId, ToolProgress)> = of_call;
        of_call.into_iter().map(|(_, report)| report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> CallId {
        CallId::new(7, n)
    }

    fn report(n: u32) -> ToolProgress {
        ToolProgress { progress: Some(f64::from(n)), ..ToolProgress::default() }
    }

    #[test]
    fn the_first_report_is_due_at_once_and_later_ones_once_a_second() {
        let buffer = ProgressBuffer::new();
        let began = buffer.began;
        assert_eq!(buffer.take(began), Due::Never);
        buffer.add(&id(0), report(1));
        assert_eq!(buffer.take(began), Due::Now(vec![(id(0), report(1))]));
        buffer.add(&id(0), report(2));
        buffer.add(&id(1), report(1));
        assert_eq!(buffer.take(began + MIN_BATCH_INTERVAL / 2), Due::At(began + MIN_BATCH_INTERVAL));
        assert_eq!(buffer.take(began + MIN_BATCH_INTERVAL), Due::Now(vec![(id(0), report(2)), (id(1), report(1))]));
        assert_eq!(buffer.take(began + MIN_BATCH_INTERVAL * 9), Due::Never);
    }

    #[test]
    fn batches_become_rarer_during_a_long_call() {
        let buffer = ProgressBuffer::new();
        let (mut now, mut times, mut all) = (buffer.began, 0, 0);
        while now < buffer.began + Duration::from_mins(4) {
            for n in 0..100 {
                buffer.add(&id(0), report(n));
            }
            match buffer.take(now) {
                Due::Now(due) => {
                    assert_eq!(due.last(), Some(&(id(0), report(99))), "the last is never left out");
                    (times, all) = (times + 1, all + due.len());
                }
                Due::At(next) => now = next,
                Due::Never => panic!("reports are pending"),
            }
        }
        assert!((20..40).contains(&times) && all < 80, "{all} in {times} times");
    }

    #[tokio::test]
    async fn the_pending_reports_of_a_finished_call_are_taken_without_the_others() {
        let buffer = ProgressBuffer::new();
        buffer.add(&id(0), report(1));
        buffer.add(&id(1), report(2));
        buffer.add(&id(0), report(3));
        assert_eq!(buffer.take_call(&id(0)), [report(1), report(3)]);
        assert_eq!(buffer.take_call(&id(0)), []);
        assert_eq!(buffer.due().await, [(id(1), report(2))]);
    }

    #[tokio::test]
    async fn a_report_that_is_added_during_the_wait_ends_it() {
        let buffer = ProgressBuffer::new();
        let (due, ()) = tokio::join!(buffer.due(), async { buffer.add(&id(0), report(1)) });
        assert_eq!(due, [(id(0), report(1))]);
    }
}
