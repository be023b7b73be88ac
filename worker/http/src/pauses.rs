//! Pauses between retries, reported as waiting and not counted as work (`docs/explanation/engine.md`, section 5).

use bloomery_crds::report::ExternalWait;
use std::cell::Cell;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// The pauses of one request over all its retries.
pub struct Pauses<'a> {
    report: &'a dyn Fn(ExternalWait),
    total: Cell<Duration>,
}

impl<'a> Pauses<'a> {
    /// Creates the record of a request that has not paused yet. Each pause first calls `report` with its reason.
    pub fn new(report: &'a dyn Fn(ExternalWait)) -> Self {
        Self { report, total: Cell::default() }
    }

    /// Reports `reason`, then sleeps for `delay`. If the future is dropped, only the time until then counts.
    pub async fn pause(&self, reason: ExternalWait, delay: Duration) {
        (self.report)(reason);
        let _counted = CountedPause { total: &self.total, start: Instant::now() };
        tokio::time::sleep(delay).await;
    }

    /// Returns the total length of all pauses so far.
    pub fn total(&self) -> Duration {
        self.total.get()
    }
}

impl fmt::Debug for Pauses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pauses").field("total", &self.total).finish_non_exhaustive()
    }
}

/// Adds the time from its creation to its drop to the total.
struct CountedPause<'a> {
    total: &'a Cell<Duration>,
    start: Instant,
}

impl Drop for CountedPause<'_> {
    fn drop(&mut self) {
        self.total.set(self.total.get() + self.start.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::cell::RefCell;

    fn busy() -> ExternalWait {
        ExternalWait::ModelUnavailable { message: "busy".into() }
    }

    #[tokio::test]
    async fn pauses_are_reported_and_add_up_even_if_dropped() {
        let reported = RefCell::new(Vec::new());
        let report = |reason| reported.borrow_mut().push(reason);
        let pauses = Pauses::new(&report);
        let millis = Duration::from_millis;
        pauses.pause(busy(), millis(5)).await;
        let first = pauses.total();
        tokio::time::sleep(millis(5)).await;
        assert_eq!(pauses.total(), first, "time between pauses does not count");
        {
            let mut dropped = Box::pin(pauses.pause(busy(), Duration::from_hours(1)));
            assert!(dropped.as_mut().now_or_never().is_none());
            tokio::time::sleep(millis(5)).await;
        }
        assert!(first >= millis(5) && pauses.total() >= first + millis(5), "{first:?} {pauses:?}");
        assert_eq!(reported.into_inner(), [busy(), busy()]);
    }
}
