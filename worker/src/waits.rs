//! Pauses between tries, told to who watches and counted apart from work: waiting is none (`docs/explanation/engine.md`, section 5).

use bloomery_crds::report::ExternalWait;
use std::cell::Cell;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// The pauses of one question, in all its tries.
pub struct Waits<'a> {
    tell: &'a dyn Fn(ExternalWait),
    idle: Cell<Duration>,
}

impl<'a> Waits<'a> {
    /// Begins without a pause. `tell` hears before each what is waited for.
    pub fn new(tell: &'a dyn Fn(ExternalWait)) -> Self {
        Self { tell, idle: Cell::default() }
    }

    /// Says what is waited for, and pauses. A pause that is cut short by dropping the future counts as far as it went.
    pub async fn pause(&self, what: ExternalWait, time: Duration) {
        (self.tell)(what);
        let _counted = Counted { idle: &self.idle, since: Instant::now() };
        tokio::time::sleep(time).await;
    }

    /// How long all pauses so far have taken.
    pub fn idle(&self) -> Duration {
        self.idle.get()
    }
}

impl fmt::Debug for Waits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waits").field("idle", &self.idle).finish_non_exhaustive()
    }
}

/// Adds its own life to the idle time.
struct Counted<'a> {
    idle: &'a Cell<Duration>,
    since: Instant,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.idle.set(self.idle.get() + self.since.elapsed());
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
    async fn pauses_are_told_and_add_up_whether_they_end_or_are_cut_short() {
        let told = RefCell::new(Vec::new());
        let tell = |what| told.borrow_mut().push(what);
        let waits = Waits::new(&tell);
        let millis = Duration::from_millis;
        waits.pause(busy(), millis(5)).await;
        let whole = waits.idle();
        tokio::time::sleep(millis(5)).await;
        assert_eq!(waits.idle(), whole, "what is between pauses is no pause");
        {
            let mut cut = Box::pin(waits.pause(busy(), Duration::from_hours(1)));
            assert!(cut.as_mut().now_or_never().is_none());
            tokio::time::sleep(millis(5)).await;
        }
        assert!(whole >= millis(5) && waits.idle() >= whole + millis(5), "{whole:?} {waits:?}");
        assert_eq!(told.into_inner(), [busy(), busy()]);
    }
}
